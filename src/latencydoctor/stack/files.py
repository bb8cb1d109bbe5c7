"""Writes a state folder's files so that a reader, or a crash, sees either the old file or the new one."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

LEFT_S = 3600.0
"""Whoever makes something in the user's cache needs minutes, not an hour."""


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Temporary name, fsync, rename, fsync of the folder; the temporary file never outlives a failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def clear_left(folder: Path, pattern: str) -> None:
    """Removes what makers that were killed left under such temporary names, files and whole folders."""
    for path in folder.glob(pattern):
        try:
            if path.lstat().st_mtime > time.time() - LEFT_S:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        except OSError:
            continue  # another one clears it at this moment, or it is not ours
