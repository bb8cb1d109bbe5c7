"""kill -9 at every listed moment of an apply, of a rollback and of their recovery, on real files and real sockets.

    python -m benchmarks.crash_matrix_kills FOLDER ACTION [EVERY]

The action is run once to learn its moments, then killed at each of them; `runs recover` must end in exactly the old or
the new state by digest, as the journal says. For every distinct state that a kill leaves, recovery itself is killed at
each of its own moments, every other time its successor too, and must end there all the same. With EVERY only each so
manieth moment of a recovery is taken, and of the action's own each effect's first and every fourth of the rest (with
EVERY above 40, one in EVERY / 10). Prints one JSON line: how many kills, how many ended exactly, the effects died at,
and what was not exact.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.crash_matrix_patient import JOURNAL, Journalled, Patient
from benchmarks.crash_matrix_program import GOOD, SLOW, Ended, Moment, command, dying, moments, warm
from benchmarks.told import explain
from latencydoctor.errors import KnownError
from latencydoctor.model.effects import unwatched
from latencydoctor.model.remedy import Reading
from latencydoctor.targets.bundled import BundledTarget

BROKEN = {"preferred_batch_size": "0", "max_batch_size": "8", "timeout_micros": "0"}
ACTIONS = ("apply", "apply judged", "apply interrupted", "rollback", "canary", "canary judged")
"""With two replicas an apply is tried by a canary: one that is promoted, and one that the judge rolls back."""


@dataclass(slots=True)
class Tally:
    """What came of the kills."""

    kills: int = 0
    unknown: int = 0
    wrong: list[str] = field(default_factory=list)
    effects: set[str] = field(default_factory=set)

    def add(self, told: Mapping[str, Any]) -> None:
        """What another program came to, by its last line."""
        self.kills += told["kills"]
        self.unknown += told["unknown"]
        self.wrong += told["wrong"]
        self.effects |= set(told["effects"])

    def told(self) -> dict[str, object]:
        """As the last line of the program."""
        return {
            "kills": self.kills,
            "exact": self.kills - self.unknown,
            "unknown": self.unknown,
            "effects": sorted(self.effects),
            "wrong": self.wrong,
        }


@dataclass(frozen=True, slots=True)
class Sides:
    """The two states a kill may end in: digests before the action, and after it."""

    before: dict[str, str]
    after: dict[str, str]

    def expected(self, journal: Journalled) -> dict[str, str]:
        """The one that the journal of the killed run asks for."""
        return self.after if journal.stands else self.before


@dataclass(frozen=True, slots=True)
class Trial:
    """An action on a patient, ready to be run as often as there are moments to die at."""

    name: str
    patient: Patient
    arguments: tuple[str, ...]
    reading: Reading
    start: Path
    sides: Sides
    code: int
    interrupted: bool = False

    @property
    def known(self) -> frozenset[str]:
        """The journals that were there before."""
        return frozenset(path.name for path in (self.start / JOURNAL).glob("*.jsonl"))

    @property
    def recovery(self) -> tuple[str, ...]:
        """The command line that brings a killed run to its end."""
        return ("runs", "recover", "--yes", *self.patient.which)


def prepared(patient: Patient, action: str) -> Trial:
    """The patient with broken batching and a plan to mend it; for a rollback, mended."""
    bound = BundledTarget(patient.state)
    values = [(f"inference.batching.{key}", value) for key, value in BROKEN.items()]
    patient.put(bound.edited(patient.settings(), values))
    return planned(patient, action, ("batch-floor",), staged=action.startswith("canary"))


def planned(
    patient: Patient,
    action: str,
    fix: tuple[str, ...],
    *,
    good: Reading = GOOD,
    slow: Reading = SLOW,
    staged: bool = False,
) -> Trial:
    """The patient with a plan for the fix, both of its sides known from an apply of it; for a rollback, applied.

    What an action's name says after the fix's decides how it ends: judged and rolled back, interrupted, or well. Where
    it is `staged` a canary tries the fix first.
    """
    plan, log = patient.shelf / "plan.json", patient.log
    finished(patient, command(("plan", *fix, "-o", str(plan), *patient.which), log, unwatched), 0)
    apply = ("apply", str(plan), "--yes", *(() if staged else ("--no-canary",)), *patient.which)
    before, start = patient.digests(), patient.keep("start")
    finished(patient, command(apply, log, unwatched, good), 0)
    mended, after = patient.digests(), patient.keep("mended")
    if action.endswith("rollback"):
        undo = ("rollback", "--yes", "--force", *patient.which)
        return Trial(action, patient, undo, good, after, Sides(mended, before), 0)
    ends = {"judged": (slow, 6), "interrupted": (good, 130)}
    reading, code = ends.get(action.rpartition(" ")[2], (good, 0))
    return Trial(action, patient, apply, reading, start, Sides(before, mended), code, interrupted=code == 130)


def finished(patient: Patient, ended: Ended, code: int) -> None:
    """KnownError, with the end of what was said, when a child ended otherwise."""
    if ended.code != code:
        tail = patient.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise KnownError(f"the run ended with {ended.code}, not with {code}: {tail}")


def killed_at_each(trial: Trial, every: int, tally: Tally) -> None:
    """Every moment of the action, and of the recovery of every distinct state it can leave."""
    trial.patient.restore(trial.start)
    ended, points = moments(trial.arguments, trial.patient.log, trial.reading, interrupted=trial.interrupted)
    finished(trial.patient, ended, trial.code)
    if every > 1:
        rest = max(4, every // 10)
        points = tuple(point for number, point in enumerate(points) if point.nth == 1 or number % rest == 0)
    seen: set[tuple[object, ...]] = set()
    for number, point in enumerate(points, start=1):
        trial.patient.restore(trial.start)
        if not dies(trial, trial.arguments, point, tally, interrupted=trial.interrupted):
            continue
        journal = trial.patient.journalled(trial.known)
        left = (journal.events, journal.whole, *trial.patient.left())
        copy = trial.patient.keep("killed") if left not in seen else None
        recover(trial, journal, [str(point)], tally)
        if copy is not None:
            seen.add(left)
            _recovery_killed(trial, copy, journal, (str(point), every), tally)
        progress(f"{trial.name}: {number}/{len(points)} moments, {tally.kills} kills, {tally.unknown} not exact")


def dies(trial: Trial, arguments: tuple[str, ...], point: Moment, tally: Tally, *, interrupted: bool = False) -> bool:
    """Whether the run was killed there; how often a server is polled differs, so a moment may not come."""
    ended = command(arguments, trial.patient.log, dying(point, interrupted=interrupted), trial.reading)
    died = ended.code == -signal.SIGKILL
    if died:
        tally.kills += 1
        tally.effects.add(point.effect.name)
    return died


def recover(trial: Trial, journal: Journalled, killed: Sequence[str], tally: Tally) -> None:
    """Recovery to its end, and the judgement."""
    ended = command(trial.recovery, trial.patient.log, unwatched)
    problems = [] if ended.code == 0 else [f"recovery ended with {ended.code}"]
    found, expected = trial.patient.digests(), trial.sides.expected(journal)
    if found != expected:
        other = "the other state" if found in (trial.sides.before, trial.sides.after) else f"neither: {found}"
        problems.append(other)
    problems += [f"unfinished: {run}" for run in trial.patient.open_runs()]
    problems += [f"left behind: {name}" for name in sorted(trial.patient.strays())]
    if problems:
        tally.unknown += len(killed)
        tally.wrong.append(f"{', '.join(killed)}: {'; '.join(problems)}")


def _recovery_killed(trial: Trial, copy: Path, journal: Journalled, at: tuple[str, int], tally: Tally) -> None:
    """Recovery of one killed state, killed at each of its own moments; every other time, its successor as well."""
    what, every = at
    trial.patient.restore(copy)
    _, points = moments(trial.recovery, trial.patient.log)
    for number, point in enumerate(points[::every]):
        trial.patient.restore(copy)
        if not dies(trial, trial.recovery, point, tally):
            continue
        killed_at = [what, f"recovery {point}"]
        if number % 2:
            second = points[(number * 7 + 3) % len(points)]
            if dies(trial, trial.recovery, second, tally):
                killed_at.append(f"its successor {second}")
        recover(trial, journal, killed_at, tally)


def progress(line: str) -> None:
    """How far it is, on stderr: on a terminal in one place, else a line each time."""
    sys.stderr.write(f"\r\x1b[K{line}" if sys.stderr.isatty() else f"{line}\n")
    sys.stderr.flush()


@contextmanager
def small_stack(state: Path, action: str = "apply") -> Iterator[None]:
    """The real edges without a model, in a process of their own for as long as the context lasts."""
    replicas = "2" if action.startswith("canary") else "1"
    arguments = [sys.executable, "-m", "benchmarks.crash_matrix_stack", str(state), replicas]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise KnownError("the small stack did not become ready")
            yield
        finally:
            # Told so, it ends the cache's server before itself.
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def main(folder: Path, action: str, every: int, tally: Tally) -> Tally:
    """All kills of one action on a small stack of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    with small_stack(folder / "stack", action):
        patient = Patient(folder / "stack", folder / "shelf")
        warm(patient.which)
        killed_at_each(prepared(patient, action), every, tally)
    return tally


def arguments() -> tuple[Path, str, int]:
    """FOLDER ACTION [EVERY] of the command line."""
    return Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1


if __name__ == "__main__":
    explain(__doc__)
    print(json.dumps(main(*arguments(), Tally()).told()))
