"""kill -9 at every listed moment of a change of somebody else's Triton, of its rollback and of their recovery.

    python -m benchmarks.crash_matrix_repository FOLDER ACTION [EVERY]

As `crash_matrix_kills`, on a model repository and a gRPC server that speaks Triton's protocol and goes by files and
their times as Triton does. The model has no `config.pbtxt`, so that a change makes the file and a rollback removes it,
and a weights file from the future, so that Triton takes nothing for changed by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from benchmarks.crash_matrix_kills import Tally, arguments, finished, killed_at_each, planned
from benchmarks.crash_matrix_patient import JOURNAL, Patient
from benchmarks.crash_matrix_program import in_child, warm
from benchmarks.told import explain
from latencydoctor.cli.targets_wiring import journals
from latencydoctor.errors import KnownError, LatencyDoctorError
from latencydoctor.model.configuration import Configuration, TritonTarget
from latencydoctor.targets.model_versions import newest_ns
from latencydoctor.targets.triton_repository import ABSENT, CONFIG, TritonRepository

ACTIONS = ("apply", "apply judged", "rollback")
MODEL = "ranker"
FUTURE_S = 2_000_000_000
LOCK = f".{MODEL}.latencydoctor.lock"


@dataclass(slots=True)
class RepositoryPatient(Patient):
    """A repository with one model, `state`, and the server on it."""

    grpc: str = ""

    def __post_init__(self) -> None:
        self.shelf.mkdir(parents=True, exist_ok=True)
        self.names = {MODEL, LOCK}

    @property
    def which(self) -> tuple[str, ...]:
        return ("--target", f"triton:{self.state}@{self.grpc}/{MODEL}")

    @property
    def place(self) -> TritonTarget:
        """The same as a record."""
        return TritonTarget(str(self.state), self.grpc, MODEL)

    @property
    def root(self) -> Path:
        return self.state.parent

    @property
    def journal(self) -> Path:
        return journals(Configuration(triton_target=self.place))[0]

    @property
    def _config(self) -> Path:
        return self.state / MODEL / CONFIG

    def settings(self) -> str:
        return self._config.read_text(encoding="utf-8") if self._config.exists() else ABSENT

    def keep(self, name: str) -> Path:
        kept = self.shelf / name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.state, kept)
        if self.journal.is_dir():
            shutil.copytree(self.journal, kept / JOURNAL)
        return kept

    def restore(self, kept: Path) -> None:
        shutil.rmtree(self.journal, ignore_errors=True)
        if (kept / JOURNAL).is_dir():
            shutil.copytree(kept / JOURNAL, self.journal)
        for path in self.state.iterdir():
            if path.is_file():
                path.unlink()
        for path in kept.iterdir():
            if path.is_file():
                shutil.copy2(path, self.state / path.name)
        if (kept / MODEL / CONFIG).exists():
            shutil.copy2(kept / MODEL / CONFIG, self._config)
        else:
            self._config.unlink(missing_ok=True)
        self._load()

    def _load(self) -> None:
        """The folder as it is in effect, whatever the server has seen before."""
        when = newest_ns(self.state / MODEL) + time.time_ns() // 1_000_000
        os.utime(self.state / MODEL, ns=(when, when))

        def load(_: int) -> None:
            came, reason = TritonRepository(self.place).server.load(MODEL, 10.0, lambda: False)
            if reason:
                raise KnownError(f"{came}: {reason}")

        finished(self, in_child(load, self.log), 0)

    def digests(self) -> dict[str, str]:
        def read(writer: int) -> None:
            try:
                found = {item.name: item.digest for item in TritonRepository(self.place).read().objects}
            except LatencyDoctorError as error:
                found = {"error": error.message}
            os.write(writer, json.dumps(found).encode())

        return {str(name): str(digest) for name, digest in json.loads(in_child(read, self.log).told).items()}

    def strays(self) -> set[str]:
        inside = {path.name for path in (self.state / MODEL).iterdir()} - {"1", CONFIG}
        return inside | ({path.name for path in self.state.iterdir()} - self.names)


@contextmanager
def small_triton(folder: Path) -> Iterator[RepositoryPatient]:
    """A repository with a server on it, in a process of its own for as long as the context lasts."""
    repository = folder / "models"
    weights = repository / MODEL / "1" / "weights.bin"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"\0" * 4096)
    os.utime(weights, (FUTURE_S, FUTURE_S))
    arguments = [sys.executable, "-m", "benchmarks.crash_matrix_triton", str(repository), MODEL]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("ready "):
                raise KnownError("the small Triton did not become ready")
            with mock.patch.dict(os.environ, XDG_STATE_HOME=str(folder / "xdg")):
                yield RepositoryPatient(repository, folder / "shelf", grpc=line.split()[1])
        finally:
            process.kill()


def main(folder: Path, action: str, every: int, tally: Tally) -> Tally:
    """All kills of one action on a repository of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    with small_triton(folder) as patient:
        warm(patient.which)
        killed_at_each(planned(patient, action, ("batch-floor",)), every, tally)
    return tally


if __name__ == "__main__":
    explain(__doc__)
    print(json.dumps(main(*arguments(), Tally()).told()))
