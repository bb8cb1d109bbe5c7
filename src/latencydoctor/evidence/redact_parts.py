"""What the patterns that find secrets are made of: names, quotes, values, and what only looks like a value."""

from __future__ import annotations

import re
from typing import NamedTuple

HIDDEN = "[redacted]"


class Rule(NamedTuple):
    """One kind of secret: where `pattern` matches, `put` stands afterwards.

    `marks` are words in lower case of which a text must hold one; they keep the pattern away from lines without it.
    """

    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    put: str = rf"\g<1>{HIDDEN}"


# The plural before a small figure is a count of them.
_MANY = r"""(?:s(?!["']?\s{0,3}[:=]\s{0,3}\d{1,5}(?![\w.-])))?"""
SURE_NAMES = (
    r"(?:password|passwd|passphrase|passcode|pwd|(?<!imagepull)secret|api[_ -]?key|access[_ -]?key"
    r"|(?:private|account|subscription|encryption|signing|master|storage|license|webhook)[_-]?key|credential|authorization|session[_-]?(?:key|id)|signature)"
    rf"{_MANY}(?:[_-]?(?:id|key|base|value)){{0,2}}"
)
NAME_MARKS: tuple[str, ...] = (
    "passw",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "key",
    "credential",
    "authorization",
    "session",
)
NAME_MARKS += ("signature",)
TOKEN = r"(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!sep_)(?<!cls_)token"
"""A model's settings name the tokens that mean something to it."""
NAME = rf"[A-Za-z0-9_.-]{{0,40}}(?:{SURE_NAMES}|{TOKEN})"

_OPEN = r"""(?:\\{1,7}["']|&(?:quot|apos|\#0?3[49]|\#x2[27]);|\\{1,3}u002[27]|%(?:25)?2[27])"""
"""A quote within what is quoted already, by JSON, HTML, a script or an address."""
QUOTE = rf"""(?:["']|{_OPEN})?"""
IS = rf"{QUOTE}\s{{0,3}}(?:=>|:=|[:=]|%(?:25)?3[AD])(?:\s|%20){{0,3}}"
QUOTED = r"""(?:"(?:[^"\\]|\\.){0,4096}"?|'(?:[^'\\]|\\.){0,4096}'?)"""
VALUE = (
    r"""(?:(?:bearer|basic|digest|token)(?:\s|%20){1,3})?"""
    # In order: a list, a mapping, quoted within quotes up to the same quote, quoted, bare.
    r"""(?:\[[^\]]{0,4096}\]?|\{[^}]{0,4096}\}?"""
    rf"""|(?P<open>{_OPEN})(?:(?!(?<!\\)(?P=open)).){{0,4096}}"""
    rf"""|b?{QUOTED}|[^\s,;&"'}}\])]{{1,4096}})"""
)
WORD = r"""(?:"[^"\n]{0,4096}"?|'[^'\n]{0,4096}'?|[^\s"'|;]{1,4096})"""
"""A word as a shell reads it."""

_STATES = (
    "none null nil true false unset undefined required missing expired invalid valid empty wrong incorrect rejected "
    "denied failed failure failing ok accepted unknown disabled enabled revoked refused verified mismatch changed "
    "unauthorized forbidden not no yes is was are has the a an for from to of or and in on at by with via must cannot "
    "could does did should may will error errors called set sent used flag option argument parameter "
    # What a wrapped error says next: `failed to fetch token: pods "a" not found`.
    "pods secrets serviceaccounts permission dial context rpc unable unexpected open get post eof timeout connection"
)
_END = r"""(?=[.!:]?(?:[\s,;)\]}"'`&\\]|$))"""
STATE = rf"(?i:\((?:empty|none|null|hidden|unset|not\s)|(?:{'|'.join(_STATES.split())}){_END})"
"""What is said of a secret instead of it."""
_FACTS = (
    r"\d{4}-\d\d-\d\d|v?\d{1,20}(?:\.\d{1,20}){0,3}(?:ms|us|ns|s|m|h|d|%|min|[kmg]i?b)?"
    + _END
    + r"|\d{1,6}-(?:bit|byte|char|day)"
    r"|sha-?\d|md5\b|base\d\d|utf-?\d|bcrypt|argon2|x509|[hre]s\d{3}\b|oauth2|aes|https?:|0x[0-9a-f]{1,8}\b"
    r"|(?:x?oauth|cram|scram|digest|ntlm|gssapi)[\w-]{0,12}" + _END
)
LOOKS_SECRET = (
    rf"(?!{STATE}|(?i:{_FACTS})|[/<(\[{{])(?=[^\s\"'`]{{0,64}}[A-Za-z])"
    r"(?=[^\s\"'`]{0,64}(?:\d|[!@#$%^&*](?=\w)))[^\s\"'`,;]{6,4096}"
)
"""A word of letters and figures that is neither a state, a date, a size nor the name of an algorithm."""
