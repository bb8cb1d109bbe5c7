"""The scanner's parts under one name."""

from latencydoctor.evidence.logs.blocks import (
    CHUNK_BYTES,
    LOOK_BACK_BYTES,
    MAX_LINE_BYTES,
    Block,
    RawLine,
    whole_lines,
)
from latencydoctor.evidence.logs.engine import PatternError, match_blocks, match_lines
from latencydoctor.evidence.logs.scanner import Scanner

__all__ = [
    "CHUNK_BYTES",
    "LOOK_BACK_BYTES",
    "MAX_LINE_BYTES",
    "Block",
    "PatternError",
    "RawLine",
    "Scanner",
    "match_blocks",
    "match_lines",
    "whole_lines",
]
