"""Walks over log files and tells step by step what is there: which file is opened, its bytes, why it ended.

Whoever follows may stop at any step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from latencydoctor.model.evidence import GapReason
from latencydoctor.sources.log_targets import Absent, Target
from latencydoctor.sources.looks import no_log
from latencydoctor.sources.unpacking import HEAD_BYTES, Damaged, Limits, ReadBytes, packing_of, unpacked

_HOLE_BYTES = 1024 * 1024
_MARK = b"\xef\xbb\xbf"


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
    """A file whose bytes follow; `modified_s` is when it was last written, seconds since the epoch.

    `continues` says that it is the next of a rotated set after the file before it, if that was read to its end.
    """

    place: str
    modified_s: float
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """The file's end; `broken` says why it came early."""

    broken: str = ""


Step = Turned | Opened | bytes | Closed | Absent


@dataclass(frozen=True, slots=True)
class Portion:
    """How bytes are handed on: at most `chunk_bytes` at a time, and `most_bytes` from a packed file."""

    chunk_bytes: int
    most_bytes: int


def walk(target: Target | Absent, portion: Portion) -> Iterator[Step]:
    """The steps over a file."""
    yield Turned(target.place)
    if isinstance(target, Absent):
        yield target
        return
    try:
        # Unbuffered, so that a pipe gives what there is, and a large file is copied once.
        with target.path.open("rb", buffering=0) as stream:
            modified_s = target.path.stat().st_mtime
            yield from stream_steps(target.place, stream.read, modified_s, portion, continues=target.continues)
    except OSError as error:
        yield Absent(target.place, GapReason.UNREACHABLE, error.strerror or str(error))


def stream_steps(
    place: str, read: ReadBytes, modified_s: float, portion: Portion, *, continues: bool = False
) -> Iterator[Step]:
    """The steps over one open stream, packed or plain, of which `read` gives the next bytes and none at its end.

    Raises `OSError` where not even its beginning can be read.
    """
    head = _after_hole(read)
    reason = no_log(head) if packing_of(head) is None else ""
    if head and not head.strip(b"\0"):
        reason = "nothing but NUL bytes"
    if reason:
        yield Absent(place, GapReason.NOT_SUPPORTED, f"skipped: this is {reason}")
        return
    yield Opened(place, modified_s, continues)
    try:
        yield from _without_mark(_chunks(_Headed(head, read), head, portion))
    except Damaged as error:
        yield Closed(str(error))
    else:
        yield Closed()


def _after_hole(read: ReadBytes) -> bytes:
    """The first bytes that are there: a log that was cut while its writer went on begins with NULs up to that place."""
    head = read(HEAD_BYTES)
    while head and not head.strip(b"\0") and (further := read(_HOLE_BYTES)):
        head = further
    return head.lstrip(b"\0") or head


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes without the mark that some editors and shells write before UTF-8, which hid the first line's stamp."""
    for chunk in chunks:
        yield chunk.removeprefix(_MARK)
        break
    yield from chunks


def _chunks(source: _Headed, head: bytes, portion: Portion) -> Iterator[bytes]:
    packing = packing_of(head)
    if packing is not None:
        yield from unpacked(packing, source.read, portion.chunk_bytes, Limits(portion.most_bytes))
        return
    given = 0
    while True:
        try:
            chunk = source.read(portion.chunk_bytes)
        except OSError as error:
            raise Damaged(f"damaged after {given} bytes: {error.strerror or error}") from error
        if not chunk:
            return
        given += len(chunk)
        yield chunk


class _Headed:
    """A stream whose first bytes have been read already."""

    def __init__(self, head: bytes, read: ReadBytes) -> None:
        self._head = head
        self._read = read

    def read(self, size: int) -> bytes:
        """The next bytes."""
        head, self._head = self._head, b""
        return head or self._read(size)
