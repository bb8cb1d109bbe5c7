"""Hands a plan to the child process: one JSON file, written by the runner and read by the locustfile only."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from latencydoctor.model.load import LoadPlan, Mix, Phase


def write(plan: LoadPlan, path: Path) -> None:
    """The plan as JSON, readable by its owner only."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(plan)), encoding="utf-8")


def read(path: Path) -> LoadPlan:
    """The plan that `write` wrote, which had been checked before."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return LoadPlan(
        url=found["url"],
        phases=tuple(Phase(**phase) for phase in found["phases"]),
        questions=tuple(found["questions"]),
        seed=found["seed"],
        deadline_ms=found["deadline_ms"],
        bound_s=found["bound_s"],
        mix=Mix(**found["mix"]),
    )
