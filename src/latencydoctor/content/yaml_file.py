"""From a path to YAML nodes with positions: size, encoding, depth and aliases are checked before anything is built."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from latencydoctor.errors import ContentError, ContentErrors, Location

MAX_FILE_BYTES = 256 * 1024
"""The largest file accepted; the longest playbook is under 30 kB."""

MAX_DEPTH = 30
"""The deepest nesting accepted; nested conditions of a playbook need about ten levels."""


@dataclass(slots=True)
class Problems:
    """Gathers the errors of a file or a folder; `raise_any` raises them all at once as `ContentErrors`."""

    found: list[ContentError] = field(default_factory=list)

    def add(self, message: str, location: Location, hint: str = "") -> None:
        """Note one error."""
        self.found.append(ContentError(message, hint=hint, location=location))

    def raise_any(self) -> None:
        """Raise `ContentErrors` when anything was noted."""
        if self.found:
            hints = dict.fromkeys(error.hint for error in self.found if error.hint)
            raise ContentErrors(tuple(self.found), hint=" ".join(hints))


def location_of(name: str, node: yaml.Node) -> Location:
    """A node's place in the file `name`; the parser counts from 0."""
    return Location(name, node.start_mark.line + 1, node.start_mark.column + 1)


_BEFORE_WORDS = re.compile(r"^[ \t?:-]+", re.MULTILINE)
_TEXT = "tag:yaml.org,2002:str"


def read_text(path: Path, name: str) -> str:
    """The text of a content file; `ContentError` when it cannot be read, is too large or is not UTF-8."""
    where = Location(name)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ContentError(f"cannot be read: {error.strerror or error}", location=where) from error
    if len(raw) > MAX_FILE_BYTES:
        raise ContentError(f"is larger than {MAX_FILE_BYTES // 1024} kB", location=where)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ContentError("is not UTF-8 text", location=where) from error


def compose(text: str, name: str) -> yaml.Node:
    """The top node of a YAML text; `ContentError` when it is empty, no YAML, or uses what is refused."""
    try:
        _refuse_tricks(text, name)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = Location(name, mark.line + 1, mark.column + 1) if mark else Location(name)
        raise ContentError(f"is not YAML: {error.problem or error.context}", location=where) from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise ContentError(f"is not YAML: {reason}", location=Location(name)) from error
    if node is None:
        raise ContentError("is empty", location=Location(name))
    return node


def construct(node: yaml.Node) -> object:
    """The value of a scalar node; its text where YAML's own reading of it fails (a date such as 2026-13-45)."""
    if not isinstance(node, yaml.ScalarNode):
        return node
    # Most scalars are plain text, and a loader for each costs more than all the rest of reading.
    if node.tag == _TEXT:
        return node.value
    loader = yaml.CSafeLoader("")
    try:
        value: object = loader.construct_object(node)
    except (yaml.YAMLError, ValueError):
        return node.value
    finally:
        loader.dispose()
    return value


def _is_plain(text: str) -> bool:
    """Whether the text cannot hold a trick, at a glance: most files are so, and a look at every event takes far longer.

    A level needs a bracket, or a column before the first word of its line.
    """
    if "*" in text or "&" in text:
        return False
    columns = max((match.end() - match.start() for match in _BEFORE_WORDS.finditer(text)), default=0)
    return columns + text.count("[") + text.count("{") <= MAX_DEPTH


def _refuse_tricks(text: str, name: str) -> None:
    """Aliases blow a small file up to gigabytes and deep nesting overflows the stack of the C composer."""
    if _is_plain(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        mark = event.start_mark
        where = Location(name, mark.line + 1, mark.column + 1) if mark else Location(name)
        if isinstance(event, yaml.AliasEvent):
            raise ContentError("YAML aliases are refused", location=where, hint="Write the value out.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ContentError(f"is nested deeper than {MAX_DEPTH} levels", location=where)
