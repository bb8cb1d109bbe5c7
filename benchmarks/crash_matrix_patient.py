"""One target of the crash matrix: brought to a start, copied when killed, and judged by digest after recovery."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.crash_matrix_program import in_child
from latencydoctor.errors import KnownError, LatencyDoctorError
from latencydoctor.journal import read_chain
from latencydoctor.model.remedy import Decision, RunEvent
from latencydoctor.remedy.settings_text import generation_of, settings_digest, with_generation
from latencydoctor.targets.bundled import BundledTarget
from latencydoctor.targets.controller_page import read_controller
from latencydoctor.targets.kept_generations import KEPT
from latencydoctor.targets.state_folder import LOCK, SETTINGS

JOURNAL = "journal"
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Journalled:
    """What a run's journal says by its whole records: the events, and whether its change stands."""

    events: tuple[str, ...]
    stands: bool
    whole: bool


NO_JOURNAL = Journalled((), stands=False, whole=True)


@dataclass(slots=True)
class Patient:
    """A stack's state folder with a start to return to; `names` are what may lie in it."""

    state: Path
    shelf: Path
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shelf.mkdir(parents=True, exist_ok=True)
        self.names = {path.name for path in self.state.iterdir()} | {JOURNAL, LOCK, KEPT}

    @property
    def which(self) -> tuple[str, ...]:
        """The options that name it on the command line."""
        return ("--target", str(self.state))

    @property
    def root(self) -> Path:
        """The folder in which all lies that a run of the program writes."""
        return self.state

    @property
    def journal(self) -> Path:
        """Where the journals of its runs lie."""
        return self.state / JOURNAL

    @property
    def log(self) -> Path:
        """Where the children's streams go."""
        return self.shelf / "children.log"

    def settings(self) -> str:
        """The settings file's text."""
        return (self.state / SETTINGS).read_text(encoding="utf-8")

    def put(self, text: str) -> None:
        """Writes settings of the next generation, and waits until the controller has them in effect."""
        generation = generation_of(self.settings()) + 1
        self._write(with_generation(text, generation))
        self._wait(generation)

    def _write(self, text: str) -> None:
        fresh = self.shelf / SETTINGS
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o600)
        # Through another folder, so that no trace of this writer is taken for one of the program's.
        shutil.copy2(fresh, self.state.parent / SETTINGS)
        os.replace(self.state.parent / SETTINGS, self.state / SETTINGS)  # noqa: PTH105  # the call that is meant

    def _wait(self, generation: int) -> None:
        url = json.loads((self.state / "endpoints.json").read_text(encoding="utf-8"))["controller_metrics"]
        end_s = time.monotonic() + WAIT_S
        while True:
            try:
                if read_controller(url).in_effect == generation:
                    return
            except KnownError:
                pass  # it was killed, and is being started again
            if time.monotonic() > end_s:
                raise KnownError(f"generation {generation} did not come into effect in {WAIT_S:g} s")
            time.sleep(0.005)

    def keep(self, name: str) -> Path:
        """A copy of everything that a change touches, as it is now."""
        kept = self.shelf / name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for path in self.state.iterdir():
            if path.name == JOURNAL:
                shutil.copytree(path, kept / JOURNAL)
            elif path.name.startswith((SETTINGS, f".{SETTINGS}")):
                shutil.copy2(path, kept / path.name)
        return kept

    def restore(self, kept: Path) -> None:
        """Back to a copy, in effect."""
        shutil.rmtree(self.state / JOURNAL, ignore_errors=True)
        for path in self.state.iterdir():
            if path.name.startswith((SETTINGS + ".", f".{SETTINGS}")):
                path.unlink()
        for path in kept.iterdir():
            if path.name == JOURNAL:
                shutil.copytree(path, self.state / JOURNAL)
            elif path.name.startswith((SETTINGS + ".", f".{SETTINGS}")):
                shutil.copy2(path, self.state / path.name)
        self.put_unless_there((kept / SETTINGS).read_text(encoding="utf-8"))

    def put_unless_there(self, text: str) -> None:
        """As `put`; settings that are there but for their generation are only waited for."""
        if settings_digest(text) != settings_digest(self.settings()):
            self.put(text)
        else:
            self._wait(generation_of(self.settings()))

    def digests(self) -> dict[str, str]:
        """Of the settings file, of what Triton says it runs, and of what it would load after a restart.

        Read in a child: a gRPC client in this process could not be forked. What cannot be read has no digest.
        """

        def read(writer: int) -> None:
            try:
                found = {item.name: item.digest for item in BundledTarget(self.state).read().objects}
            except LatencyDoctorError as error:
                found = {"error": error.message}
            os.write(writer, json.dumps(found).encode())

        return {str(name): str(digest) for name, digest in json.loads(in_child(read, self.log).told).items()}

    def journalled(self, known: frozenset[str]) -> Journalled:
        """The run whose journal is not `known`, read without the program's own idea of what its records mean."""
        paths = [path for path in self.journal.glob("*.jsonl") if path.name not in known]
        if not paths:
            return NO_JOURNAL
        (path,) = paths
        chain = read_chain(path.read_bytes())
        events = tuple(entry.event for entry in chain.entries)
        decided = any(entry.fields.get("decision") == Decision.ROLL_BACK for entry in chain.entries)
        stands = RunEvent.COMMITTED in events and not decided and RunEvent.UNDO_INTENT not in events
        return Journalled(events, stands, whole=not chain.cut_bytes and not chain.damage)

    def strays(self) -> set[str]:
        """Files in the folder that belong to nobody. What the controller keeps it writes whenever it comes to it."""
        return {path.name for path in self.state.iterdir() if not path.name.startswith(f".{KEPT}.")} - self.names

    def left(self) -> tuple[object, ...]:
        """What a kill left beside the journal, as far as recovery can tell it apart."""
        return (settings_digest(self.settings()), tuple(sorted(self.strays())))

    def open_runs(self) -> list[str]:
        """Journals whose last record is not the end of their run."""
        found = []
        for path in self.journal.glob("*.jsonl"):
            entries = read_chain(path.read_bytes()).entries
            if not entries or entries[-1].event != RunEvent.ENDED:
                found.append(path.stem)
        return found
