"""kill -9 at random times on the whole bundled stack, with its Triton, its controller and its gateway.

    python -m benchmarks.crash_matrix_random FOLDER KILLS [SEED]

Brings the stack up in FOLDER, with two replicas. An apply, one that is rolled back by the judge, a rollback, or an
apply that a canary tries first is killed at a random time of its course; in two of five a part of the stack is killed
as well, and in one of three the recovery too. Recovery must then end in exactly the old or the new state by digest. A
part that was killed is started again by its supervisor. Only processes of this stack are killed, each by its id.
Prints one JSON line as `crash_matrix_kills` does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.crash_matrix_kills import Tally, Trial, prepared, progress, recover
from benchmarks.crash_matrix_patient import Patient
from benchmarks.crash_matrix_program import command, fork, run, warm
from benchmarks.told import explain
from latencydoctor.errors import KnownError
from latencydoctor.model.effects import unwatched
from latencydoctor.stack import endpoints
from latencydoctor.stack import settings as setting_files
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.settings import InferenceSettings, Settings
from latencydoctor.stack.supervisor import Supervisor

ACTIONS = ("apply", "rollback", "apply judged", "canary")
PARTS = ("triton", "triton-2", "controller", "gateway")
PATIENT = ("--accelerator", "sim:launch-bound")
"""A profile with time to spare: a quicker one is refused at a load when the machine happens to be busy."""

SEED = 20261130
READY_S = 60.0


@contextmanager
def whole_stack(state: Path) -> Iterator[Layout]:
    """The bundled stack, brought up and down as a user does, in processes of its own."""
    stack = [sys.executable, "-m", "latencydoctor", "stack"]
    try:
        two = state.with_name("two.yaml")
        setting_files.save(two, Settings(inference=InferenceSettings(replicas=2)))
        words = ("up", "--state", str(state), "--settings", str(two), *PATIENT)
        up = subprocess.run([*stack, *words], capture_output=True, text=True)
        if up.returncode:
            raise KnownError(f"the stack did not come up: {up.stderr}")
        yield Layout(state)
    finally:
        subprocess.run([*stack, "down", "--state", str(state)], capture_output=True)


def pid_of(layout: Layout, part: str) -> int:
    """The process of a part, as the stack's own supervisor tells it; 0 while there is none."""
    supervisor = Supervisor(endpoints.load(layout.endpoints).supervisor_socket)
    return next((program.pid for program in supervisor.programs() if program.name == part), 0)


def ready(patient: Patient) -> None:
    """Returns once every part answers again."""
    end_s = time.monotonic() + READY_S
    while "error" in (found := patient.digests()):
        if time.monotonic() > end_s:
            raise KnownError(f"the stack did not come back: {found['error']}")
        time.sleep(0.1)


def length_s(trial: Trial) -> float:
    """How long the action takes when nobody kills it: the median of three."""
    took = []
    for _ in range(3):
        trial.patient.restore(trial.start)
        started_s = time.monotonic()
        command(trial.arguments, trial.patient.log, unwatched, trial.reading)
        took.append(time.monotonic() - started_s)
    return statistics.median(took)


def killed(trial: Trial, arguments: tuple[str, ...], strikes: list[tuple[float, int]]) -> bool:
    """Runs the command and kills at each time the process named; 0 is the command itself, whose death is the answer."""
    started_s = time.monotonic()
    child = fork(lambda _: run(arguments, unwatched, trial.reading), trial.patient.log)
    for at_s, pid in sorted(strikes):
        time.sleep(max(0.0, started_s + at_s - time.monotonic()))
        with suppress(ProcessLookupError):
            # A child that has ended is not waited for yet, so its number is still its own.
            os.kill(pid or child.pid, signal.SIGKILL)
    return child.wait().code == -signal.SIGKILL


def strike(trial: Trial, layout: Layout, within_s: float, dice: random.Random, tally: Tally) -> None:
    """One trial: a start, a kill or several, recovery, judgement. A kill that came too late counts for nothing."""
    patient = trial.patient
    ready(patient)
    patient.restore(trial.start)
    what = [f"{trial.name} killed after {(at_s := dice.uniform(0.02, within_s)):.3f} s"]
    strikes = [(at_s, 0)]
    if dice.random() < 0.4:
        part = dice.choice(PARTS)
        pid = pid_of(layout, part)
        if pid:
            strikes.append((dice.uniform(0, within_s), pid))
            what[0] += f" and {part}"
    if not killed(trial, trial.arguments, strikes):
        return
    tally.kills += 1
    journal = patient.journalled(trial.known)
    if dice.random() < 1 / 3 and killed(trial, trial.recovery, [(dice.uniform(0.02, within_s), 0)]):
        tally.kills += 1
        what.append("its recovery killed")
    ready(patient)
    recover(trial, journal, what, tally)


def main(folder: Path, kills: int, tally: Tally, seed: int = SEED) -> Tally:
    """So many kills on one stack."""
    dice = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = tally.kills + kills
    with whole_stack(folder / "stack") as layout:
        warm(("--target", str(layout.state)))
        trials = []
        for action in ACTIONS:
            trial = prepared(Patient(layout.state, folder / action.replace(" ", "-")), action)
            trials.append((trial, length_s(trial)))
        while tally.kills < wanted:
            trial, took_s = trials[dice.randrange(len(trials))]
            strike(trial, layout, took_s, dice, tally)
            progress(f"whole stack: {kills - wanted + tally.kills}/{kills} kills, {tally.unknown} not exact")
    return tally


if __name__ == "__main__":
    explain(__doc__)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), Tally(), seed).told()))
