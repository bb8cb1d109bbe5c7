"""The bundled encoder rebuilt in INT8: how much smaller and faster, what it loses, and whether a bad build is refused.

    python -m benchmarks.int8

Builds every candidate of `latencydoctor quantise` in a folder of its own and measures each on the FAQ's held-out
questions; then calibrates one on noise, which must be refused by the same code. `accuracy_loss` in the last line is the
upper 95 % bound of the drop of top-1. QUICK=1 builds the first candidate only.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.told import explain
from latencydoctor.errors import KnownError
from latencydoctor.stack import prepare
from latencydoctor.stack.encoder import corpus, encodings, onnx_model
from latencydoctor.stack.quantise import build
from latencydoctor.stack.quantise.recipes import FOR_CPU, FOR_TENSORRT
from latencydoctor.stack.quantise.sheet import Build, Trial

BAD_QUESTIONS = 64
SEED = 1


def progress(line: str) -> None:
    """What happens, on stderr."""
    sys.stderr.write(f"{line}\n")


def noise(subject: build.Subject) -> build.Subject:
    """The same model, calibrated on single words of chance: the ranges do not hold what questions bring."""
    ids = np.zeros_like(subject.calibration.ids[:BAD_QUESTIONS])
    ids[:, 0] = np.random.default_rng(SEED).integers(1000, 30_000, len(ids))
    sample = dataclasses.replace(subject.calibration, ids=ids, mask=(ids != 0).astype(np.int64))
    return dataclasses.replace(subject, calibration=sample)


def refused_bad(subject: build.Subject, folder: Path) -> bool:
    """Whether what is calibrated on noise is refused, and nothing of it kept."""
    try:
        build.build(noise(subject), folder, progress, FOR_CPU[1:2])
    except KnownError as error:
        progress(error.message)
        return not list(folder.iterdir())
    return False


def row(trial: Trial) -> str:
    """One candidate's line."""
    loss = trial.loss
    end = "refused" if trial.refused else ""
    timed = " ".join(f"{one.ratio:5.2f}x@{one.size}" for one in trial.timings) or "not timed"
    return (
        f"{trial.recipe:<40}{trial.size_bytes / 1e6:7.1f} MB  top-1 {loss.top1_after_ratio:.2%}  "
        f"drop {loss.drop_ratio:6.2%}, at most {loss.drop_upper_ratio:.2%}  {timed}  {end}"
    )


def show(found: Build, extra: Sequence[Trial]) -> None:
    """The table; the kept one first."""
    vnni = "with" if found.vnni else "without"
    print(f"one thread of {found.cpu}, {vnni} VNNI; FP32: {found.model_bytes / 1e6:.1f} MB")
    for trial in (found.kept, *found.others, *extra):
        print(row(trial))
    for one in found.kept.timings:
        print(f"batch {one.size:>3}: {one.before_ms:7.2f} ms FP32, {one.after_ms:7.2f} ms INT8, {one.ratio:.2f} times")


def main() -> None:
    """Measures, prints the table, and the figures as the last line."""
    quick = bool(os.environ.get("QUICK"))
    model = onnx_model.model_path()
    known = encodings.prepare(corpus.faq_corpus(), model, prepare.user_cache())
    subject = build.subject(model, encodings.load(known))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "good").mkdir()
        found = build.build(subject, folder / "good", progress, FOR_CPU[:1] if quick else FOR_CPU)
        extra = [] if quick else [build.tried(FOR_TENSORRT, folder / "explicit.onnx", subject, progress)]
        (folder / "bad").mkdir()
        refused = refused_bad(subject, folder / "bad")
    show(found, extra)
    kept = found.kept
    figures = {
        "size_ratio": round(found.model_bytes / kept.size_bytes, 3),
        "speedup_b1": round(kept.speedup_b1, 3),
        "accuracy_loss": round(kept.loss.drop_upper_ratio, 5),
        "refused_bad": refused,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    explain(__doc__)
    main()
