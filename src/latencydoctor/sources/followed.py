"""Bytes that are still being written: files through their rotation, pipes, the output of another program.

A followed source gives one `Incarnation` after the other (a file that is replaced begins anew) and each of those its
bytes as they come, with an empty chunk now and then while nothing does.
"""

from __future__ import annotations

import math
import os
import select
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from latencydoctor.evidence.logs.blocks import CHUNK_BYTES, LOOK_BACK_BYTES, MAX_LINE_BYTES, Piece, Seam

LOOK_AGAIN_S = 0.25
"""How long a written line may wait. Looking costs a few system calls."""


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One file under a name, or one stream: when it was last written, and its bytes."""

    modified_s: float
    chunks: Iterator[bytes]


class Followed(Protocol):
    """Something to follow."""

    @property
    def place(self) -> str:
        """How events name it."""
        ...

    def incarnations(self, stop: threading.Event) -> Iterator[Incarnation]:
        """What there is to read, one after the other, until `stop` is set or it ends by itself."""
        ...


class FollowedFile:
    """A file that is appended to, and replaced or cut to nothing when it is rotated; or a named pipe, which ends when
    its writer leaves.

    It ends once all of it has been read after `until_s`, seconds since the epoch.
    """

    def __init__(self, path: Path, place: str, until_s: float = math.inf) -> None:
        self._path = path
        self._until_s = until_s
        self.place = place

    def incarnations(self, stop: threading.Event) -> Iterator[Incarnation]:
        """See `Followed`. A file that is not there yet is waited for."""
        while not stop.is_set():
            try:
                # A named pipe opens also before its writer comes: nothing could interrupt that wait.
                stream = os.fdopen(os.open(self._path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
            except OSError:
                if time.time() >= self._until_s:
                    return
                stop.wait(LOOK_AGAIN_S)
                continue
            with stream:
                status = os.fstat(stream.fileno())
                if stat.S_ISFIFO(status.st_mode):
                    yield Incarnation(status.st_mtime, _as_written(stream.fileno(), self._until_s, stop))
                    return
                os.set_blocking(stream.fileno(), True)
                more = True
                while more and not stop.is_set():
                    ended = _End()
                    yield Incarnation(status.st_mtime, self._chunks(stream.fileno(), stop, ended))
                    more = ended.truncated
                    os.lseek(stream.fileno(), 0, os.SEEK_SET)
                if ended.over:
                    return

    def _chunks(self, descriptor: int, stop: threading.Event, ended: _End) -> Iterator[bytes]:
        """Up to where the file is cut or another one has its name, whose predecessor is read to its end first."""
        replaced = False
        while not stop.is_set():
            if chunk := os.read(descriptor, CHUNK_BYTES):
                yield chunk
                continue
            if replaced:
                return
            if os.fstat(descriptor).st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
                ended.truncated = True
                return
            replaced = self._is_replaced(descriptor)
            if not replaced:
                if time.time() >= self._until_s:
                    ended.over = True
                    return
                yield b""
                stop.wait(LOOK_AGAIN_S)

    def _is_replaced(self, descriptor: int) -> bool:
        try:
            now = self._path.stat()
        except OSError:
            # Between the renaming of the old file and the creation of the new one.
            return False
        mine = os.fstat(descriptor)
        return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino)


@dataclass(slots=True)
class _End:
    truncated: bool = False
    over: bool = False


class FollowedPipe:
    """A stream that somebody writes to: standard input, or what another program prints.

    It ends with its writer, or once nothing is left in it after `until_s`, seconds since the epoch.
    """

    def __init__(self, descriptor: int, place: str, now_s: float, until_s: float = math.inf) -> None:
        self._descriptor = descriptor
        self._now_s = now_s
        self._until_s = until_s
        self.place = place

    def incarnations(self, stop: threading.Event) -> Iterator[Incarnation]:
        """See `Followed`."""
        yield Incarnation(self._now_s, _as_written(self._descriptor, self._until_s, stop))


def _as_written(descriptor: int, until_s: float, stop: threading.Event) -> Iterator[bytes]:
    """What comes through a pipe until its writers have left; one that had none yet is waited for."""
    while not stop.is_set():
        is_over = time.time() >= until_s
        ready, _, _ = select.select([descriptor], [], [], 0 if is_over else LOOK_AGAIN_S)
        if not ready:
            if is_over:
                return
            yield b""
            continue
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def lines_as_they_come(chunks: Iterator[bytes | Seam]) -> Iterator[Piece | None]:
    """Pieces of whole lines without waiting for what follows; None while nothing comes."""
    pending = before = b""
    seam: Seam | None = None
    for chunk in chunks:
        if isinstance(chunk, Seam):
            if pending:
                yield Piece(pending + b"\n", before, seam=seam)
            pending, seam = b"", chunk
            continue
        data = pending + chunk
        whole = data.rfind(b"\n") + 1
        pending = data[whole:][:MAX_LINE_BYTES]
        if whole:
            yield Piece(data[:whole], before, seam=seam)
            seam = None
            before = (before + data[max(whole - LOOK_BACK_BYTES, 0) : whole])[-LOOK_BACK_BYTES:]
        elif not chunk:
            yield None
    if pending:
        yield Piece(pending, before, seam=seam)
