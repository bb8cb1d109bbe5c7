"""A private copy of the Triton server inside the wheel nvidia-pytriton, made ready to run with this Python.

The wheel's own tree has no Python stub in its backend's folder and nothing in it is executable. The copy is made once
per user and shared by all stacks.
"""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack.binaries import INSTALL_HINT
from latencydoctor.stack.files import clear_left

STUB = Path("backends") / "python" / "triton_python_backend_stub"


@dataclass(frozen=True, slots=True)
class TritonTree:
    """A runnable Triton: its folder, and the folders its libraries are in."""

    root: Path
    libraries: tuple[Path, ...]

    @property
    def server(self) -> Path:
        return self.root / "bin" / "tritonserver"

    @property
    def library_path(self) -> str:
        """The value for LD_LIBRARY_PATH."""
        return os.pathsep.join(map(str, self.libraries))


def location(cache: Path) -> TritonTree:
    """Where the tree lies in the folder `cache`, made or not. KnownError when the wheel is not installed."""
    libraries = _package().parent / "nvidia_pytriton.libs"
    return TritonTree(cache / f"triton-{importlib.metadata.version('nvidia-pytriton')}-py{_python()}", (libraries,))


def prepare(cache: Path) -> TritonTree:
    """The tree in the folder `cache`; made on first use. KnownError when the wheel or libpython is missing."""
    tree = location(cache)
    if not tree.root.is_dir():
        _copy(_package() / "tritonserver", tree.root, _python())
    if not _missing_libpython(tree):
        return tree
    return TritonTree(tree.root, (*tree.libraries, _libpython_folder(f"libpython{_python()}.so.1.0")))


def _package() -> Path:
    spec = importlib.util.find_spec("pytriton")
    if spec is None or spec.origin is None:
        raise KnownError("Triton (package nvidia-pytriton) was not found", hint=INSTALL_HINT)
    return Path(spec.origin).parent


def _python() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def _copy(source: Path, root: Path, python: str) -> None:
    """Copies beside `root` and renames, so that an interrupted copy is never taken for a whole one."""
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_left(root.parent, ".triton-*")
    staging = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
    try:
        shutil.copytree(source, staging, dirs_exist_ok=True, ignore=shutil.ignore_patterns("python_backend_stubs"))
        stub = source / "python_backend_stubs" / python / STUB.name
        shutil.copy(stub, staging / STUB)
        for program in (staging / STUB, staging / "bin" / "tritonserver"):
            program.chmod(0o755)
        try:
            staging.rename(root)
        except OSError:
            # Another `up` was quicker: its copy is as good.
            if not root.is_dir():
                raise
    except shutil.Error as error:
        # It gathers one error a file; the last part of the first is the reason.
        reason = str(error.args[0][0][-1])
        full = any(os.strerror(number) in reason for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
        what = f"the disk is full: {root.parent}" if full else f"Triton cannot be copied to {root.parent}"
        raise KnownError(
            f"{what}: {reason}", hint="Free some space, or set XDG_CACHE_HOME to another place."
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _missing_libpython(tree: TritonTree) -> bool:
    """Whether the loader cannot find the stub's libpython. Debian's python3 does not bring it; `ldd` is what knows."""
    environment = os.environ | {"LD_LIBRARY_PATH": tree.library_path}
    found = subprocess.run(["ldd", tree.root / STUB], capture_output=True, text=True, env=environment, timeout=30)
    return any("libpython" in line and "not found" in line for line in found.stdout.splitlines())


def _libpython_folder(name: str) -> Path:
    """Where a Python built from source keeps its shared library; KnownError when it has none."""
    folder = Path(sysconfig.get_config_var("LIBDIR") or "/nonexistent")
    if (folder / name).is_file():
        return folder
    package = name.removesuffix(".so.1.0")
    raise KnownError(
        f"{name} was not found: Triton's Python backend needs it",
        hint=f"Install it (Debian, Ubuntu: `apt-get install {package}`).",
    )
