"""Packed logs as plain bytes: gzip, zstd, bzip2 and xz, whatever is in them up to where they are damaged or absurd.

Rotated logs are cut short by full disks and reboots, joined from several members, and sometimes made to unpack to
more than any machine holds. So what could be unpacked is handed on first, and why it ends comes after.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

ReadBytes = Callable[[int], bytes]
"""Gives the next bytes, fewer than asked for only if no more are there yet, none at the end."""

HEAD_BYTES = 4096
"""How much of a file says what it is."""

_PACKED_BYTES = 256 * 1024
_WIDEST_ZSTD_WINDOW_LOG = 25
"""32 MiB of memory, what zstd -20 asks for; one flag more would take as much as a whole reader may."""

_TRIED_BYTES = 256 * 1024 * 1024
_MOST_SHRUNK = 400
"""Repetitive logs shrink a hundredfold. What shrinks more and is large as well was made to."""


class Damaged(Exception):
    """The bytes end here, and why. All that could be read before has been handed on."""


class Absurd(Damaged):
    """The bytes were given up, though more could be read."""


@dataclass(slots=True)
class Limits:
    """How much may be unpacked from one file."""

    most_bytes: int
    tried_bytes: int = _TRIED_BYTES
    most_shrunk: int = _MOST_SHRUNK


class _Unpacker(Protocol):
    """What zstd's, bzip2's and xz's decompressors have in common, and zlib's when wrapped."""

    eof: bool
    unused_data: bytes
    needs_input: bool

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """The next bytes of this member, at most so many."""
        ...


class _Gzip:
    """zlib's decompressor with the manners of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))


@dataclass(frozen=True, slots=True)
class Packing:
    """A way to pack: how it starts, and what unpacks it."""

    name: str
    magic: bytes
    make: Callable[[], Any]


def _zstd() -> Any:
    library = _zstd_library()
    return library.ZstdDecompressor(options={library.DecompressionParameter.window_log_max: _WIDEST_ZSTD_WINDOW_LOG})


def _zstd_library() -> Any:
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:  # before Python 3.14
        return importlib.import_module("backports.zstd")


def _errors(packing: Packing) -> tuple[type[Exception], ...]:
    own = {"zstd": lambda: _zstd_library().ZstdError, "xz": lambda: importlib.import_module("lzma").LZMAError}
    more = (own[packing.name](),) if packing.name in own else ()
    return (zlib.error, OSError, EOFError, ValueError, *more)


_PACKINGS = (
    Packing("gzip", b"\x1f\x8b", _Gzip),
    Packing("zstd", b"\x28\xb5\x2f\xfd", _zstd),
    Packing("bzip2", b"BZh", lambda: importlib.import_module("bz2").BZ2Decompressor()),
    Packing("xz", b"\xfd7zXZ\x00", lambda: importlib.import_module("lzma").LZMADecompressor(memlimit=64 * 1024 * 1024)),
)


def packing_of(head: bytes) -> Packing | None:
    """How a file that starts with these bytes is packed, None for a plain one."""
    return next((one for one in _PACKINGS if head.startswith(one.magic)), None)


def unpacked(packing: Packing, read: ReadBytes, chunk_bytes: int, limits: Limits) -> Iterator[bytes]:
    """What a packed stream holds, all its members, in chunks of at most `chunk_bytes`.

    Raises `Damaged` at the end if it is cut short, broken or not worth going on with.
    """
    errors = _errors(packing)
    source = _Counted(read)
    unpacker: _Unpacker = packing.make()
    given = 0
    begun = False
    try:
        for data in source:
            while True:
                chunk = unpacker.decompress(data, chunk_bytes)
                begun, data = True, b""
                if chunk:
                    given += len(chunk)
                    yield chunk
                    _check(given, source.bytes, limits)
                if unpacker.eof:
                    # Members may follow each other, and padding the last one.
                    data = unpacker.unused_data.lstrip(b"\0")
                    unpacker, begun = packing.make(), bool(data)
                    if not data:
                        break
                elif unpacker.needs_input:
                    break
    except errors as error:
        raise Damaged(f"damaged after {given} bytes: {error}") from error
    if begun and not unpacker.eof:
        raise Damaged(f"damaged after {given} bytes: it was cut short")


def _check(given: int, packed: int, limits: Limits) -> None:
    if given >= limits.most_bytes:
        raise Absurd(f"given up after {given} unpacked bytes")
    if given > limits.tried_bytes and given > limits.most_shrunk * packed:
        raise Absurd(f"given up after {given} unpacked bytes: {given // max(packed, 1)} times its size is no log")


class _Counted:
    """The packed bytes in portions, with how many there were."""

    def __init__(self, read: ReadBytes) -> None:
        self._read = read
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        while data := self._read(_PACKED_BYTES):
            self.bytes += len(data)
            yield data
