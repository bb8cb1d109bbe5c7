"""Regular expressions written again for raw bytes: no anchors, loose repeats, whatever escapes a wrapper made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_WIDE_CLASS = 64
"""A class of more characters than this may meet an escape inside and is let run to the end of the line."""

_CLASSES = {
    "CATEGORY_DIGIT": "0-9",
    "CATEGORY_WORD": "0-9A-Za-z_",
}
_ESCAPES = {
    '"': r'\\*(?:"|&quot;|&#34;|u0022)',
    "'": r"(?:'|&#39;|&#x27;|&apos;|\\+u0027)",
    "<": r"(?:<|&lt;|\\+u003[cC])",
    ">": r"(?:>|&gt;|\\+u003[eE])",
    "&": r"(?:&(?:amp;)?|\\+u0026)",
    "\\": r"\\{1,16}",
    "`": r"(?:`|&#96;|\\+u0060)",
}
_SPACE = r"(?:[ \t\r\f\x0b]|\\+[tnrfvu][0-9a-f]{0,4})"
_ANY = r"[^\n]"
_ONE = "{1,20}"
"""What is one character may be an escape of this many."""

_NEWLINE = 10
_NEVER_IN_ESCAPES = " !$%()*+,-./:=?@[]^_|~{}"
_REFUSED = {
    "ASSERT": "looks around",
    "ASSERT_NOT": "looks around",
    "GROUPREF": "refers back",
    "GROUPREF_EXISTS": "refers back",
    "ATOMIC_GROUP": "has an atomic group",
    "POSSESSIVE_REPEAT": "has a possessive repeat",
}


def refuse(tree: Iterable[Any]) -> None:
    """Raises `re.error` where a parsed pattern has what engines without backtracking do not know."""
    for name, value in getattr(tree, "data", tree):
        word = str(name)
        if word in _REFUSED:
            raise re.error(f"{_REFUSED[word]}, which no engine without backtracking can")
        if word == "SUBPATTERN":
            refuse(value[3])
        elif word in ("MAX_REPEAT", "MIN_REPEAT"):
            refuse(value[2])
        elif word == "BRANCH":
            for branch in value[1]:
                refuse(branch)


def coarse_form(tree: Any, caseless: bool) -> str:
    """The coarse form of a parsed pattern."""
    body = _sequence(_trimmed(list(tree)))
    return f"(?i){body}" if caseless else body


def _trimmed(items: list[Any]) -> list[Any]:
    """Without repeats at either end that may be empty: they do not decide whether there is a match."""
    while items and _may_be_empty(items[0]):
        items = items[1:]
    while items and _may_be_empty(items[-1]):
        items = items[:-1]
    return items


def _may_be_empty(item: Any) -> bool:
    name = str(item[0])
    return name == "AT" or (name in ("MAX_REPEAT", "MIN_REPEAT") and item[1][0] == 0)


def _sequence(items: Iterable[Any]) -> str:
    return "".join(_item(str(name), value) for name, value in items)


def _item(name: str, value: Any) -> str:
    if name == "LITERAL":
        return _literal(value)
    if name in ("ANY", "NOT_LITERAL", "IN"):
        found = _class(name, value)
        return found + _ONE if found.startswith("[^") else found
    if name == "AT":
        return ""
    if name == "BRANCH":
        return f"(?:{'|'.join(_sequence(branch) for branch in value[1])})"
    if name == "SUBPATTERN":
        return _group(value)
    return _repeat(value)


def _literal(code: int) -> str:
    letter = chr(code)
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if 32 <= code < 127:
        return re.escape(letter)
    if code < 32:
        return _SPACE
    # JSON writers may keep to ASCII; what lies beyond two bytes takes two such escapes.
    escaped = "".join(rf"\\+u{unit:04x}" for unit in _utf16(letter))
    return f"(?:{letter}|(?i:{escaped}))"


def _utf16(letter: str) -> list[int]:
    data = letter.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]


def _class(name: str, value: Any) -> str:
    if name == "ANY":
        return _ANY
    if name == "NOT_LITERAL":
        return _all_but([value])
    items = [(str(kind), one) for kind, one in value]
    if items[0][0] == "NEGATE":
        codes = [one if kind == "LITERAL" else -1 for kind, one in items[1:]]
        return _all_but([code for code in codes if code != _NEWLINE])
    if len(items) == 1 and items[0][0] == "CATEGORY":
        category = str(items[0][1])
        if category == "CATEGORY_SPACE":
            return _SPACE
        if category == "CATEGORY_NOT_SPACE":
            return _all_but([32])
    return _small_class(items)


def _small_class(items: list[tuple[str, Any]]) -> str:
    size = sum(one[1] - one[0] + 1 if kind == "RANGE" else 1 for kind, one in items)
    codes = [code for kind, one in items for code in _codes(kind, one)]
    if size > _WIDE_CLASS or any(code > 126 or chr(code) in _ESCAPES for code in codes):
        return _ANY
    parts = [_part(kind, one) for kind, one in items]
    return _ANY if "" in parts else f"[{''.join(parts)}]"


def _all_but(codes: list[int]) -> str:
    """Escapes are made of printable characters, so one that they never contain stays excluded."""
    safe = [chr(code) for code in codes if 32 <= code < 127 and chr(code) in _NEVER_IN_ESCAPES]
    return f"[^{''.join(re.escape(letter) for letter in safe)}\\n]" if len(safe) == len(codes) else _ANY


def _codes(name: str, value: Any) -> list[int]:
    if name == "RANGE":
        return [value[0], value[1]]
    return [value] if name == "LITERAL" else []


def _part(name: str, value: Any) -> str:
    if name == "CATEGORY":
        return _CLASSES.get(str(value), "")
    if name == "RANGE":
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return re.escape(chr(value)) if value >= 32 else ""


def _group(value: Any) -> str:
    _number, added, removed, inner = value
    flags = ("i" if added & re.IGNORECASE else "") + ("-i" if removed & re.IGNORECASE else "")
    return f"(?{flags}:{_sequence(inner)})"


def _repeat(value: Any) -> str:
    least, most, inner = value
    body = _sequence(inner)
    wide = body.startswith("[^") and body.endswith(_ONE) and len(inner) == 1
    body = body.removesuffix(_ONE) if wide else body
    grouped = body if body.startswith("[") and len(inner) == 1 else f"(?:{body})"
    if wide:
        return f"{grouped}*" if least == 0 else f"{grouped}+" if least == 1 else f"{grouped}{{{least},}}"
    if (least, most) == (0, 1):
        return f"{grouped}?"
    if least == most:
        return f"{grouped}{{{least}}}"
    return f"{grouped}*" if least == 0 else f"{grouped}+" if least == 1 else f"{grouped}{{{least},}}"
