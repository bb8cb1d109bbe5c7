"""Reads rule, playbook and configuration files strictly and hands on typed fields; every problem has its line.

Use: one `Problems` for a whole folder, `load_mapping(path, problems)` for each file (None when it is no YAML mapping;
the problem is noted), take the fields by name, `close()` each mapping so that unknown keys are refused, and call
`problems.raise_any()` at the end. Every taker notes a problem and returns a harmless value, so that one run shows all
that there is to correct; nothing built after a problem may be used before `raise_any` was called.

Aliases, duplicate keys, deep nesting and large files are refused: none has a use here and each hides a mistake or
an attack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import yaml

from latencydoctor.content.yaml_file import Problems, compose, construct, location_of, read_text
from latencydoctor.errors import ContentError, Location

__all__ = ["Mapping", "Problems", "load_mapping", "parse_mapping"]

_Value = TypeVar("_Value")


class _Required:
    """Marks a field without a default."""


REQUIRED: Final = _Required()


class Mapping:
    """One mapping of a file, read field by field. `name` is its dotted place in the file, empty at the top."""

    def __init__(self, node: yaml.MappingNode, path: str, name: str, problems: Problems) -> None:
        self.path = path
        self.name = name
        self.problems = problems
        self._node = node
        self._taken: set[str] = set()
        self._nodes: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.problems.add("a key must be a plain word", location_of(path, key))
            elif key.value in self._nodes:
                self.problems.add(f"{self._dotted(key.value)} is given twice", location_of(path, key))
            else:
                self._nodes[key.value] = value

    def _dotted(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    @property
    def names(self) -> tuple[str, ...]:
        """The names present, in the file's order."""
        return tuple(self._nodes)

    def location(self, key: str = "") -> Location:
        """Where a field lies; the mapping itself when the field is absent or none is named."""
        return location_of(self.path, self._nodes.get(key, self._node))

    def problem(self, message: str, key: str = "", hint: str = "") -> None:
        """Note a problem of the caller's at a field."""
        self.problems.add(message, self.location(key), hint)

    def pass_over(self, key: str) -> None:
        """Take a field without looking at it, for one whose value must not be shown in a message."""
        self._taken.add(key)

    def text(self, key: str, default: str | _Required = REQUIRED) -> str:
        """A non-empty text (or the default); `yes`, `no` and dates must be quoted to count as text."""
        value = self._take(key, default)
        if isinstance(value, str) and (value or not isinstance(default, _Required)):
            return value
        return self._refuse(key, value, "text", "" if isinstance(default, _Required) else default)

    def number(self, key: str, default: float | _Required = REQUIRED) -> float:
        """A finite number."""
        value = self._take(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        return self._refuse(key, value, "a finite number", 0.0 if isinstance(default, _Required) else float(default))

    def whole(self, key: str, default: int | _Required = REQUIRED) -> int:
        """A whole number."""
        value = self._take(key, default)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return self._refuse(key, value, "a whole number", 0 if isinstance(default, _Required) else default)

    def flag(self, key: str, default: bool | _Required = REQUIRED) -> bool:
        """True or false."""
        value = self._take(key, default)
        if isinstance(value, bool):
            return value
        return self._refuse(key, value, "true or false", False if isinstance(default, _Required) else default)

    def choice(self, key: str, allowed: tuple[str, ...], default: str | _Required = REQUIRED) -> str:
        """One of a few words; the first of them after a problem."""
        value = self.text(key, default)
        if value in allowed:
            return value
        if value:
            self.problem(f"{self._dotted(key)} is {value!r}, not one of: {', '.join(allowed)}", key)
        return allowed[0]

    def scalar(self, key: str) -> str | float | bool:
        """A required text, number or flag, for fields that take either; the empty text after a problem."""
        value = self._take(key, REQUIRED)
        if isinstance(value, str | int | float):
            return value
        return self._refuse(key, value, "a single value", "")

    def texts(self, key: str, default: tuple[str, ...] | _Required = REQUIRED) -> tuple[str, ...]:
        """A list of texts."""
        values: list[str] = []
        for index, node in enumerate(self._sequence(key, default)):
            value = construct(node)
            if isinstance(value, str) and value:
                values.append(value)
            else:
                message = f"{self._dotted(key)}[{index}] must be text, not {_shown(value)}"
                self.problems.add(message, location_of(self.path, node), "Put it in quotes if it is meant as text.")
        if key not in self._nodes and not isinstance(default, _Required):
            return default
        return tuple(values)

    def wholes(self, key: str, default: tuple[int, ...] | _Required = REQUIRED) -> tuple[int, ...]:
        """A list of whole numbers."""
        values: list[int] = []
        for index, node in enumerate(self._sequence(key, default)):
            value = construct(node)
            if isinstance(value, int) and not isinstance(value, bool):
                values.append(value)
            else:
                message = f"{self._dotted(key)}[{index}] must be a whole number, not {_shown(value)}"
                self.problems.add(message, location_of(self.path, node))
        if key not in self._nodes and not isinstance(default, _Required):
            return default
        return tuple(values)

    def texts_or_mappings(self, key: str) -> tuple[str | Mapping, ...]:
        """A list, empty when it is absent, whose items are texts or mappings; others are noted and left out."""
        items: list[str | Mapping] = []
        for index, node in enumerate(self._sequence(key, ())):
            name = f"{self._dotted(key)}[{index}]"
            value = construct(node) if isinstance(node, yaml.ScalarNode) else node
            if isinstance(value, str) and value:
                items.append(value)
            elif isinstance(node, yaml.MappingNode):
                items.append(Mapping(node, self.path, name, self.problems))
            else:
                message = f"{name} must be text or a mapping of names to values, not {_shown(value)}"
                self.problems.add(message, location_of(self.path, node))
        return tuple(items)

    def mapping(self, key: str, default: _Required | None = REQUIRED) -> Mapping | None:
        """The mapping below a key; None when it is absent (a problem if required) or no mapping (always one)."""
        self._taken.add(key)
        node = self._nodes.get(key)
        if node is None:
            if isinstance(default, _Required):
                self.problem(f"{self._dotted(key)} is missing")
            return None
        return self._as_mapping(node, self._dotted(key))

    def mappings(self, key: str, default: tuple[()] | _Required = REQUIRED) -> tuple[Mapping, ...]:
        """A list of mappings; items that are none are noted and left out."""
        nodes = self._sequence(key, default)
        items = (self._as_mapping(node, f"{self._dotted(key)}[{index}]") for index, node in enumerate(nodes))
        return tuple(item for item in items if item is not None)

    def entries(self, key: str, default: _Required | None = REQUIRED) -> Iterator[tuple[str, Mapping]]:
        """The name and mapping of each entry of a mapping of mappings (`nodes: {first: {...}, second: {...}}`)."""
        parent = self.mapping(key, default)
        for name in parent.names if parent else ():
            child = parent.mapping(name) if parent else None
            if child is not None:
                yield name, child

    def numbers(self, key: str, default: _Required | None = REQUIRED) -> tuple[tuple[str, float], ...]:
        """A mapping of names to finite numbers, in the file's order."""
        parent = self.mapping(key, default)
        return tuple((name, parent.number(name)) for name in parent.names) if parent else ()

    def close(self) -> None:
        """Note a problem for every key that nobody took: a misspelt key must not be silently without effect."""
        for key, node in self._nodes.items():
            if key not in self._taken:
                hint = f"Known here: {', '.join(sorted(self._taken))}."
                self.problems.add(f"unknown key {self._dotted(key)!r}", location_of(self.path, node), hint)

    def _take(self, key: str, default: object) -> object:
        self._taken.add(key)
        node = self._nodes.get(key)
        if node is None:
            return default
        return construct(node) if isinstance(node, yaml.ScalarNode) else node

    def _refuse(self, key: str, value: object, wanted: str, instead: _Value) -> _Value:
        if isinstance(value, _Required):
            self.problem(f"{self._dotted(key)} is missing")
            return instead
        hint = "Put it in quotes if it is meant as text." if wanted == "text" and value not in ("", None) else ""
        self.problem(f"{self._dotted(key)} must be {wanted}, not {_shown(value)}", key, hint)
        return instead

    def _sequence(self, key: str, default: object) -> tuple[yaml.Node, ...]:
        self._taken.add(key)
        node = self._nodes.get(key)
        if node is None:
            if isinstance(default, _Required):
                self.problem(f"{self._dotted(key)} is missing")
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self.problem(f"{self._dotted(key)} must be a list", key)
            return ()
        return tuple(node.value)

    def _as_mapping(self, node: yaml.Node, name: str) -> Mapping | None:
        if isinstance(node, yaml.MappingNode):
            return Mapping(node, self.path, name, self.problems)
        self.problems.add(f"{name} must be a mapping of names to values", location_of(self.path, node))
        return None


def _shown(value: object) -> str:
    return "a list or mapping" if isinstance(value, yaml.Node) else repr(value)


def load_mapping(path: Path, problems: Problems, shown: str = "") -> Mapping | None:
    """The top mapping of a YAML file; None, with the problem noted, when it cannot be read or is none.

    `shown` is how messages name the file, the path itself when empty.
    """
    name = shown or str(path)
    try:
        return _top(compose(read_text(path, name), name), name, problems)
    except ContentError as error:
        problems.found.append(error)
        return None


def parse_mapping(text: str, name: str, problems: Problems) -> Mapping | None:
    """The same for a text already in memory; `name` stands for the file in messages."""
    try:
        return _top(compose(text, name), name, problems)
    except ContentError as error:
        problems.found.append(error)
        return None


def _top(node: yaml.Node, name: str, problems: Problems) -> Mapping | None:
    if isinstance(node, yaml.MappingNode):
        return Mapping(node, name, "", problems)
    problems.add("the file must be a mapping of names to values", location_of(name, node))
    return None
