"""journald's export form: an entry is a block of `FIELD=value` lines, so a message's time stands on another line.

A value with newlines or bytes that are no text has its binary form: the name alone, a length in eight bytes (little
endian), the bytes, a newline. Lengths hold NULs, which no line of text does; that is how such a value is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_FIELD = re.compile(rb"(_{0,2}[A-Z][A-Z0-9_]{0,63})=(.*)", re.DOTALL)
_NAME = re.compile(rb"_{0,2}[A-Z][A-Z0-9_]{0,63}")
_LENGTH_BYTES = 8
_LENGTH_ENDS = b"\0\0"
_VALUE_BYTES = 4096
_MOST_LINES = 400
"""An entry has about thirty fields; a message of more lines than this lost its fields to the bounds anyway."""


def is_entry_line(data: bytes, before: Sequence[bytes]) -> bool:
    """Whether a line belongs to a message in this form; `before` are the lines before it, nearest first."""
    return data.startswith(b"MESSAGE=") or _binary(data, before) is not None


def entry(data: bytes, before: Sequence[bytes], after: Sequence[bytes]) -> tuple[bytes, dict[str, str]]:
    """A line's part of the message, and the other fields of its entry as text, the first of repeated ones."""
    binary = _binary(data, before)
    message = data.removeprefix(b"MESSAGE=") if binary is None else data[binary[1] :]
    passed = before if binary is None else before[binary[0] + 1 :]
    fields: dict[str, str] = {}
    for line in (*_fields_before(passed), *_until_blank(after)):
        match = _FIELD.match(line)
        if match is not None:
            value = match[2][:_VALUE_BYTES].decode("utf-8", "replace").rstrip("\r")
            fields.setdefault(match[1].decode("ascii"), value)
    return message, fields


def _fields_before(passed: Sequence[bytes]) -> list[bytes]:
    """Lines of the entry before one, nearest first, without other fields' binary values, which may hold anything."""
    near = _until_blank(passed)
    rest = passed[len(near) : _MOST_LINES]
    if not any(_LENGTH_ENDS in line for line in (*near, *rest)):
        return near
    walked: list[bytes] = []
    blanks: list[int] = []
    for line in passed[:_MOST_LINES]:
        if _NAME.fullmatch(line):
            inside = _lines_of_value(walked)
            del walked[len(walked) - inside :]
            blanks = [place for place in blanks if place < len(walked)]
            continue
        if not line or line == b"\r":
            blanks.append(len(walked))
        walked.append(line)
    return walked[: blanks[0]] if blanks else walked


def _lines_of_value(walked: Sequence[bytes]) -> int:
    """How many of the lines behind a field's name, nearest to what is read first, are its binary value."""
    value = b"\n".join(reversed(walked))
    length = int.from_bytes(value[:_LENGTH_BYTES], "little")
    if not value[:_LENGTH_BYTES].endswith(_LENGTH_ENDS) or length > len(value) - _LENGTH_BYTES:
        return 0
    return value.count(b"\n", 0, _LENGTH_BYTES + length) + 1


def _until_blank(lines: Iterable[bytes]) -> list[bytes]:
    """The lines up to the entry's end, which is an empty one."""
    found: list[bytes] = []
    for line in lines:
        if not line or line == b"\r" or len(found) >= _MOST_LINES:
            break
        found.append(line)
    return found


def _binary(data: bytes, before: Sequence[bytes]) -> tuple[int, int] | None:
    """Where a binary message that reaches this line began: how many lines back, and how much of this line precedes it.

    None if there is none. One of the length's own bytes may be a newline, so the first lines can be its parts.
    """
    for back, line in enumerate(before[:_MOST_LINES]):
        if line == b"MESSAGE":
            value = b"\n".join((*reversed(before[:back]), data))
            head = value[:_LENGTH_BYTES]
            length = int.from_bytes(head, "little")
            if not head.endswith(b"\0\0") or len(value) - _LENGTH_BYTES > length:
                return None
            # What of the length lies on this line, where this is the message's first.
            return back, max(0, _LENGTH_BYTES - (len(value) - len(data)))
        if _FIELD.match(line):
            return None
    return None
