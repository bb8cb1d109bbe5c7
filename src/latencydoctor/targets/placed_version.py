"""The INT8 version of the bundled stack's model: put into Triton's repository, and taken out of it again.

Which versions there must be follows from the settings, so placing one needs no step of its own in a run: it is there
before the settings that name it, and goes after those that do not, where the state from before had none. The whole
folder appears and disappears by one rename.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.builds import MAX_DROP_RATIO, ModelBuild, files_digest
from latencydoctor.model.effects import Effect
from latencydoctor.percent import percent
from latencydoctor.targets.folder import GuardedFolder

VERSION = "2"
"""The version that has INT8 (the stack's own numbering)."""

PRECISIONS = ("inference.precision", "canary.precision")
BUILD_FILES = frozenset({"model.py", "encoder.onnx", "encodings.npz", "build.json"})
DERIVED = "__pycache__"
"""Python's own folder, made when the server loads the version: no part of it."""

TEMPORARY = ".version.latencydoctor.tmp"
"""Where a version is put together, out of the server's sight; one name for all runs, which follow each other."""

CHUNK_BYTES = 1 << 20

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def versions_object(model: str) -> str:
    """What the version folders are called among the objects of a plan."""
    return f"models/{model} versions"


def asks_int8(settings: Mapping[str, str]) -> bool:
    """Whether settings (dotted key, value) need the INT8 version."""
    return any(settings.get(key) == "int8" for key in PRECISIONS)


def no_build() -> ModelBuild:
    """Where nobody said where builds lie."""
    raise KnownError("there is no INT8 build to serve", hint="Run `latencydoctor quantise`.")


class PlacedVersion:
    """The version folders of one model. `find` gives the build to place; KnownError where there is none."""

    def __init__(self, folder: GuardedFolder, find: Callable[[], ModelBuild]) -> None:
        self._folder = folder
        self._effects = folder.effects
        self._find = find

    def digest(self, model: str) -> str:
        """One digest of all files of all versions; KnownError where they cannot be read."""
        with self._opened(model) as (_, versions):
            found = {
                f"{version}/{name}": digest
                for version in sorted(_names(versions))
                if version.isdecimal()
                for name, digest in self._files(versions, version).items()
            }
        return files_digest(found)

    def tidy(self) -> None:
        """Removes what a killed run was putting together or taking away."""
        root = os.open(self._folder.path, os.O_RDONLY | _FOLDER)
        try:
            self._clear(root)
        except OSError as error:
            raise KnownError(
                f"{self._folder.path / TEMPORARY} cannot be removed: {error.strerror}", hint="Remove it by hand."
            ) from error
        finally:
            os.close(root)

    def ensure(self, model: str) -> None:
        """Puts the build into the repository unless a version is there. Refused when it loses too much."""
        with self._opened(model) as (root, versions):
            if VERSION in _names(versions):
                return
            build = self._find()
            if build.drop_upper_ratio >= MAX_DROP_RATIO:
                raise Refused(
                    f"the INT8 build may lose {percent(build.drop_upper_ratio, 2)} of top-1", hint="Stay with fp32."
                )
            if odd := BUILD_FILES ^ {name for name, _, _ in build.files}:
                raise KnownError(
                    f"{build.folder} holds other files than a build has: {', '.join(sorted(odd))}",
                    hint="Make it anew: `latencydoctor quantise --again`.",
                )
            self._assemble(root, build)
            with self._effects(Effect.VERSION_PLACE):
                os.rename(TEMPORARY, VERSION, src_dir_fd=root, dst_dir_fd=versions)
            self._sync(versions)

    def withdraw(self, model: str) -> None:
        """Takes the version out again where it is a build of ours, and leaves any other alone."""
        with self._opened(model) as (root, versions):
            if VERSION not in _names(versions) or set(self._files(versions, VERSION)) != BUILD_FILES:
                return
            with self._effects(Effect.VERSION_WITHDRAW):
                os.rename(VERSION, TEMPORARY, src_dir_fd=versions, dst_dir_fd=root)
            self._sync(versions)
            self._clear(root)

    def _assemble(self, root: int, build: ModelBuild) -> None:
        with self._effects(Effect.VERSION_FOLDER):
            os.mkdir(TEMPORARY, 0o700, dir_fd=root)
        made = os.open(TEMPORARY, os.O_RDONLY | _FOLDER, dir_fd=root)
        try:
            for name, _, digest in build.files:
                self._copy(Path(build.folder) / name, made, name, digest)
            self._sync(made)
        finally:
            os.close(made)

    def _copy(self, source: Path, folder: int, name: str, digest: str) -> None:
        content = source.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise KnownError(f"{source} changed while it was read", hint="Run `latencydoctor quantise`, then again.")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._effects(Effect.FILE_CREATE):
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            with self._effects(Effect.FILE_WRITE):
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view) :]
            with self._effects(Effect.FILE_SYNC):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _sync(self, folder: int) -> None:
        with self._effects(Effect.FILE_ENTRY_SYNC):
            os.fsync(folder)

    def _clear(self, root: int) -> None:
        """Removes what a killed run was putting together, or what has just been taken out."""
        with suppress(FileNotFoundError):
            self._remove(root, TEMPORARY)

    def _remove(self, parent: int, name: str) -> None:
        folder = os.open(name, os.O_RDONLY | _FOLDER, dir_fd=parent)
        try:
            for entry in _names(folder):
                if stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
                    self._remove(folder, entry)
                else:
                    with self._effects(Effect.FILE_CLEAR):
                        os.unlink(entry, dir_fd=folder)
        finally:
            os.close(folder)
        with self._effects(Effect.VERSION_REMOVE):
            os.rmdir(name, dir_fd=parent)

    def _files(self, versions: int, version: str) -> dict[str, str]:
        """Digest by name of what a version holds; what is no plain file counts by its name alone."""
        folder = os.open(version, os.O_RDONLY | _FOLDER, dir_fd=versions)
        try:
            names = sorted(name for name in _names(folder) if name != DERIVED)
            return {name: self._digest_of(folder, name) for name in names}
        finally:
            os.close(folder)

    @staticmethod
    def _digest_of(folder: int, name: str) -> str:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return "no plain file"
        found = hashlib.sha256()
        with os.fdopen(os.open(name, os.O_RDONLY | _FILE, dir_fd=folder), "rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                found.update(chunk)
        return found.hexdigest()

    @contextmanager
    def _opened(self, model: str) -> Iterator[tuple[int, int]]:
        """The state folder and the model's folder in the repository, each step taken from the one before."""
        held: list[int] = []
        try:
            held.append(os.open(self._folder.path, os.O_RDONLY | _FOLDER))
            for part in ("models", model):
                held.append(os.open(part, os.O_RDONLY | _FOLDER, dir_fd=held[-1]))
            yield held[0], held[-1]
        except OSError as error:
            raise KnownError(
                f"the versions of {model} in {self._folder.path} cannot be read or changed: {error.strerror}",
                hint="Make room or fix the folder's rights.",
            ) from error
        finally:
            for descriptor in reversed(held):
                os.close(descriptor)


def _names(folder: int) -> list[str]:
    return os.listdir(folder)
