"""Reads and edits a settings file without knowing its schema: dotted keys, scalar values, everything else kept.

An edit replaces the characters of one value and nothing more, so comments, order and quoting elsewhere stay as a person
wrote them; then the result is read again and must say exactly what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import yaml

from latencydoctor.errors import ContentError, Location

MAX_SETTINGS_CHARS = 64 * 1024
MAX_DEPTH = 20

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
"""Values that need no quotes; what a fix sets is a number, a switch or a name."""


class _Mark(Protocol):
    """What the parser says of a position; counts from 0."""

    line: int
    column: int


def flatten(text: str, name: str) -> tuple[tuple[str, str], ...]:
    """Every scalar as (dotted key, text), in the file's order; ContentError with file:line for anything else."""
    return tuple((path, node.value) for path, node in _scalars(_root(text, name), (), name))


def edited(text: str, values: Sequence[tuple[str, str]], name: str) -> str:
    """The text with these dotted keys set. A key the file does not state is added to its section."""
    wanted = dict(flatten(text, name)) | dict(values)
    result = text
    for key, value in values:
        if not _PLAIN.fullmatch(value):
            raise ContentError(f"{key} cannot be set to {value!r}", hint="Only plain words and numbers can be set.")
        result = _set(result, key, value, name)
    if dict(flatten(result, name)) != wanted:
        raise ContentError(
            "the file cannot be edited without changing something else",
            hint="Write it in plain block style: one key a line.",
            location=Location(name),
        )
    return result


def _root(text: str, name: str) -> yaml.MappingNode:
    if len(text) > MAX_SETTINGS_CHARS:
        raise ContentError("the file is larger than settings can be", location=Location(name))
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise ContentError("anchors and aliases are refused", location=_at(name, event.start_mark))
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise ContentError(str(problem), location=_at(name, mark), hint="Put the file right first.") from error
    except RecursionError as error:
        raise ContentError("the file is nested too deeply", location=Location(name)) from error
    if not isinstance(root, yaml.MappingNode):
        raise ContentError("the file must be a mapping of names to values", location=Location(name))
    return root


def _at(name: str, mark: _Mark | None) -> Location:
    return Location(name, mark.line + 1, mark.column + 1) if mark else Location(name)


def _scalars(node: yaml.MappingNode, path: tuple[str, ...], name: str) -> Iterator[tuple[str, yaml.ScalarNode]]:
    if len(path) > MAX_DEPTH:
        raise ContentError("the file is nested too deeply", location=_at(name, node.start_mark))
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in seen or "." in key.value:
            raise ContentError("a key must be a plain word, given once", location=_at(name, key.start_mark))
        seen.add(key.value)
        inner = (*path, key.value)
        if isinstance(value, yaml.MappingNode):
            yield from _scalars(value, inner, name)
        elif isinstance(value, yaml.ScalarNode):
            yield ".".join(inner), value
        else:
            raise ContentError("lists are not settings", location=_at(name, value.start_mark))


def _set(text: str, key: str, value: str, name: str) -> str:
    root = _root(text, name)
    found = dict(_scalars(root, (), name)).get(key)
    if found is None:
        return _add(text, root, key.split("."), value, name)
    if found.start_mark.index == found.end_mark.index:  # `key:` with nothing after it
        return f"{text[: found.start_mark.index]} {value}{text[found.start_mark.index :]}"
    return text[: found.start_mark.index] + value + text[found.end_mark.index :]


def _add(text: str, section: yaml.MappingNode, path: list[str], value: str, name: str) -> str:
    """Adds the key before its section's first one, walking down the sections that are there already."""
    for depth, part in enumerate(path):
        inner = next((node for key, node in section.value if key.value == part), None)
        if not isinstance(inner, yaml.MappingNode) or not inner.value:
            return _insert(text, section, path[depth:], value, name)
        section = inner
    raise ContentError(f"{'.'.join(path)} is a section, not a value", location=_at(name, section.start_mark))


def _insert(text: str, section: yaml.MappingNode, path: list[str], value: str, name: str) -> str:
    first = section.value[0][0].start_mark if section.value else section.start_mark
    line_start = text.rfind("\n", 0, first.index) + 1
    indent = text[line_start : first.index]
    if indent.strip() or section.flow_style:
        raise ContentError(
            f"{'.'.join(path)} cannot be added here", location=_at(name, first), hint="Write one key a line."
        )
    lines = [f"{indent}{'  ' * depth}{part}:" for depth, part in enumerate(path)]
    return text[:line_start] + "\n".join(lines) + f" {value}\n" + text[line_start:]
