"""Finds what looks like a secret in text that would otherwise be kept in a plan or a journal.

Collection already redacts evidence; this is the second net, and the only one for settings files, whose full text a
journal keeps so that a rollback can bring it back byte for byte.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_NEW = r"(?!\[redacted\](?:\s|$))"
"""What has been taken out already is no secret, so that doing it twice changes nothing."""

# Every pattern stays within one line, so that looking line by line and replacing in a whole text agree.
_PATTERNS = (
    re.compile(
        r"(?i)\b(?P<keep>[\w.-]*(?:passw(?:or)?d|secret|api[_-]?key|token|credential)[\"']?[ \t]*[:=][ \t]*)"
        rf"(?P<hide>{_NEW}\S+)"
    ),
    re.compile(rf"(?i)\b(?P<keep>authorization[\"']?[ \t]*[:=][ \t]*)(?P<hide>{_NEW}\S+(?:[ \t]+\S+)?)"),
    re.compile(r"(?i)\b(?P<keep>(?:bearer|basic)[ \t]+)(?P<hide>(?=\S*[0-9=])[A-Za-z0-9._~+/=-]{8,})"),
    re.compile(r"(?P<keep>://)(?P<hide>(?!\[redacted\]@)[^\s/@]+)(?=@)"),
    re.compile(r"(?P<keep>)(?P<hide>-----BEGIN [A-Z ]*PRIVATE KEY-----)"),
)


def secret_line(text: str) -> int | None:
    """The first line (from 1) that looks like it holds a secret, None when none does."""
    for number, line in enumerate(text.split("\n"), start=1):
        if any(pattern.search(line) for pattern in _PATTERNS):
            return number
    return None


def redact(text: str) -> str:
    """The text with each secret's value replaced; what names it stays, so that the line still makes sense."""
    for pattern in _PATTERNS:
        text = pattern.sub(lambda found: found.group("keep") + REDACTED, text)
    return text
