"""Builds the wheel the way it ships (from the sdist), compares it with the tree, and tries it in a clean environment.

Only this proves that rules/ and playbooks/ are in the wheel: an editable install reads them from the checkout, and
symbolic links would be in a wheel built from the tree but vanish from one built from the sdist.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/latencydoctor/"
CONTENT = ("rules/", "playbooks/")


class WheelError(Exception):
    """The wheel is not what it should be; the message says how."""


def build(into: Path) -> Path:
    """Build the sdist, and the wheel from it, with the build backend of this environment."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WheelError(f"the build failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return next(into.glob("*.whl"))


def expected_files(paths: Iterable[str]) -> set[str]:
    """Where the tree's files are to be in the wheel: the package under its name, content under `_bundled`."""
    inside = {path.removeprefix("src/") for path in paths if path.startswith(PACKAGE)}
    content = {f"latencydoctor/_bundled/{path}" for path in paths if path.startswith(CONTENT)}
    return inside | content


def tree_files() -> list[str]:
    """Every file of the tree that git tracks or would track; those deleted but not yet committed are left out."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def compare(wheel: Path, tree: Iterable[str]) -> None:
    """Raise WheelError unless the wheel holds the tree's package and content files, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = expected_files(list(tree))
    if missing := sorted(wanted - shipped):
        raise WheelError(f"{len(missing)} files are not in the wheel: {', '.join(missing[:10])}")
    if extra := sorted(shipped - wanted):
        raise WheelError(f"{len(extra)} files in the wheel are not in the tree: {', '.join(extra[:10])}")


def install(wheel: Path, into: Path) -> Path:
    """Make an environment with the wheel and its core dependencies only; returns its bin folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(into)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(into / "bin" / "python"), "install", "-q", "-q", "--no-compile"]
    done = subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=False)
    if done.returncode != 0:
        raise WheelError("installing the wheel in a clean environment failed, see above")
    return into / "bin"


def try_out(bin_folder: Path, cwd: Path) -> None:
    """Run the installed program away from the checkout, so that only what the wheel brings can answer."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LATENCYDOCTOR", "COV"))}
    for arguments in (["--help"], ["--version"], ["rules", "check"]):
        command = [str(bin_folder / "latencydoctor"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean, check=False)
        if done.returncode != 0:
            shown = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise WheelError(f"`latencydoctor {' '.join(arguments)}` exits {done.returncode} from the wheel:\n{shown}")


def main() -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="latencydoctor-wheel-") as name:
        folder = Path(name)
        empty = folder / "empty"
        empty.mkdir()
        try:
            wheel = build(folder / "dist")
            compare(wheel, tree_files())
            try_out(install(wheel, folder / "venv"), cwd=empty)
        except WheelError as error:
            print(f"check_wheel: {error}", file=sys.stderr)
            return 1
        print(f"{wheel.name}: built from the sdist, complete, works alone ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
