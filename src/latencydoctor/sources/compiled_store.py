"""Keeps compiled log patterns in the user's cache folder: reading them back takes a thousandth of compiling them.

What is read goes to an engine that trusts it, so only a file of this user, in a folder that nobody else may write to,
with the digest it was written with, is believed. Nothing here ever fails: without a cache the patterns are compiled.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from latencydoctor.evidence.logs.compiled import scanner_for
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.rule import LogRule

_MOST_BYTES = 64 * 1024 * 1024
_MOST_FILES = 8
"""One set of rules makes one file; a folder of somebody who writes rules would grow otherwise."""

_LENGTH_BYTES = 8
_SUFFIX = ".patterns"
_NEW = ".new-"
_LEFT_S = 3600.0


def scanner(rules: Sequence[LogRule]) -> Scanner:
    """The scanner for these rules, compiled at most once for each user."""
    return scanner_for(rules, store=CacheFolder(_user_folder()))


def _user_folder() -> Path | None:
    from platformdirs import user_cache_path  # noqa: PLC0415 - only where logs are read

    try:
        return user_cache_path("latencydoctor", appauthor=False) / "log-patterns"
    except (OSError, RuntimeError):  # nobody's home
        return None


class CacheFolder:
    """Implements the scanner's `CompiledStore` over a folder; without one nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def load(self, key: str) -> Sequence[bytes] | None:
        """What was saved under that key, None where nothing was or it cannot be trusted."""
        if self._folder is None:
            return None
        try:
            if not _is_ours_alone(os.lstat(self._folder)):
                return None
            # A link is nobody's file.
            handle = os.open(self._folder / f"{key}{_SUFFIX}", os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                if not _is_ours_alone(status) or status.st_size > _MOST_BYTES:
                    return None
                data = file.read()
        except OSError:
            return None
        digest, body = data[:32], data[32:]
        return _parts(body) if hashlib.sha256(body).digest() == digest else None

    def save(self, key: str, parts: Sequence[bytes]) -> None:
        """Keep it, if that can be done; a reader sees all of it or nothing."""
        if self._folder is None:
            return
        body = b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in parts)
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours_alone(os.lstat(self._folder)):
                return
            self._write(key, hashlib.sha256(body).digest() + body)
            self._forget_old()

    def _write(self, key: str, data: bytes) -> None:
        assert self._folder is not None
        handle, name = tempfile.mkstemp(prefix=_NEW, dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(self._folder / f"{key}{_SUFFIX}")
        except OSError:
            Path(name).unlink()
            raise

    def _forget_old(self) -> None:
        assert self._folder is not None
        kept = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
        # What a killed writer left goes too; one that is at work needs a moment, not an hour.
        left = [path for path in self._folder.glob(f"{_NEW}*") if path.stat().st_mtime < time.time() - _LEFT_S]
        for path in (*kept[_MOST_FILES:], *left):
            path.unlink(missing_ok=True)


def _is_ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o022


def _parts(body: bytes) -> list[bytes]:
    found: list[bytes] = []
    place = 0
    while place < len(body):
        length = int.from_bytes(body[place : place + _LENGTH_BYTES], "big")
        place += _LENGTH_BYTES
        found.append(body[place : place + length])
        place += length
    return found
