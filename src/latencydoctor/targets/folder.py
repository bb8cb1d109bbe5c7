"""A folder with a file that may be changed: read and replaced without ever following a link, under one lock.

Every access goes through the folder's own descriptor, so that a path cannot be swapped for one that leads outside
between a check and its use.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.targets import holder

MAX_FILE_BYTES = 256 * 1024

NAMING_S = 2.0
"""How long to wait for a holder to write itself into the lock: it does so at once, unless it is stopped or killed."""

UNNAMED = "another process that has not said who it is yet"

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Names:
    """What the files of a target are called, and what to say where its folder is not there.

    `file` is what a change replaces, a path below the folder; `lock` is what its flock is on. A file that was not there
    gets `mode`.
    """

    file: str
    lock: str
    absent: str
    hint: str
    mode: int = 0o600


class GuardedFolder:
    """One target's folder. Only the folder itself may be reached through a link, nothing inside it."""

    def __init__(self, path: Path, names: Names, effects: Effects = unwatched) -> None:
        self.path = Path(os.path.realpath(path))
        self.effects = effects
        self._names = names

    @contextmanager
    def _folder(self) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise KnownError(
                f"there is no {self._names.absent} in {self.path}: {error.strerror}", hint=self._names.hint
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, name: str) -> str:
        """A file's text, byte for byte; KnownError when it is absent, a link, too large or not UTF-8.

        `name` may lead through folders; none of them may be a link either.
        """
        with self._folder() as folder, self._parent(folder, name) as (parent, last):
            try:
                flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                with os.fdopen(os.open(last, os.O_RDONLY | flags, dir_fd=parent), "rb") as stream:
                    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                        raise KnownError(f"{self.path / name} is not a regular file", hint="Put a plain file there.")
                    content = stream.read(MAX_FILE_BYTES + 1)
            except OSError as error:
                raise self._unreadable(name, error) from error
        if len(content) > MAX_FILE_BYTES:
            raise KnownError(f"{self.path / name} is larger than {MAX_FILE_BYTES} bytes", hint="Put the file right.")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise KnownError(f"{self.path / name} is not UTF-8 text", hint="Put the file right.") from error

    @contextmanager
    def _parent(self, folder: int, name: str) -> Iterator[tuple[int, str]]:
        """The folder that a file lies in, and the file's own name; each step is taken from the one before and never
        through a link."""
        *folders, last = name.split("/")
        if not all(_PLAIN_NAME.fullmatch(part) for part in (*folders, last)):
            raise KnownError(f"{name!r} is not a plain name", hint="Names inside a target's folder are plain words.")
        held = [folder]
        try:
            try:
                for part in folders:
                    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    held.append(os.open(part, os.O_RDONLY | flags, dir_fd=held[-1]))
            except OSError as error:
                raise self._unreadable(name, error) from error
            yield held[-1], last
        finally:
            for descriptor in held[1:]:
                os.close(descriptor)

    def _unreadable(self, name: str, error: OSError) -> KnownError:
        return KnownError(
            f"{self.path / name} cannot be read: {error.strerror}",
            hint=f"Links are not followed. Is this the folder of a {self._names.absent}?",
        )

    def find(self, name: str) -> str | None:
        """As `read`, None where there is no such file."""
        with self._folder() as folder, self._parent(folder, name) as (parent, last):
            try:
                os.stat(last, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return None
        return self.read(name)

    def replace(self, name: str, text: str) -> None:
        """Replaces a file so that a reader, or a crash, sees the old text or the new one; on disk when this returns."""
        temporary = _temporary(name)
        with self._folder() as folder, self._parent(folder, name) as (parent, last):
            try:
                self._write_new(folder, temporary, text, _status(parent, last))
                with self.effects(Effect.FILE_RENAME):
                    os.replace(temporary, last, src_dir_fd=folder, dst_dir_fd=parent)
                with self.effects(Effect.FILE_ENTRY_SYNC):
                    os.fsync(parent)
            except OSError as error:
                with suppress(OSError):  # a disk with errors takes nothing more; the next run clears it
                    self._remove(folder, temporary)
                raise KnownError(
                    f"{self.path / name} cannot be written: {error.strerror}",
                    hint="Make room or fix the folder's rights; the file is as it was.",
                ) from error

    def remove(self, name: str) -> None:
        """Removes a file; gone from the disk when this returns."""
        with self._folder() as folder, self._parent(folder, name) as (parent, last):
            try:
                with self.effects(Effect.FILE_REMOVE):
                    os.unlink(last, dir_fd=parent)
                with self.effects(Effect.FILE_ENTRY_SYNC):
                    os.fsync(parent)
            except OSError as error:
                raise KnownError(
                    f"{self.path / name} cannot be removed: {error.strerror}", hint="Fix the folder's rights."
                ) from error

    def _write_new(self, folder: int, name: str, text: str, old: os.stat_result | None) -> None:
        self._remove(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        mode = self._names.mode if old is None else stat.S_IMODE(old.st_mode)
        with self.effects(Effect.FILE_CREATE):
            descriptor = os.open(name, flags, mode, dir_fd=folder)
            _allow(descriptor, mode, old)
        try:
            with self.effects(Effect.FILE_WRITE):
                _write_all(descriptor, text.encode())
            with self.effects(Effect.FILE_SYNC):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _remove(self, folder: int, name: str) -> None:
        with self.effects(Effect.FILE_CLEAR), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)

    @contextmanager
    def locked(self, run_id: str) -> Iterator[None]:
        """The folder's one lock. Refused with who holds it; a dead holder's lock is free at once (flock)."""
        with self._folder() as folder:
            try:
                with self.effects(Effect.LOCK_FILE):
                    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                    descriptor = os.open(self._names.lock, flags, 0o600, dir_fd=folder)
            except OSError as error:
                raise KnownError(
                    f"{self.path / self._names.lock} cannot be used: {error.strerror}",
                    hint="It must be a file that you may write.",
                ) from error
            try:
                self._lock(descriptor, fcntl.LOCK_EX)
                self._take_over(folder, descriptor, run_id)
                yield
                with self.effects(Effect.LOCK_CLEAR):
                    os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)

    def _take_over(self, folder: int, descriptor: int, run_id: str) -> None:
        """Names the new holder, and clears what one that was killed left behind."""
        try:
            with self.effects(Effect.LOCK_NAME):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, holder.myself(run_id), 0)
            self._remove(folder, _temporary(self._names.file))
        except OSError as error:
            raise KnownError(
                f"{self.path / self._names.lock} cannot be used: {error.strerror}",
                hint="You must be allowed to write into its folder.",
            ) from error

    def refuse_locked(self) -> None:
        """Refused, with who holds it, while another has the lock; writes nothing."""
        with self._folder() as folder:
            try:
                descriptor = os.open(self._names.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                return  # nobody ever took it; whatever else is wrong with it, taking it says
        try:
            # A free lock is empty, so the shared lock that asks gets into nobody's way.
            if os.fstat(descriptor).st_size:
                self._lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int, kind: int) -> None:
        """Takes the lock, or is Refused once its holder is known.

        A holder writes itself down just after it got the lock; until then the file is empty, or names the one that died
        with it.
        """
        end_s = time.monotonic() + NAMING_S
        while True:
            try:
                with self.effects(Effect.LOCK_TAKE):
                    fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError as error:
                who = holder.named(os.pread(descriptor, 4096, 0))
                if who or time.monotonic() >= end_s:
                    raise Refused(
                        f"{self.path / self._names.file} is locked by {who or UNNAMED}",
                        hint="Wait until that run has ended; a dead holder's lock is free by itself.",
                    ) from error
            else:
                return
            time.sleep(0.01)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _allow(descriptor: int, mode: int, old: os.stat_result | None) -> None:
    """Whoever could read the old file can read the new one: the server may be another user's."""
    new = os.fstat(descriptor)
    if old is not None and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    if stat.S_IMODE(new.st_mode) != mode:  # the process's umask took something away
        os.fchmod(descriptor, mode)


def _temporary(name: str) -> str:
    """One name for all runs, which follow each other under the lock: what a killed one left, the next one removes."""
    return f".{name.replace('/', '.')}.latencydoctor.tmp"


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
