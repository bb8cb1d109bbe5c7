"""Takes secrets out of text from outside before anything is stored or shown: passwords, tokens, keys, credentials in
URLs. The rest of the text stays as it is, so that a line is still recognisable."""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_NAME = (
    r"[\w.-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|"
    r"session[_-]?id|cookie)[\w.-]{0,20}"
)
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # https://user:password@host
    (re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@\"']{1,300}@", re.IGNORECASE), rf"\1{REDACTED}@"),
    (
        re.compile(r"\b(bearer|basic)(\s{1,3})(?=[\w.~+/-]{0,4096}[\d=])[\w.~+/=-]{6,4096}", re.IGNORECASE),
        rf"\1\2{REDACTED}",
    ),
    # name=value, name: value, "name": "value", --name value; counts such as max_tokens=512 are no secrets.
    (
        re.compile(
            rf"(?<![\w.-])({_NAME}\\?[\"']?\s{{0,3}}[=:]\s{{0,3}})(\\?[\"'])(?:(?!\2).){{1,4096}}", re.IGNORECASE
        ),
        rf"\1\2{REDACTED}",
    ),
    (
        re.compile(
            rf"(?<![\w.-])({_NAME}\s{{0,3}}[=:]\s{{0,3}})(?![\"'\\\[])(?!\d{{1,9}}\b)[^\s,;&\"'}}\])]{{3,4096}}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    # The shapes of well-known keys, wherever they stand.
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]|github_pat|glpat|hf|sk|xox[abprs])[-_][\w-]{16,255}"), REDACTED),
    (re.compile(r"\beyJ[\w-]{8,4096}\.[\w-]{8,4096}\.[\w-]{4,4096}"), REDACTED),
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.{0,8192}?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|$)", re.DOTALL
        ),
        REDACTED,
    ),
)


def redact(text: str) -> str:
    """The text with every secret replaced by `[redacted]`; applying it twice changes nothing more."""
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text
