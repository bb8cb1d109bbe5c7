"""Which files the arguments of a log command mean, in the order in which they were written.

Folders are walked to the bottom, links to folders are not followed. Of a rotated set the oldest file comes first: by
the number in its name, else by the time of its last change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from latencydoctor.model.evidence import GapReason

_PACKED = r"(?:\.(?:gz|zst|bz2|xz))?"
_AGED = re.compile(rf"(?P<base>.+?)\.(?P<age>\d{{1,4}}){_PACKED}", re.DOTALL)
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATED = re.compile(
    rf"(?P<base>.+?)[.\-_](?:\d{{2}}-(?:{_MONTHS}|\w{{3,5}})|\d{{4}}-?\d{{2}}-?\d{{2}}(?:[-T_]?\d{{2,6}})?)"
    rf"(?P<rest>(?:\.log|\.txt)?){_PACKED}",
    re.DOTALL,
)

_DATED_AGE = -10_000
"""Stands for the age of a file that has a date in its name instead."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Something named that cannot be read, and why."""

    place: str
    reason: GapReason
    detail: str


@dataclass(frozen=True, slots=True)
class Target:
    """A file to read; `place` is how a report names it, `size_bytes` 0 where that says nothing (a pipe).

    `continues` says that it is the next of a rotated set after the file before it.
    """

    path: Path
    place: str
    size_bytes: int = 0
    continues: bool = False


def targets(given: str, seen: set[tuple[int, int]]) -> Iterator[Target | Absent]:
    """The files of one argument (a file, a folder or a glob) that are not among the `seen`, which it adds to."""
    closed: list[OSError] = []
    files, missing = _expand(given, closed.append)
    for error in closed:
        # A folder that may not be read is no empty one.
        yield Absent(place_of(given, Path(error.filename)), GapReason.UNREACHABLE, error.strerror or str(error))
    if not files and not closed:
        yield Absent(place_of(given, at_home(given)), GapReason.UNREACHABLE, missing)
    for path in files:
        place = place_of(given, path)
        try:
            status = path.stat()
        except OSError as error:
            yield Absent(place, GapReason.UNREACHABLE, error.strerror or str(error))
            continue
        identity = status.st_dev, status.st_ino
        # One file under two names, by a link of either kind, is one file.
        if identity not in seen:
            seen.add(identity)
            yield Target(path, place, status.st_size)


def side_by_side(given: Sequence[str]) -> list[str]:
    """The arguments, files of one rotated set next to each other, oldest first, as a shell does not write them."""
    sets: dict[str, list[str]] = {}
    for one in given:
        sets.setdefault(_set_of(Path(one))[0], []).append(one)
    return [one for members in sets.values() for one in sorted(members, key=lambda one: _set_of(Path(one))[1:])]


def after(last: Target | Absent | None, here: Target | Absent) -> Target | Absent:
    """What is read after `last`, marked if it goes on with it: the next file of a rotated set.

    A number counts as an age only where the set's current file is there as well: ranks and ports are numbered, too.
    """
    if not isinstance(last, Target) or not isinstance(here, Target):
        return here
    older, newer = _set_of(last.path), _set_of(here.path)
    if older[0] != newer[0] or older[1]:
        return here
    if newer[1]:
        follows = older[2] in (0, -1, _DATED_AGE)
    else:
        dated = older[2] == newer[2] == _DATED_AGE
        follows = (dated or newer[2] == older[2] + 1) and Path(newer[0]).exists()
    return replace(here, continues=True) if follows else here


def at_home(given: str) -> Path:
    """The path that an argument means, `~` written out; as it stands where nobody has that home."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        return Path(given)


def place_of(given: str, path: Path) -> str:
    """How events name a file: as it was given, or with its folder only, so that no absolute path reaches a report."""
    if at_home(given).is_absolute():
        return "/".join(path.parts[-2:]).lstrip("/")
    return path.as_posix()


def _expand(given: str, closed: Callable[[OSError], None]) -> tuple[list[Path], str]:
    """The files an argument means, oldest of each rotated set first, or why there are none.

    `closed` is told of each folder inside that cannot be read.
    """
    path = at_home(given)
    try:
        if path.is_dir():
            inside = (Path(folder) / name for folder, _, names in os.walk(path, onerror=closed) for name in names)
            found = [inner for inner in inside if not inner.name.startswith(".") and inner.is_file()]
            missing = "the folder holds no file"
        elif any(mark in given for mark in "*?[") and not path.exists():
            start = Path(path.anchor)
            found = [inner for inner in start.glob(str(path.relative_to(start))) if inner.is_file()]
            missing = "no file matches"
        else:
            # Refuses here what no file system takes: a NUL, or links in a circle.
            path.resolve()
            return [path], ""
    except OSError as error:
        return [], error.strerror or str(error)
    except (ValueError, RuntimeError) as error:
        return [], str(error)
    return in_order(found), missing


def in_order(files: Sequence[Path]) -> list[Path]:
    """The files by set, each set's oldest first."""
    return sorted(files, key=lambda path: (*_set_of(path), str(path)))


def _set_of(path: Path) -> tuple[str, bool, int, float]:
    """The name that a rotated set has in common, whether the file is the current one, its age and its last change."""
    name = str(path)
    aged = _AGED.fullmatch(name)
    if aged is not None:
        return aged["base"], False, -int(aged["age"]), 0.0
    dated = _DATED.fullmatch(name)
    if dated is not None:
        return dated["base"].removesuffix(".log") + (dated["rest"] or ".log"), False, _DATED_AGE, _changed_s(path)
    bare = re.sub(rf"{_PACKED}$", "", name)
    return bare, True, 0, 0.0


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
