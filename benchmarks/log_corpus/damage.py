"""What happens to logs on their way: line ends, colours, cut and packed files, foreign bytes, copies from tickets.

Damage spares what a signature says, except for what a reader must undo (line ends, colours, quotes, escapes, packing).
"""

from __future__ import annotations

import gzip
import html
import io
import random
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType

from benchmarks.log_corpus.compose import Line

Busy = Sequence[tuple[float, float]]
_LONG = "x" * 100_000


def _free(busy: Busy, at_s: float) -> bool:
    index = bisect_right(busy, (at_s, float("inf"))) - 1
    return index < 0 or at_s > busy[index][1]


def _some(rng: random.Random, lines: list[Line], busy: Busy, share: float) -> list[int]:
    wanted = max(1, int(len(lines) * share))
    return [index for index in rng.choices(range(len(lines)), k=wanted) if _free(busy, lines[index][0])]


def _windows(_rng: random.Random, lines: list[Line], _busy: Busy) -> None:
    lines[:] = [(at_s, line + "\r") for at_s, line in lines]


def _foreign_bytes(rng: random.Random, lines: list[Line], busy: Busy) -> None:
    for index in _some(rng, lines, busy, 0.01):
        at_s, line = lines[index]
        cut = rng.randint(len(line) // 2, len(line))
        lines[index] = (
            at_s,
            line[:cut] + rng.choice(("\x00", "\udcff\udcfe", "\udce2\udc94", "\x00\x00\x01")) + line[cut:],
        )


def _long_lines(rng: random.Random, lines: list[Line], busy: Busy) -> None:
    for index in _some(rng, lines, busy, 0.0)[:2]:
        at_s, line = lines[index]
        lines[index] = (at_s, line + " " + _LONG)


def _progress(rng: random.Random, lines: list[Line], busy: Busy) -> None:
    bar = "\r".join(
        f"Loading safetensors checkpoint shards: {part * 10:3}% Completed | {part}/10 [00:0{part}<00:09,  1.2s/it]"
        for part in range(10)
    )
    for index in _some(rng, lines, busy, 0.002):
        lines.insert(index, (lines[index][0], bar))


def _interleaved(rng: random.Random, lines: list[Line], busy: Busy) -> None:
    for index in _some(rng, lines, busy, 0.005):
        if index + 1 < len(lines) and _free(busy, lines[index + 1][0]):
            at_s, first = lines[index]
            cut = len(first) // 2
            lines[index] = (at_s, first[:cut] + lines[index + 1][1] + first[cut:])


def _quoted(_rng: random.Random, lines: list[Line], _busy: Busy) -> None:
    lines[:] = [(at_s, f"> {line}") for at_s, line in lines]


def _escaped(_rng: random.Random, lines: list[Line], _busy: Busy) -> None:
    lines[:] = [(at_s, html.escape(line, quote=True)) for at_s, line in lines]


def _doubled(rng: random.Random, lines: list[Line], busy: Busy) -> None:
    for index in _some(rng, lines, busy, 0.002):
        lines[index:index] = [lines[index]] * 7


Damage = Callable[[random.Random, list[Line], Busy], None]
KINDS: dict[str, tuple[Damage, int]] = {
    "none": (lambda _rng, _lines, _busy: None, 55),
    "crlf": (_windows, 8),
    "foreign_bytes": (_foreign_bytes, 10),
    "long_lines": (_long_lines, 6),
    "progress_bars": (_progress, 6),
    "interleaved": (_interleaved, 5),
    "doubled": (_doubled, 4),
    "quoted": (_quoted, 3),
    "html": (_escaped, 3),
}
BLOCKS = ("journal_export",)
"""Wrappers whose lines depend on each other: only damage that keeps them is done to these."""

_SAFE_FOR_BLOCKS = ("none",)
PACKINGS = {"plain": 56, "gz": 12, "gz_members": 6, "gz_cut": 6, "zst": 6, "rotated": 14}


def damage(rng: random.Random, lines: list[Line], busy: Busy, stack: Sequence[str]) -> str:
    """Does one random kind of damage in place and names it."""
    names = list(_SAFE_FOR_BLOCKS) if any(name in BLOCKS for name in stack) else list(KINDS)
    name = rng.choices(names, [KINDS[one][1] for one in names])[0]
    KINDS[name][0](rng, lines, sorted(busy))
    return name


def encode(lines: Sequence[Line]) -> bytes:
    """The lines as bytes of a file."""
    return "".join(f"{line}\n" for _, line in lines).encode("utf-8", "surrogateescape")


def packed(rng: random.Random, lines: Sequence[Line], busy: Busy) -> tuple[str, dict[str, bytes]]:
    """A way of keeping the file, and its files by name; a cut file loses harmless lines only."""
    name = rng.choices(list(PACKINGS), list(PACKINGS.values()))[0]
    if name == "rotated" and len(lines) > 30:
        cuts = _cuts(rng, lines, sorted(busy))
        return name, {
            "server.log.2.gz": gzip.compress(encode(lines[: cuts[0]]), 1),
            "server.log.1": encode(lines[cuts[0] : cuts[1]]),
            "server.log": encode(lines[cuts[1] :]),
        }
    if name == "gz_members":
        middle = len(lines) // 2
        return name, {
            "server.log.gz": gzip.compress(encode(lines[:middle]), 1) + gzip.compress(encode(lines[middle:]), 1)
        }
    if name == "gz_cut":
        return name, {"server.log.gz": _cut(lines)}
    if name == "zst":
        return name, {"server.log.zst": _zstd().compress(encode(lines))}
    if name == "gz":
        return name, {"server.log.gz": gzip.compress(encode(lines), 1)}
    data = encode(lines)
    return "plain", {"server.log": data if rng.random() < 0.9 else data[:-1]}


def _zstd() -> ModuleType:
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def _cut(lines: Sequence[Line]) -> bytes:
    whole = io.BytesIO()
    with gzip.GzipFile(fileobj=whole, mode="wb", compresslevel=1) as stream:
        stream.write(encode(lines))
        stream.flush()
        kept = whole.tell()
        stream.write(b"cut off\n" * 500)
    return whole.getvalue()[: kept + 3]


def _cuts(rng: random.Random, lines: Sequence[Line], busy: Busy) -> tuple[int, int]:
    # A cut inside a record would be a fair case, but no reader could then be told right from wrong.
    free = [
        index
        for index in range(1, len(lines))
        if lines[index][0] > lines[index - 1][0] and _free(busy, lines[index][0])
    ]
    if len(free) < 2:
        return 0, len(lines)
    first, second = sorted(rng.sample(free, 2))
    return first, second
