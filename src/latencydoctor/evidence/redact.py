"""Takes secrets out of foreign text before it is kept: log lines, server messages, addresses.

Applied on collection, so that live and replayed output are the same and nothing secret reaches a bundle or a report.
Patterns are bounded, so a hostile line cannot make them slow. Numbers that only look alike (`max_tokens=512`) stay.
"""

from __future__ import annotations

import re

from latencydoctor.evidence import redact_commands as commands
from latencydoctor.evidence import redact_named as named
from latencydoctor.evidence import redact_shapes as shapes
from latencydoctor.evidence.redact_parts import HIDDEN, QUOTE

_RULES = (
    *(shapes.USERINFO, named.COOKIE, shapes.DIGEST),
    *(*named.RULES, *commands.RULES, shapes.SIGNED, shapes.SCHEME, *shapes.RULES),
)
"""What knows most of a secret's surroundings, and so where it ends, comes first."""

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PROMPT_NAMES = (
    r"(?:(?:system_|user_|raw_|original_)?prompts?|inputs?|text|content|question|query|instruction|messages)"
)
_PROMPT = re.compile(
    rf"(?i)(?<![A-Za-z0-9])({_PROMPT_NAMES}{QUOTE}\s{{0,3}}[:=]\s{{0,3}}\[?)"
    r"""(?:\\{1,3}["'][^"']{0,65536}|"(?:[^"\\]|\\.){0,65536}"?|'(?:[^'\\]|\\.){0,65536}'?)"""
)
_TOKEN_IDS = re.compile(rf"(?i)\b((?:prompt_|input_)?(?:token_)?ids{QUOTE}\s{{0,3}}[:=]\s{{0,3}}\[)[\d,\s]{{1,65536}}")


def redact(text: str, *, emails: bool = False) -> str:
    """The text with every secret it recognises replaced by `[redacted]`; the rest is unchanged."""
    low = text.casefold()
    for marks, pattern, put in _RULES:
        for mark in marks:
            if mark in low:
                text = pattern.sub(put, text)
                break
    return _EMAIL.sub(HIDDEN, text) if emails else text


def blank_prompts(text: str) -> str:
    """The text with what users wrote blanked: in request lines of inference servers and gateways, as text or ids."""
    return _TOKEN_IDS.sub(rf"\1{HIDDEN}", _PROMPT.sub(rf"\1{HIDDEN}", text))


def plain(text: str, limit: int = 200) -> str:
    """Foreign text on one line for a message: control bytes stripped, secrets taken out, cut to `limit` characters."""
    # Cut generously first, so that a huge answer costs nothing, then again after secrets have become shorter.
    head = redact("".join(c if c.isprintable() else " " for c in text[: limit * 20]))
    line = " ".join(head.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
