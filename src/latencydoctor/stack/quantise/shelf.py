"""Where INT8 builds of the bundled encoder are kept, and making one when it is not there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.percent import percent
from latencydoctor.stack import int8_build, prepare
from latencydoctor.stack.encoder import corpus, encodings, onnx_model
from latencydoctor.stack.quantise import build
from latencydoctor.stack.quantise.accuracy import refusal
from latencydoctor.stack.quantise.recipes import FOR_TENSORRT
from latencydoctor.stack.quantise.sheet import SHEET_FILE

ENGINE_TIMEOUT_S = 900.0
PACKAGE_FOLDER = Path(__file__).parents[3]

Tell = Callable[[str], None]


def location() -> Path:
    """The folder of the build that fits today's encoder and FAQ, whether it is there or not."""
    return int8_build.location(onnx_model.model_path(), prepare.user_cache())


def make(tell: Tell, *, again: bool = False) -> Path:
    """The build's folder; builds it (a minute or two) where it is missing, or `again` is asked for."""
    found = location()
    if again or not (found / SHEET_FILE).is_file():
        build.build(_bundled(tell), prepare.user_cache(), tell)
    return found


def _bundled(tell: Tell) -> build.Subject:
    def encoding(done: int, total: int) -> None:
        if done == total:
            tell(f"the FAQ is encoded: {total} texts")

    model = onnx_model.model_path()
    known = encodings.prepare(corpus.faq_corpus(), model, prepare.user_cache(), encoding)
    return build.subject(model, encodings.load(known))


def make_engine(tell: Tell, capability: str, python: str = "") -> dict[str, object]:
    """A TensorRT engine from explicit Q/DQ in the cache, and what it is; KnownError where there is none.

    `python` is the interpreter that has TensorRT, "" for this one. The model is measured as Q/DQ by the CPU first, and
    refused like any other.
    """
    target = location().with_name(f"{location().name}-tensorrt")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    model = target / "encoder.onnx"
    subject = _bundled(tell)
    tell(f"{FOR_TENSORRT.name}: building from {len(subject.calibration.ids)} questions")
    FOR_TENSORRT.build(subject.model, model, subject.calibration.ids, subject.calibration.mask)
    loss = build.measured_loss(model, subject)
    refused = refusal(loss)
    if refused:
        raise KnownError(f"no engine was built, its Q/DQ model does not pass: {refused}", hint="Stay with fp32.")
    tell(f"{FOR_TENSORRT.name}: top-1 drops by at most {percent(loss.drop_upper_ratio, 2)}; TensorRT builds the engine")
    command = [python or sys.executable, "-m", "latencydoctor.stack.quantise.engine"]
    command += [str(model), str(target / "encoder.engine"), "--capability", capability]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=ENGINE_TIMEOUT_S,
            env={"PYTHONPATH": str(PACKAGE_FOLDER), "PATH": "/usr/bin:/bin"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KnownError(f"TensorRT's builder cannot be run: {error}", hint="Check the interpreter's path.") from error
    if done.returncode != 0:
        told = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise KnownError(
            f"no engine was built: {told[0]}",
            hint="Install tensorrt, or tensorrt-rtx-cu12 with nvidia-cuda-runtime-cu12, and name its interpreter.",
        )
    built: dict[str, object] = json.loads(done.stdout)
    return built | {"path": str(target / "encoder.engine"), "top1_drop_upper_ratio": round(loss.drop_upper_ratio, 6)}
