"""A journal whose last record was still being written when the process died: cut at every byte, then recovered.

    python -m benchmarks.crash_matrix_cuts FOLDER ACTION [EVERY]

The action runs once on a small stack; how the target looked when each record was begun is kept with it. Then each
record is cut at each of its bytes (EVERY: at every so manieth) with the target as it was at that time, and recovery
must end in exactly the old or the new state. Prints one JSON line, as `crash_matrix_kills` does.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash_matrix_kills import Tally, Trial, arguments, prepared, small_stack
from benchmarks.crash_matrix_patient import JOURNAL, Patient
from benchmarks.crash_matrix_program import Crossings, Moment, in_child, run, warm
from benchmarks.told import explain
from latencydoctor.app import recovery
from latencydoctor.app.treat import Tools
from latencydoctor.cli import wiring
from latencydoctor.errors import KnownError
from latencydoctor.model.effects import Effect
from latencydoctor.targets.state_folder import SETTINGS


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the journal: its bytes from and to, and the settings that were in place when it was begun."""

    start: int
    end: int
    settings: str


def recorded(trial: Trial) -> tuple[Path, bytes, tuple[Record, ...]]:
    """The action's journal, and each record of it."""
    patient = trial.patient
    patient.restore(trial.start)

    def watched(writer: int) -> None:
        def at(moment: Moment) -> None:
            if moment.effect is Effect.JOURNAL_WRITE and not moment.after:
                text = (patient.state / SETTINGS).read_text(encoding="utf-8")
                os.write(writer, json.dumps(text).encode() + b"\n")

        run(trial.arguments, Crossings(at), trial.reading)

    told = in_child(watched, patient.log).told.splitlines()
    (path,) = [path for path in (patient.state / JOURNAL).iterdir() if path.name not in trial.known]
    content, records, start = path.read_bytes(), [], 0
    for text in told:
        end = content.index(b"\n", start) + 1
        records.append(Record(start, end, json.loads(text)))
        start = end
    return path, content, tuple(records)


def cuts(records: tuple[Record, ...], every: int) -> tuple[tuple[Record, int], ...]:
    """Every byte of every record; one in sixteen of the first, which is long and means nothing before it is whole."""
    found: list[tuple[Record, int]] = []
    for number, record in enumerate(records):
        step = every * 16 if number == 0 else every
        found += [(record, cut) for cut in range(record.start, record.end, step)]
        # The last byte is the one that makes it a record.
        found.append((record, record.end - 1))
    return tuple(found)


def recovered(trial: Trial, tools: Tools) -> str:
    """What is wrong after recovery; empty when nothing is."""
    patient = trial.patient
    expected = trial.sides.expected(patient.journalled(trial.known))
    for outcome in recovery.recover(tools):
        if outcome.error is not None:
            return outcome.error.message
    found = {item.name: item.digest for item in tools.target.read().objects}
    if found != expected:
        return f"{found}"
    return "; ".join([*patient.open_runs(), *patient.strays()])


def main(folder: Path, action: str, every: int, tally: Tally) -> Tally:
    """All cuts of one action. Each counts as a kill in the middle of a write.

    In a child: what it learns it asks of the servers itself, and a gRPC client does not survive a fork.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with small_stack(folder / "stack", action):
        patient = Patient(folder / "stack", folder / "shelf")
        warm(patient.which)
        trial = prepared(patient, action)
        path, content, records = recorded(trial)
        todo = cuts(records, every)
        ended = in_child(lambda writer: _cut_all(trial, (path, content), todo, writer), patient.log)
    if ended.code:
        raise KnownError(f"the cuts ended with {ended.code}: {patient.log.read_text(encoding='utf-8')[-2000:]}")
    wrong = ended.told.decode().splitlines()
    tally.kills += len(todo)
    tally.unknown += len(wrong)
    tally.wrong += wrong
    return tally


def _cut_all(trial: Trial, journal: tuple[Path, bytes], todo: Sequence[tuple[Record, int]], writer: int) -> None:
    patient, (path, content) = trial.patient, journal
    tools = wiring.treatment(wiring.DiagnoseRequest(), patient.state, wiring.silent).tools
    started = trial.start / JOURNAL
    for record, cut in todo:
        shutil.rmtree(patient.state / JOURNAL)
        if started.is_dir():
            shutil.copytree(started, patient.state / JOURNAL)
        else:
            (patient.state / JOURNAL).mkdir()
        path.write_bytes(content[:cut])
        patient.put_unless_there(record.settings)
        problem = recovered(trial, tools)
        if problem:
            os.write(writer, f"{trial.name}, journal cut at byte {cut}: {problem}\n".encode())


if __name__ == "__main__":
    explain(__doc__)
    print(json.dumps(main(*arguments(), Tally()).told()))
