"""What is known of an INT8 build, as a file beside it: made from what, how accurate, how fast, measured where."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from latencydoctor.stack.quantise.accuracy import Loss
from latencydoctor.stack.quantise.speed import Timing

SHEET_FILE = "build.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate: its size, its loss (the worse of alone and in batches), its times, and why it may not serve."""

    recipe: str
    size_bytes: int
    loss: Loss
    timings: tuple[Timing, ...]
    refused: str

    @property
    def speedup_b1(self) -> float:
        """How many times faster one request alone is."""
        return self.timings[0].ratio if self.timings else 0.0


@dataclass(frozen=True, slots=True)
class Build:
    """The candidate that was kept, and the others. `inputs` is the digest of everything it was made from."""

    inputs: str
    model_bytes: int
    kept: Trial
    others: tuple[Trial, ...]
    cpu: str
    vnni: bool


def dump(build: Build) -> str:
    """The sheet's text: plain figures by name, with their units."""
    return json.dumps(_plain(build), indent=1, sort_keys=True) + "\n"


def _plain(build: Build) -> dict[str, object]:
    kept = build.kept
    return {
        "schema": SCHEMA,
        "inputs": build.inputs,
        "precision": "int8",
        "recipe": kept.recipe,
        "bytes_before": build.model_bytes,
        "bytes_after": kept.size_bytes,
        "questions": kept.loss.questions,
        "top1_before_ratio": round(kept.loss.top1_before_ratio, 6),
        "top1_after_ratio": round(kept.loss.top1_after_ratio, 6),
        "top1_drop_ratio": round(kept.loss.drop_ratio, 6),
        "top1_drop_upper_ratio": round(kept.loss.drop_upper_ratio, 6),
        "times": [asdict(timing) for timing in kept.timings],
        "threads": 1,
        "cpu": build.cpu,
        "vnni": build.vnni,
        "others": [{"recipe": one.recipe, "refused": one.refused or "slower"} for one in build.others],
    }
