"""The environment that the other tools of the race run in: theirs alone, in the user's cache, at pinned versions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).with_name("race-constraints.txt")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the tools lie."""

    folder: Path

    def program(self, name: str) -> Path:
        """One of their commands."""
        return self.folder / "env" / "bin" / name


def pinned(text: str) -> dict[str, str]:
    """Version by name of package, of a file of pins."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return dict(line.split("==", 1) for line in lines if line)


def default_folder(pins: bytes) -> Path:
    """In the user's cache; other pins or another Python have a folder of their own."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made_from = pins + sys.version.encode()
    return cache / "latencydoctor" / f"race-{hashlib.sha256(made_from).hexdigest()[:12]}"


def prepare(folder: Path | None = None) -> Environment:
    """The environment, made unless it is there; ends the program with a line when it cannot be."""
    environment = Environment(folder or default_folder(PINS.read_bytes()))
    # Written last, so that an installation that was broken off is begun again.
    stamp = environment.folder / "ready"
    if not stamp.is_file():
        environment.folder.mkdir(parents=True, exist_ok=True)
        print(f"installing the other tools into {environment.folder}", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(environment.folder / "env")])
        pip = [str(environment.program("python")), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
        _run([*pip, "install", "--requirement", str(PINS)])
        stamp.touch()
    return environment


def _run(command: list[str]) -> None:
    # The checkout's packages are not theirs.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment).returncode != 0:
        sys.exit(f"'{' '.join(command)}' failed, see above")
