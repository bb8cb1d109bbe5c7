"""Takes secrets out of foreign text before it is kept: log lines, server messages, addresses.

Applied on collection, so that live and replayed output are the same and nothing secret reaches a bundle or a report.
Patterns are bounded, so a hostile line cannot make them slow. Numbers that only look alike (`max_tokens=512`) stay.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"

_NAMES = (
    r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|private[_-]?key"
    r"|client[_-]?secret|credentials?|authorization|cookie|session[_-]?key)"
)
_NAMED = re.compile(
    rf"""(?i)(?<![A-Za-z0-9])([A-Za-z0-9_.-]{{0,40}}{_NAMES}["']?\s{{0,3}}[:=]\s{{0,3}})"""
    r"""(?!\d{1,6}(?![\w.-]))(?:(?:bearer|basic|digest|token)\s{1,3})?("[^"]{0,4096}"|'[^']{0,4096}'|[^\s,;&"'}\])]{1,4096})"""
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s{1,3}[A-Za-z0-9._~+/=-]{8,4096}")
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,15}://)[^\s/@]{1,1024}@")
_SHAPES = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,255}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,255}"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,255}"
    r"|\bhf_[A-Za-z0-9]{20,255}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,255}"
    r"|\bglpat-[A-Za-z0-9_-]{20,255}"
    r"|\bnvapi-[A-Za-z0-9_-]{20,255}"
    r"|\beyJ[A-Za-z0-9_-]{10,2048}\.[A-Za-z0-9_-]{4,2048}(?:\.[A-Za-z0-9_-]{0,2048})?"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*"
)


def redact(text: str) -> str:
    """The text with every secret it recognises replaced by `[redacted]`; the rest is unchanged."""
    text = _USERINFO.sub(rf"\1{HIDDEN}@", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    return _SHAPES.sub(HIDDEN, text)


def plain(text: str, limit: int = 200) -> str:
    """Foreign text on one line for a message: control bytes stripped, secrets taken out, cut to `limit` characters."""
    # Cut generously first, so that a huge answer costs nothing, then again after secrets have become shorter.
    head = redact("".join(c if c.isprintable() else " " for c in text[: limit * 20]))
    line = " ".join(head.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


_PROMPT = re.compile(
    r"""(\b(?:prompt|inputs?|text|content|question|query|messages)["']?\s{0,2}[:=]\s{0,2}\[?)"""
    r"""("(?:[^"\\]|\\.){0,65536}"?|'(?:[^'\\]|\\.){0,65536}'?)"""
)


def blank_prompts(text: str) -> str:
    """The text with what users wrote blanked, in request lines of inference servers and gateways."""
    return _PROMPT.sub(rf"\1{HIDDEN}", text)
