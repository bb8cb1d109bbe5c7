"""Kills a real apply, rollback or recovery with SIGKILL at every one of its system calls that changes a file.

    python -m tests.fakes.crash_driver FOLDER ACTION EVERY

For k = 1, 2, ... the action runs in a forked child that dies just before its k-th such call (a write dies half done),
until one run survives. After each kill the target is brought in order by recovery; after every EVERY-th kill recovery
itself is killed at each of its own calls in turn. Prints one JSON line: how many kills, and everything that was not
exactly the old or the new state.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from latencydoctor.app import recovery, treat
from latencydoctor.app.runs import unfinished
from latencydoctor.app.treat import Tools
from latencydoctor.errors import LatencyDoctorError
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import Plan, RunEvent
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes.clock import FakeClock
from tests.fakes.patient import BROKEN, EFFECTIVE, FakePatient
from tests.fakes.verifier import GOOD, FakeVerifier

CALLS = ("write", "fsync", "replace", "ftruncate", "mkdir", "unlink", "rename", "rmdir")


def tools(state: Path) -> Tools:
    """The real executor and journal on a folder."""
    patient, clock = FakePatient(state), FakeClock()
    changer = patient.changer(timeout_s=5.0)
    history = JournalFolder(state / "journal", time.time)
    return Tools(patient, changer, history, FakeVerifier(GOOD), clock, lambda _: None)


def killed_at(action: Callable[[], object], at: int) -> bool:
    """Runs the action in a child that dies at its call number `at`; false when it got to its end before."""
    child = os.fork()
    if child == 0:
        _arm(at)
        try:
            action()
        except LatencyDoctorError:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _arm(at: int) -> None:
    left = [at]

    def dying(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name), name))


def state_of(state: Path, plan: Plan) -> str:
    """ "old" or "new" when file and server agree on it exactly, else what is there."""
    digests = {settings_digest((state / name).read_text()) for name in (SETTINGS, EFFECTIVE)}
    new = settings_digest(edited(state, plan))
    return {settings_digest(BROKEN): "old", new: "new"}.get(digests.pop(), "foreign") if len(digests) == 1 else "mixed"


def edited(state: Path, plan: Plan) -> str:
    """The settings with what the plan sets."""
    return FakePatient(state).edited(BROKEN, [(item.key, item.after) for item in plan.operations])


def main(folder: Path, action: str, every: int) -> dict[str, object]:
    """All kills of one action; `start` is the folder each of them begins with."""
    start, state = folder / "start", folder / "state"
    folder.mkdir(exist_ok=True)
    first = tools(state)
    plan = treat.make_plan("batch-floor", first.target, first.clock)
    assert isinstance(plan, Plan)
    if action == "rollback":
        treat.apply(plan, first)
    fresh(state, start)

    def run() -> object:
        return treat.rollback(tools(state), force=True) if action == "rollback" else treat.apply(plan, tools(state))

    kills, recovery_kills = 0, 0
    wrong: list[str] = []
    while killed_at(run, kills + 1):
        kills += 1
        if kills % every == 0:
            recovery_kills += killed_recoveries(state, plan, action, kills, wrong)
        recovery.recover(tools(state))
        wrong += judged(state, plan, action, f"{action} killed at {kills}")
        fresh(start, state)
    wrong += judged(state, plan, action, "not killed")
    return {"kills": kills, "recovery_kills": recovery_kills, "wrong": wrong}


def killed_recoveries(state: Path, plan: Plan, action: str, kills: int, wrong: list[str]) -> int:
    """Recovery of a killed run, killed at each of its own calls and then run to its end; how often it was killed."""
    killed = fresh(state, state.with_name("killed"))
    at = 1
    while killed_at(lambda: recovery.recover(tools(state)), at):
        recovery.recover(tools(state))
        wrong += judged(state, plan, action, f"{action} killed at {kills}, recovery at {at}")
        fresh(killed, state)
        at += 1
    fresh(killed, state)
    return at - 1


def judged(state: Path, plan: Plan, action: str, what: str) -> list[str]:
    """What is not as it must be after recovery, in words."""
    done = committed_run_of(state, action)
    expected = "new" if (action != "rollback") == done else "old"
    found = state_of(state, plan)
    problems = [] if found == expected else [f"{what}: {found}, {expected} expected"]
    if unfinished(JournalFolder(state / "journal", time.time)):
        problems.append(f"{what}: a run is still unfinished")
    return problems


def committed_run_of(state: Path, action: str) -> bool:
    """Whether the newest run of this kind was committed; a run that never reached the disk was not."""
    history = JournalFolder(state / "journal", time.time)
    kind = "rollback" if action == "rollback" else "apply"
    runs = [run for run in history.list() if run.kind == kind]
    return bool(runs) and any(entry.event == RunEvent.COMMITTED for entry in history.entries(runs[0].run_id))


def fresh(source: Path, target: Path) -> Path:
    """A copy in place of whatever was there. The folder's name is part of the plan, so it must stay the same."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
