"""The version folders of a model in a Triton repository, each with a digest of what it holds.

Fixes do not touch them; their digests show whether somebody else did between a plan and its apply.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from latencydoctor.errors import KnownError

WHOLE_BYTES = 64 << 20
"""Files up to this size are hashed whole; of larger ones, which are weights, the size and both ends."""

END_BYTES = 1 << 20
MAX_FILES = 20_000

_known: dict[tuple[int, int, int, int], str] = {}
"""Digests of files by device, inode, size and time of change: a change reads the same weights several times."""


def versions(model: Path) -> tuple[tuple[str, str], ...]:
    """Each version's number and digest (SHA-256, hex), the smallest first; KnownError when one cannot be read."""
    try:
        names = [entry.name for entry in os.scandir(model) if entry.name.isdecimal() and entry.is_dir()]
        return tuple((name, _digest(model / name)) for name in sorted(names, key=int))
    except OSError as error:
        raise KnownError(
            f"the versions in {model} cannot be read: {error.strerror}", hint="Check the repository's rights."
        ) from error


def newest_ns(model: Path) -> int:
    """The latest time of change of anything in the model's folder, nanoseconds since the epoch; 0 when it is empty."""
    return max((os.lstat(path).st_mtime_ns for path in _below(model)), default=0)


def _digest(folder: Path) -> str:
    """Of names, kinds and contents; links count by where they lead, times and rights not at all."""
    whole = hashlib.sha256()
    for path in _below(folder):
        status = os.lstat(path)
        kind = stat.S_IFMT(status.st_mode)
        content = str(path.readlink()) if stat.S_ISLNK(kind) else _content(path, status) if stat.S_ISREG(kind) else ""
        whole.update(f"{path.relative_to(folder)}\0{kind}\0{content}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    """Everything in the folder in a fixed order, links not followed; KnownError when it is too much to look at."""
    count = 0
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted((*folders, *files)):
            count += 1
            if count > MAX_FILES:
                raise KnownError(f"{folder} holds more than {MAX_FILES} files", hint="Is this a model's folder?")
            yield Path(place) / name


def _content(path: Path, status: os.stat_result) -> str:
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if key not in _known:
        with path.open("rb") as stream:
            if status.st_size <= WHOLE_BYTES:
                _known[key] = hashlib.file_digest(stream, "sha256").hexdigest()
            else:
                ends = hashlib.sha256(f"{status.st_size}\0".encode() + stream.read(END_BYTES))
                stream.seek(-END_BYTES, os.SEEK_END)
                ends.update(stream.read(END_BYTES))
                _known[key] = ends.hexdigest()
    return _known[key]
