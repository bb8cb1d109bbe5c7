"""One file that holds everything a diagnosis was made from, so that it can be made again anywhere, byte for byte.

Canonical JSON (sorted keys, floats as Python prints them), gzipped without a time stamp when the name ends in `.gz`.
Bundles travel by chat and mail, so reading trusts nothing: sizes are capped and every field is checked.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from latencydoctor.errors import KnownError, Location
from latencydoctor.model.evidence import LARGEST_VALUE, Collected, Series
from latencydoctor.sources.records import RecordError, read_record

FORMAT = "latencydoctor-bundle"
SCHEMA = 1

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TEXT_BYTES = 256 * 1024 * 1024
"""Unpacked size accepted. Half an hour of 40 signals is 0.5 MB; a bomb unpacks a thousand to one."""

MOST_WINDOWS = 10_000
"""Far above the 720 that a range is cut into. Memory and time grow with their number, whatever the file's size."""

SHORTEST_WINDOW_S = 0.001

_LAST_S = 2.5e11
"""In the year 9892; a calendar ends before 10000, and before 1970 nothing was measured."""

_GZIP_MAGIC = b"\x1f\x8b"


def write(path: Path, collected: Collected) -> None:
    """Store a record; the file appears complete or not at all. `KnownError` when it cannot be written."""
    text = dump(collected).encode()
    data = _pack(text) if path.suffix == ".gz" else text
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
            temporary = Path(stream.name)
            try:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise KnownError(f"the bundle cannot be written: {reason}", location=Location(str(path))) from error


def read(path: Path) -> Collected:
    """Load a record; `KnownError` says what is wrong with the file."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise KnownError(f"the bundle cannot be read: {reason}", location=Location(str(path))) from error
    if len(data) > MAX_FILE_BYTES:
        raise _broken(path, f"is larger than {MAX_FILE_BYTES // 1024**2} MiB")
    return load(_unpack(data, path), path)


def dump(collected: Collected) -> str:
    """The canonical text of a record."""
    content = {"format": FORMAT, "schema": SCHEMA, "collected": asdict(collected)}
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def load(text: bytes, path: Path) -> Collected:
    """The record a text holds; `path` stands for it in messages."""
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _broken(path, "is cut off or is no JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _broken(path, "is no bundle of latencydoctor", hint="Bundles are made with diagnose --save FILE.")
    if content.get("schema") != SCHEMA:
        hint = "Read it with the release that wrote it, or a newer one."
        raise _broken(path, f"has a schema that this release does not know (it knows {SCHEMA})", hint)
    try:
        collected = read_record(Collected, content.get("collected"), "collected")
        _check(collected)
    except RecordError as error:
        raise _broken(path, str(error)) from error
    return collected


def _check(collected: Collected) -> None:
    """What types alone do not say."""
    if collected.window_s < SHORTEST_WINDOW_S:
        raise RecordError(f"collected.window_s must be at least {SHORTEST_WINDOW_S:g}")
    for where, moment_s in _moments(collected):
        if moment_s is not None and not 0 <= moment_s <= _LAST_S:
            raise RecordError(f"{where} is no moment of this age")
    for index, fact in enumerate(collected.facts):
        _check_size(f"collected.facts[{index}].value", fact.value)
    for index, series in enumerate(collected.series):
        _check_series(f"collected.series[{index}]", series)
        if series.times_s and collected.now_s - series.times_s[0] > MOST_WINDOWS * collected.window_s:
            raise RecordError(
                f"collected.series[{index}] begins more than {MOST_WINDOWS} windows before collected.now_s"
            )
    for index, series in enumerate(collected.baseline_series):
        _check_series(f"collected.baseline_series[{index}]", series)


def _check_series(where: str, series: Series) -> None:
    if len(series.times_s) != len(series.values):
        raise RecordError(f"{where} has {len(series.times_s)} times but {len(series.values)} values")
    if any(later <= earlier for earlier, later in pairwise(series.times_s)):
        raise RecordError(f"{where}.times_s must rise")
    _check_size(f"{where}.values", *series.values)


def _check_size(where: str, *values: float) -> None:
    if any(abs(value) > LARGEST_VALUE for value in values):
        raise RecordError(f"{where} must not exceed {LARGEST_VALUE:g}")


def _moments(collected: Collected) -> Iterator[tuple[str, float | None]]:
    """All times but those of series, each with its field."""
    yield "collected.now_s", collected.now_s
    if collected.baseline is not None:
        yield "collected.baseline.start_s", collected.baseline.start_s
        yield "collected.baseline.end_s", collected.baseline.end_s
    for index, event in enumerate(collected.log_events):
        yield f"collected.log_events[{index}].first_s", event.first_s
        yield f"collected.log_events[{index}].last_s", event.last_s


def _pack(text: bytes) -> bytes:
    buffer = io.BytesIO()
    # No file name and no time in the header: the same record gives the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as stream:
        stream.write(text)
    return buffer.getvalue()


def _unpack(data: bytes, path: Path) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            text = stream.read(MAX_TEXT_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise _broken(path, "is cut off or damaged") from error
    if len(text) > MAX_TEXT_BYTES:
        raise _broken(path, f"unpacks to more than {MAX_TEXT_BYTES // 1024**2} MiB")
    return text


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _broken(path: Path, reason: str, hint: str = "Make it again with diagnose --save FILE.") -> KnownError:
    return KnownError(f"the file {reason}", hint=hint, location=Location(str(path)))
