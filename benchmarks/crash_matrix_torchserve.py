"""kill -9 at every listed moment of a change of a model on a TorchServe, of its rollback and of their recovery.

    python -m benchmarks.crash_matrix_torchserve FOLDER ACTION [EVERY]

As `crash_matrix_kills`, on a server that speaks the management API as TorchServe 0.12.0 was seen to. `further archive`:
another archive of the model takes over; `registered again`: there is none, so the version goes and comes back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

from benchmarks.crash_matrix_kills import Tally, arguments, killed_at_each, planned
from benchmarks.crash_matrix_patient import JOURNAL, Patient
from benchmarks.crash_matrix_program import warm
from benchmarks.told import explain
from latencydoctor.cli import torchserve_wiring
from latencydoctor.errors import KnownError
from latencydoctor.model.configuration import TorchServeModel, TorchServeSource
from latencydoctor.targets import torchserve_changer
from latencydoctor.targets.torchserve_changer import NAMES, TRIAL, UNDER_WAY
from latencydoctor.targets.torchserve_state import Registration
from tests.fakes.torchserve_case import ARCHIVES, MODEL, START, management_of, written

WAYS = {"further archive": ARCHIVES, "registered again": {}}
ACTIONS = tuple(f"{way}{end}" for way in WAYS for end in ("", " rollback"))

MODELS = (MODEL, f"{MODEL}{TRIAL}")
"""What the program may register: the model, and the same without workers for a trial."""

QUIET_S, POLL_S = 0.02, 0.01
"""Nobody asks this server for an inference, and its workers start at once."""

SERVER = "server.json"


@dataclass(slots=True)
class TorchServePatient(Patient):
    """A model of a TorchServe; `state` is the folder in which the program keeps what is its own."""

    url: str = ""
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.shelf.mkdir(parents=True, exist_ok=True)
        self.names = {JOURNAL, NAMES.lock, UNDER_WAY}

    @property
    def which(self) -> tuple[str, ...]:
        return self.options

    def settings(self) -> str:
        """What each model is registered with, its default version first."""
        return json.dumps([[asdict(one) for one in self._registered(model)] for model in MODELS])

    def _registered(self, model: str) -> list[Registration]:
        now = management_of(self.url, model).read()
        return [one.registration for one in sorted(now.versions, key=lambda one: one.name != now.default)]

    def put(self, text: str) -> None:
        """These versions and no others."""
        for model, wanted in zip(MODELS, json.loads(text), strict=True):
            management = management_of(self.url, model)
            for one in reversed(self._registered(model)):
                management.unregister(one.version)
            for one in (Registration(**values) for values in wanted):
                management.register(one)
                management.scale(one)

    def keep(self, name: str) -> Path:
        kept = self.shelf / name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.state, kept)
        (kept / SERVER).write_text(self.settings(), encoding="utf-8")
        return kept

    def restore(self, kept: Path) -> None:
        shutil.rmtree(self.state)
        shutil.copytree(kept, self.state, ignore=shutil.ignore_patterns(SERVER))
        self.put((kept / SERVER).read_text(encoding="utf-8"))

    def _under_way(self) -> str:
        """What is noted of a run that is on its way; empty when none is."""
        noted = self.state / UNDER_WAY
        told = noted.read_text(encoding="utf-8") if noted.exists() else "{}"
        return "" if told == "{}" else told

    def digests(self) -> dict[str, str]:
        """Of every version, and what else a run must leave as it was: the default and the note."""
        found = {model: management_of(self.url, model).read() for model in MODELS}
        return {
            **{f"{model} {one.name}": one.digest for model, now in found.items() for one in now.versions},
            "default": found[MODEL].default,
            "under way": self._under_way(),
        }

    def left(self) -> tuple[object, ...]:
        return (self.settings(), self._under_way(), tuple(sorted(self.strays())))


@contextmanager
def small_torchserve(folder: Path, way: str) -> Iterator[TorchServePatient]:
    """The server with the model registered, in a process of its own for as long as the context lasts."""
    command = [sys.executable, "-m", "tests.fakes.torchserve_case"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("ready "):
                raise KnownError("the small TorchServe did not become ready")
            url = line.split()[1]
            with mock.patch.dict(os.environ, XDG_STATE_HOME=str(folder.resolve() / "xdg")):
                own = torchserve_wiring.journal(TorchServeModel(TorchServeSource(url), MODEL)).parent
                own.mkdir(parents=True)
                options = written(folder, url, WAYS[way])
                patient = TorchServePatient(own, folder / "shelf", url=url, options=options)
                patient.put(json.dumps([[asdict(START)], []]))
                yield patient
        finally:
            process.kill()


def main(folder: Path, action: str, every: int, tally: Tally) -> Tally:
    """All kills of one action on a server of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    torchserve_changer.QUIET_S, torchserve_changer.POLL_S = QUIET_S, POLL_S
    with small_torchserve(folder, action.removesuffix(" rollback")) as patient:
        warm(patient.which)
        killed_at_each(planned(patient, action, ("batch-floor",)), every, tally)
    return tally


if __name__ == "__main__":
    explain(__doc__)
    print(json.dumps(main(*arguments(), Tally()).told()))
