"""Which files the arguments of a log command mean, in the order in which they were written.

Folders are walked to the bottom, links to folders are not followed. Of a rotated set the oldest file comes first: by
the number in its name, else by the time of its last change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Absent:
    """Something named that cannot be read, and why."""

    place: str
    reason: GapReason
    detail: str


@dataclass(frozen=True, slots=True)
class Target:
    """A file to read; `place` is how a report names it, `size_bytes` 0 where that says nothing (a pipe)."""

    path: Path
    place: str
    size_bytes: int = 0


def targets(given: str, seen: set[tuple[int, int]]) -> Iterator[Target | Absent]:
    """The files of one argument (a file, a folder or a glob) that are not among the `seen`, which it adds to."""
    files, missing = _expand(given)
    if not files:
        yield Absent(place_of(given, Path(given).expanduser()), GapReason.UNREACHABLE, missing)
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


def place_of(given: str, path: Path) -> str:
    """How events name a file: as it was given, or with its folder only, so that no absolute path reaches a report."""
    if Path(given).expanduser().is_absolute():
        return "/".join(path.parts[-2:]).lstrip("/")
    return path.as_posix()


def _expand(given: str) -> tuple[list[Path], str]:
    """The files an argument means, oldest of each rotated set first, or why there are none."""
    path = Path(given).expanduser()
    try:
        if path.is_dir():
            found = [inner for inner in path.rglob("*") if inner.is_file() and not inner.name.startswith(".")]
            missing = "the folder holds no file"
        elif any(mark in given for mark in "*?[") and not path.exists():
            start = Path(path.anchor)
            found = [inner for inner in start.glob(str(path.relative_to(start))) if inner.is_file()]
            missing = "no file matches"
        else:
            # Refuses here what no file system takes: a NUL, or links in a circle.
            path.resolve()
            return [path], ""
    except (OSError, ValueError, RuntimeError) as error:
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
        return dated["base"].removesuffix(".log") + (dated["rest"] or ".log"), False, -10_000, _changed_s(path)
    bare = re.sub(rf"{_PACKED}$", "", name)
    return bare, True, 0, 0.0


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
