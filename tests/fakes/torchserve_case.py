"""A model of a TorchServe stand-in with a plan to change its batching, for runs of the shipped program in children.

    python -m tests.fakes.torchserve_case

serves the stand-in by itself: says "ready URL" on stdout, and ends when its stdin does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash_matrix_program import command
from latencydoctor.cli import torchserve_wiring
from latencydoctor.errors import KnownError
from latencydoctor.model.configuration import TorchServeModel, TorchServeSource
from latencydoctor.model.effects import unwatched
from latencydoctor.targets import torchserve_changer
from latencydoctor.targets.torchserve_client import Connection, Management
from latencydoctor.targets.torchserve_state import Registration
from tests.fakes.torchserve import Archive, FakeTorchServe, serving

MODEL = "tiny"
TOKEN = "k-1"
ARCHIVES = {"1.0": "tiny-1.0.mar", "2.0": "tiny-2.0.mar"}
START = Registration(MODEL, "1.0", ARCHIVES["1.0"], 1, 50, 2, 3, 120, 120)


@dataclass(frozen=True, slots=True)
class Case:
    """The server, the command lines that change it, and where the program keeps what is its own."""

    fake: FakeTorchServe
    management: Management
    state: Path
    journals: Path
    log: Path
    apply: tuple[str, ...]
    rollback: tuple[str, ...]
    recover: tuple[str, ...]

    def versions(self) -> dict[str, str]:
        """What each registered version is, what the default is, and what a trial left."""
        now = self.management.read()
        trial = self.management.of(f"{MODEL}{torchserve_changer.TRIAL}").read()
        return {one.name: one.digest for one in (*now.versions, *trial.versions)} | {"default": now.default}

    def under_way(self) -> bool:
        """Whether a run is written down as being on its way."""
        noted = self.journals.parent / torchserve_changer.UNDER_WAY
        return noted.exists() and json.loads(noted.read_text()) != {}


@contextmanager
def prepared(folder: Path, archives: dict[str, str] | None = None) -> Iterator[Case]:
    """A registered model and a plan for it; the program's own files lie below `folder` meanwhile."""
    state = folder / "state"
    state.mkdir(parents=True)
    kept = os.environ.get("XDG_STATE_HOME"), torchserve_changer.QUIET_S, torchserve_changer.POLL_S
    os.environ["XDG_STATE_HOME"] = str(state)
    torchserve_changer.QUIET_S, torchserve_changer.POLL_S = 0.02, 0.01
    fake = stand_in()
    try:
        with serving(fake) as url:
            yield _case(folder, fake, url, ARCHIVES if archives is None else archives)
    finally:
        torchserve_changer.QUIET_S, torchserve_changer.POLL_S = kept[1:]
        os.environ.pop("XDG_STATE_HOME")
        if kept[0] is not None:
            os.environ["XDG_STATE_HOME"] = kept[0]


def stand_in() -> FakeTorchServe:
    """A server with both archives in its store, whose workers start at once."""
    return FakeTorchServe({name: Archive(MODEL, version, 1, 2) for version, name in ARCHIVES.items()}, 0.01, TOKEN)


def management_of(url: str, model: str = MODEL) -> Management:
    """The management API, asked with the key."""
    return Management(Connection(url, (("Authorization", f"Bearer {TOKEN}"),)), model)


def written(folder: Path, url: str, archives: dict[str, str]) -> tuple[str, ...]:
    """The options that name the model, by a configuration with these archives in the folder."""
    key = folder / "key_file.json"
    key.write_text(json.dumps({"management": {"key": TOKEN}}))
    named = "".join(f"      {version}: {name}\n" for version, name in archives.items())
    configuration = folder / "latencydoctor.yaml"
    configuration.write_text(
        f"targets:\n  torchserve:\n    management: {url}\n    bearer_file: {key}\n    model: {MODEL}\n"
        + (f"    archives:\n{named}" if named else "")
    )
    return ("--config", str(configuration), "--target", "torchserve")


def _case(folder: Path, fake: FakeTorchServe, url: str, archives: dict[str, str]) -> Case:
    management = management_of(url)
    management.register(START)
    management.scale(START)
    which = written(folder, url, archives)
    log, plan = folder / "log", folder / "plan.json"
    planned = command(("plan", "batch-floor", "-o", str(plan), *which), log, unwatched)
    if planned.code:
        raise KnownError(log.read_text())
    place = TorchServeModel(TorchServeSource(url), MODEL)
    return Case(
        fake,
        management,
        folder / "state",
        torchserve_wiring.journal(place),
        log,
        ("apply", str(plan), "--yes", *which),
        ("rollback", "--yes", "--force", *which),
        ("runs", "recover", "--yes", *which),
    )


if __name__ == "__main__":
    with serving(stand_in()) as served_at:
        print(f"ready {served_at}", flush=True)
        sys.stdin.read()
