"""The model's folder in Triton's repository as a starting stack needs it: configuration and versions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.versions import MODEL_SOURCE, SHELL_FILE, VERSIONS


def write_model(folder: Path, config_pbtxt: str, versions: Sequence[str], model: Path, cache: Path) -> None:
    """Makes the folder anew; KnownError, with the folder as it was, where a version was never built."""
    from latencydoctor.stack import int8_build  # noqa: PLC0415 - loads ONNX Runtime

    needed = VERSIONS["int8"] in versions
    build = int8_build.location(model, cache) if needed else None
    if build is not None and not build.is_dir():
        raise KnownError(
            "the settings ask for int8, and the encoder has not been rebuilt in INT8 yet",
            hint="Run `latencydoctor quantise`, or set precision to fp32.",
        )
    shutil.rmtree(folder, ignore_errors=True)
    first = folder / VERSIONS["fp32"]
    first.mkdir(mode=0o700, parents=True)
    write_atomically(first / SHELL_FILE, (MODEL_SOURCE / SHELL_FILE).read_text(encoding="utf-8"))
    if build is not None:
        shutil.copytree(build, folder / VERSIONS["int8"])
    write_atomically(folder / "config.pbtxt", config_pbtxt)
