"""The settings file as text: its generation line, and the digest of everything else.

A rollback must bring back the old content while the generation, which metrics pages repeat, only ever grows. So the
digest that proves a rollback covers the text byte for byte with the whole top-level `generation:` line left out, and
whoever writes the file changes nothing in that line but the number.
"""

from __future__ import annotations

import hashlib
import re

SETTINGS_OBJECT = "settings.yaml"
"""The settings file's name among the objects of a plan."""

_NUMBER = re.compile(r"^(generation:[ \t]*)(\d+)(?=[ \t\r]*(?:#.*)?$)", re.MULTILINE)
_LINE = re.compile(r"^generation:[^\n]*\n?", re.MULTILINE)
_PREAMBLE = re.compile(r"\A(?:%[^\n]*\n)*---[^\n]*\n")


def generation_of(text: str) -> int:
    """The generation the file states, 1 when it states none (the stack's default)."""
    found = _NUMBER.search(text)
    return int(found.group(2)) if found else 1


def with_generation(text: str, generation: int) -> str:
    """The same text with this generation; a line is added at the top where there was none."""
    if _NUMBER.search(text):
        return _NUMBER.sub(lambda found: f"{found.group(1)}{generation}", text, count=1)
    preamble = _PREAMBLE.match(text)
    at = preamble.end() if preamble else 0
    return f"{text[:at]}generation: {generation}\n{text[at:]}"


def without_generation(text: str) -> str:
    """The same text without its generation line."""
    return _LINE.sub("", text, count=1)


def settings_digest(text: str) -> str:
    """SHA-256 (hex) of the text's UTF-8 bytes without its generation line."""
    return hashlib.sha256(without_generation(text).encode()).hexdigest()
