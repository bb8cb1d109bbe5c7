"""Reads the parts' log files: their last lines, new lines as they come, and the last thing that went wrong."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TAIL_BYTES = 256 * 1024
MAX_REASON = 300

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TROUBLE = re.compile(r"^E\d{4} |error|exception|cannot|denied|refus|no space", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a part's log, control bytes removed."""

    part: str
    text: str


def clean(text: str) -> str:
    """The text without control bytes and terminal sequences: what a log holds may come from strangers."""
    return CONTROL.sub("", text)


def tail(path: Path, lines: int) -> list[str]:
    """The last `lines` lines of a log, cleaned; none when there is no such file."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - TAIL_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [clean(line) for line in text.splitlines()[-lines:]] if lines else []


def last_reason(path: Path) -> str:
    """The last line that speaks of trouble, else the last line at all, shortened; "" for an empty log."""
    found = [line.strip() for line in tail(path, 200) if line.strip()]
    trouble = [line for line in found if TROUBLE.search(line)]
    chosen = (trouble or found or [""])[-1]
    return chosen if len(chosen) <= MAX_REASON else chosen[: MAX_REASON - 1] + "…"


def follow(paths: dict[str, Path], pause_s: float = 0.2) -> Iterator[LogLine]:
    """Lines written from now on to several logs, for ever; copes with rotation and with files to come."""
    return _follow(paths, {part: _size(path) for part, path in paths.items()}, pause_s)


def _follow(paths: dict[str, Path], places: dict[str, int], pause_s: float) -> Iterator[LogLine]:
    rest = dict.fromkeys(paths, "")
    while True:
        for part, path in paths.items():
            if _size(path) < places[part]:
                places[part], rest[part] = 0, ""
            new, places[part] = _read_from(path, places[part])
            *whole, rest[part] = (rest[part] + new).split("\n")
            yield from (LogLine(part, clean(line)) for line in whole)
        time.sleep(pause_s)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_from(path: Path, place: int) -> tuple[str, int]:
    try:
        with path.open("rb") as stream:
            stream.seek(place)
            raw = stream.read(TAIL_BYTES)
    except OSError:
        return "", place
    return raw.decode("utf-8", "replace"), place + len(raw)
