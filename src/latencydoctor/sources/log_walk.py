"""Walks over log files and tells step by step what is there: which file is opened, its bytes, why it ended.

Whoever follows may stop at any step. Folders are walked to the bottom, links to folders are not followed. Of a rotated
set the oldest file comes first.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Protocol

from latencydoctor.model.evidence import GapReason

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ROTATED = re.compile(r"(?P<base>.*?)(?:\.(?P<age>\d{1,4}))?(?:\.gz)?", re.DOTALL)


class ByteStream(Protocol):
    """Anything to read bytes from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes; fewer than asked for, or none, only at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Turned:
    """What is looked at next, which may take a while; `place` is how a report names it."""

    place: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A file whose bytes follow; `modified_s` is when it was last written, seconds since the epoch."""

    place: str
    modified_s: float


@dataclass(frozen=True, slots=True)
class Closed:
    """The file's end; `broken` says why it came early."""

    broken: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """Something named that cannot be read, and why."""

    place: str
    reason: GapReason
    detail: str


Step = Turned | Opened | bytes | Closed | Absent


@dataclass(frozen=True, slots=True)
class Portion:
    """How bytes are handed on: `chunk_bytes` at a time (`prompt`: or fewer, without waiting), `most_bytes` a file."""

    chunk_bytes: int
    most_bytes: int
    prompt: bool = False


def walk(given: str, portion: Portion, seen: set[Path]) -> Iterator[Step]:
    """The steps over a file, a folder or a glob, without the files already `seen`, which it adds to."""
    place = _place(given, Path(given).expanduser())
    yield Turned(place)
    files, missing = _expand(given)
    if not files:
        yield Absent(place, GapReason.UNREACHABLE, missing)
    for file in files:
        real = file.resolve()
        if real not in seen:
            seen.add(real)
            yield from _file(file, _place(given, file), portion)


def stream_steps(place: str, read: Callable[[int], bytes], modified_s: float, portion: Portion) -> Iterator[Step]:
    """The steps over one open stream, of which `read` gives the next bytes and none at its end."""
    yield Opened(place, modified_s)
    read_bytes = 0
    while read_bytes < portion.most_bytes:
        try:
            chunk = read(portion.chunk_bytes)
        except (EOFError, zlib.error, OSError) as error:
            yield Closed(f"damaged after {read_bytes} bytes: {error}")
            return
        if not chunk:
            yield Closed()
            return
        read_bytes += len(chunk)
        yield chunk
    yield Closed(f"given up after {read_bytes} unpacked bytes")


def _file(path: Path, place: str, portion: Portion) -> Iterator[Step]:
    yield Turned(place)
    try:
        with path.open("rb") as stream:
            modified_s = path.stat().st_mtime
            head = stream.peek(4)[:4]
            if head.startswith(_ZSTD):
                yield Absent(place, GapReason.NOT_SUPPORTED, "zstd files cannot be read yet; unpack it first")
            elif head.startswith(_GZIP):
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield from stream_steps(place, _reader(unpacked, portion), modified_s, portion)
            else:
                yield from stream_steps(place, _reader(stream, portion), modified_s, portion)
    except OSError as error:
        yield Absent(place, GapReason.UNREACHABLE, error.strerror or str(error))


def _reader(stream: BufferedReader | gzip.GzipFile, portion: Portion) -> Callable[[int], bytes]:
    return stream.read1 if portion.prompt else stream.read


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
    return sorted(found, key=_rotation), missing


def _place(given: str, path: Path) -> str:
    """How events name a file: as it was given, or with its folder only, so that no absolute path reaches a report."""
    if Path(given).expanduser().is_absolute():
        return "/".join(path.parts[-2:]).lstrip("/")
    return path.as_posix()


def _rotation(path: Path) -> tuple[str, int]:
    match = _ROTATED.fullmatch(str(path))
    age = match["age"] if match else None
    return (match["base"] if match else str(path), -int(age) if age else 0)
