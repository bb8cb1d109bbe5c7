"""Edits protobuf's text format as text: the characters of one value change, every other byte stays as it is.

A parser that prints a message again loses comments, order and layout. Here fields are only located; what an edit made
of the text is for the caller to parse and to compare with what was asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from latencydoctor.errors import ContentError, Location

MAX_DEPTH = 64

_SPACE = re.compile(r"(?:[ \t\r\n\f\v]|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_]+|\[[^\]\n]*\]")
_WORD = re.compile(r"-?[ \t]*[A-Za-z0-9_.+-]+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'")
_CLOSES = {"{": "}", "<": ">"}


@dataclass(frozen=True, slots=True)
class Block:
    """A message's braces and what lies between; the whole text is one without braces of its own."""

    start: int
    end: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: where its name begins, where its value lies, and the block that the value is, or has as the only one
    of its list."""

    name: str
    start: int
    value_start: int
    end: int
    block: Block | None = None


def read(text: str, name: str) -> Block:
    """Where every field of the text lies; ContentError with file:line where it cannot be told."""
    return _Reader(text, name).whole()


def put(text: str, path: tuple[str, ...], value: str, name: str) -> str:
    """The text with this field set; blocks on the way are added where they are missing.

    A field given several times is given once afterwards, where it was first.
    """
    block = read(text, name)
    for depth, part in enumerate(path[:-1]):
        inner = next((one.block for one in block.fields if one.name == part), None)
        if inner is None:
            return _insert(text, block, _nested(path[depth:], value))
        block = inner
    found = [one for one in block.fields if one.name == path[-1]]
    if not found:
        return _insert(text, block, f"{path[-1]}: {value}")
    for extra in reversed(found[1:]):
        text = _without(text, extra)
    return text[: found[0].value_start] + value + text[found[0].end :]


def add(text: str, path: tuple[str, ...], content: str, name: str) -> str:
    """The text with one more field, `content`, in the block at `path`, which must be there."""
    block = read(text, name)
    for part in path:
        block = next(one.block for one in block.fields if one.name == part and one.block is not None)
    return _insert(text, block, content)


def _nested(path: tuple[str, ...], value: str) -> str:
    if len(path) == 1:
        return f"{path[0]}: {value}" if value else f"{path[0]} {{ }}"
    return f"{path[0]} {{ {_nested(path[1:], value)} }}"


def _insert(text: str, block: Block, content: str) -> str:
    """Adds a field as the block's last one, on a line of its own where the block has lines."""
    newline = "\r\n" if "\r\n" in text else "\n"
    whole = block.start < 0
    at = block.end if whole else block.end - 1
    line_start = text.rfind("\n", 0, at) + 1
    if whole:
        head = text if not text or text.endswith("\n") else text + newline
        return f"{head}{content}{newline}"
    closing = text[line_start:at]
    if closing.strip() or line_start <= block.start:
        before = "" if text[at - 1].isspace() else " "
        return f"{text[:at]}{before}{content} {text[at:]}"
    indent = _indent(text, block.fields[0].start) if block.fields else None
    return f"{text[:line_start]}{closing + '  ' if indent is None else indent}{content}{newline}{text[line_start:]}"


def _indent(text: str, at: int) -> str | None:
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return None if before.strip() else before


def _without(text: str, field: Field) -> str:
    """Takes a field out, with its separator, and with its line where nothing else stands on it."""
    separator = re.compile(r"[ \t]*[;,]?").match(text, field.end)
    end = separator.end() if separator else field.end
    start = text.rfind("\n", 0, field.start) + 1
    rest = re.compile(r"[ \t]*\r?\n").match(text, end)
    if not text[start : field.start].strip() and rest:
        return text[:start] + text[rest.end() :]
    return text[: field.start] + text[end:].removeprefix(" ")


class _Reader:
    """One pass over the text; each method leaves `_at` behind what it read."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._at = 0

    def whole(self) -> Block:
        """The whole text."""
        fields = self._fields("", 0)
        return Block(-1, len(self._text), fields)

    def _fields(self, closing: str, depth: int) -> tuple[Field, ...]:
        if depth > MAX_DEPTH:
            raise self._wrong("the file is nested too deeply")
        found = []
        while (character := self._next()) not in ("", closing):
            found.append(self._field(depth))
            if self._next() in (",", ";"):
                self._at += 1
        if character != closing:
            raise self._wrong(f"{closing!r} is missing")
        return tuple(found)

    def _field(self, depth: int) -> Field:
        start = self._at
        name = self._match(_NAME, "a field's name")
        colon = self._next() == ":"
        self._at += colon
        character, value_start = self._next(), self._at
        blocks: tuple[Block, ...] = ()
        if character in _CLOSES:
            blocks = (self._block(depth),)
        elif character == "[":
            blocks = self._list(depth)
        elif colon:
            self._scalar()
        else:
            raise self._wrong("':' or a block was expected")
        return Field(name, start, value_start, self._at, blocks[0] if len(blocks) == 1 else None)

    def _block(self, depth: int) -> Block:
        start, closing = self._at, _CLOSES[self._text[self._at]]
        self._at += 1
        fields = self._fields(closing, depth + 1)
        self._at += 1
        return Block(start, self._at, fields)

    def _list(self, depth: int) -> tuple[Block, ...]:
        """A list, and the blocks in it if it is one of blocks."""
        self._at += 1
        blocks = []
        while (character := self._next()) != "]":
            if character in _CLOSES:
                blocks.append(self._block(depth))
            else:
                self._scalar()
            if self._next() == ",":
                self._at += 1
            elif self._next() != "]":
                raise self._wrong("',' or ']' was expected")
        self._at += 1
        return tuple(blocks)

    def _scalar(self) -> None:
        """A word, a number, or strings that stand beside each other."""
        if self._next() not in ("'", '"'):
            self._match(_WORD, "a value")
            return
        while self._next() in ("'", '"'):
            self._match(_STRING, "the string's end")
            end = self._at
        self._at = end

    def _next(self) -> str:
        """The next character that is neither space nor comment, empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._wrong(f"{what} was expected")
        self._at = found.end()
        return found[0]

    def _wrong(self, problem: str) -> ContentError:
        line = self._text.count("\n", 0, self._at) + 1
        return ContentError(problem, location=Location(self._name, line), hint="Put the file right first.")
