"""Reads small YAML files strictly: unknown keys, duplicate keys and aliases are refused, every error has its line.

The stack's own files (settings, accelerator profiles) go through here. All problems of a file are gathered and raised
together, so that one run of the program shows everything there is to correct.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import yaml

from latencydoctor.errors import ContentError, ContentErrors, Location

MAX_FILE_BYTES = 64 * 1024
"""The largest file accepted; a settings file is under 1 kB, so more than this is a mistake or an attack."""

MAX_DEPTH = 20
"""The deepest nesting accepted; the settings need three levels."""


class _Mark(Protocol):
    """What the parser says of a position; counts from 0."""

    line: int
    column: int


def _location(name: str, mark: _Mark | None) -> Location:
    return Location(name, mark.line + 1, mark.column + 1) if mark else Location(name)


@dataclass(slots=True)
class Problems:
    """Gathers the errors of one file; `raise_any` raises them all at once."""

    name: str
    found: list[ContentError] = field(default_factory=list)

    def add(self, message: str, node: yaml.Node | None = None, hint: str = "") -> None:
        """Notes one error at `node` (or at the file as a whole)."""
        location = _location(self.name, node.start_mark if node else None)
        self.found.append(ContentError(message, hint=hint, location=location))

    def raise_any(self) -> None:
        """Raises ContentError for one problem, ContentErrors for several, nothing for none."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            hints = dict.fromkeys(error.hint for error in self.found if error.hint)
            raise ContentErrors(tuple(self.found), hint=" ".join(hints))


class Collection:
    """Stands for a list or mapping found where a plain value is due."""

    def __repr__(self) -> str:
        return "a list or mapping"


class Fields:
    """One mapping of a YAML file, read field by field; each reader notes a problem and returns the default on error."""

    def __init__(self, node: yaml.Node | None, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self.node = node
        self._nodes: dict[str, yaml.Node] = dict(self._pairs(node))
        self._read: set[str] = set()

    def _pairs(self, node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
        if node is None:
            return
        if not isinstance(node, yaml.MappingNode):
            self.problems.add(f"{self.path or 'the file'} must be a mapping of names to values", node)
            return
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.problems.add("a key must be a plain word", key)
                continue
            if key.value in seen:
                self.problems.add(f"{self._name(key.value)} is given twice", key)
            seen.add(key.value)
            yield key.value, value

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def at(self, key: str) -> yaml.Node | None:
        """The node of a field, for a later message about it; the mapping itself when the field is absent."""
        return self._nodes.get(key, self.node)

    def keys(self) -> tuple[str, ...]:
        """The names present, in the file's order."""
        return tuple(self._nodes)

    def inner(self, key: str) -> Fields:
        """The mapping below `key`; absent means empty."""
        self._read.add(key)
        return Fields(self._nodes.get(key), self._name(key), self.problems)

    def text(self, key: str, default: str | None) -> str:
        value = self._scalar(key, default)
        if isinstance(value, str):
            return value
        self.problems.add(f"{self._name(key)} must be text, not {value!r}", self.at(key))
        return default or ""

    def whole(self, key: str, default: int | None) -> int:
        value = self._scalar(key, default)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.problems.add(f"{self._name(key)} must be a whole number, not {value!r}", self.at(key))
        return default or 0

    def number(self, key: str, default: float | None) -> float:
        value = self._scalar(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        self.problems.add(f"{self._name(key)} must be a number, not {value!r}", self.at(key))
        return default or 0.0

    def switch(self, key: str, default: bool) -> bool:
        value = self._scalar(key, default)
        if isinstance(value, bool):
            return value
        self.problems.add(f"{self._name(key)} must be true or false, not {value!r}", self.at(key))
        return default

    def _scalar(self, key: str, default: str | float | bool | None) -> object:
        """The plain value of a field; a missing one without a default is a problem of its own."""
        self._read.add(key)
        node = self._nodes.get(key)
        if node is None:
            if default is None:
                self.problems.add(f"{self._name(key)} is missing", self.node)
                return ""
            return default
        if not isinstance(node, yaml.ScalarNode):
            return Collection()
        return _construct(node)

    def refuse_rest(self) -> None:
        """Notes a problem for every key no reader asked for."""
        for key, node in self._nodes.items():
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                self.problems.add(f"unknown key {self._name(key)!r}", node, hint=f"Known here: {known}.")


def _construct(node: yaml.ScalarNode) -> object:
    loader = yaml.CSafeLoader("")
    try:
        return loader.construct_object(node)
    except (yaml.YAMLError, ValueError):
        return node.value
    finally:
        loader.dispose()


def read_text(path: Path) -> str:
    """The text of a small file; ContentError when it cannot be read, is too large or is not UTF-8."""
    location = Location(str(path))
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ContentError(f"cannot read it: {reason}", location=location) from error
    if len(raw) > MAX_FILE_BYTES:
        raise ContentError(f"larger than {MAX_FILE_BYTES // 1024} kB", location=location)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ContentError("is not UTF-8 text", location=location) from error


def compose(text: str, name: str) -> tuple[Fields, Problems]:
    """The top mapping of a YAML text and the collector of its problems; ContentError when it is no YAML at all."""
    problems = Problems(name)
    try:
        _refuse_tricks(text, name)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        reason = error.problem or error.context or "cannot be parsed"
        raise ContentError(f"is not YAML: {reason}", location=_location(name, error.problem_mark)) from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise ContentError(f"is not YAML: {reason}", location=Location(name)) from error
    if node is None:
        raise ContentError("is empty", location=Location(name))
    return Fields(node, "", problems), problems


def _refuse_tricks(text: str, name: str) -> None:
    """Aliases can blow a small file up to gigabytes, deep nesting can overflow a stack: neither has a use here."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        where = _location(name, event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise ContentError("YAML aliases are refused", location=where, hint="Write the value out.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ContentError(f"nested deeper than {MAX_DEPTH} levels", location=where)
