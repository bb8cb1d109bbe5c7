"""Kills a warm-up, its rollback or their recovery with SIGKILL at each of its calls that changes a file or the cache.

    python -m tests.fakes.warm_driver FOLDER apply|rollback EVERY

As `crash_driver`, whose killing it uses; the state is the settings and what is in the cache together.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from latencydoctor.app import recovery, treat
from latencydoctor.app.runs import unfinished
from latencydoctor.app.treat import Asked, Tools
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import Plan
from latencydoctor.remedy.plan import values_of
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes import crash_driver
from tests.fakes.answer_cache import FakeAnswerCache, name
from tests.fakes.crash_driver import committed_run_of, fresh, killed_at
from tests.fakes.patient import BROKEN, EFFECTIVE, FakePatient
from tests.fakes.verifier import GOOD, FakeVerifier

SHORT = f"{BROKEN}cache:\n  ttl_seconds: 2\n"
HOT = 450
THEIRS = {name(3): "", name(7): "somebody-elses", "ffffffffffffffff": ""}
"""Entries that were there before, and must be there after everything."""

WARM = replace(GOOD, hit_ratio=0.9)


def tools(state: Path) -> Tools:
    """The real executor and journal on a folder, with the cache beside its settings."""
    FakePatient(state, SHORT)
    found = crash_driver.tools(state)
    return replace(found, verifier=FakeVerifier(WARM), cache=FakeAnswerCache(state / "cache.json", HOT))


def state_of(state: Path, plan: Plan) -> str:
    """ "old" or "new" when settings, server and cache agree on it exactly, else what is there."""
    digests = {settings_digest((state / name).read_text()) for name in (SETTINGS, EFFECTIVE)}
    entries = FakeAnswerCache(state / "cache.json").entries
    if {one: entries.get(one) for one in THEIRS} != THEIRS:
        return "others' entries touched"
    ours = {one: run for one, run in entries.items() if one not in THEIRS}
    new = settings_digest(FakePatient(state).edited(SHORT, values_of(plan)))
    if digests == {settings_digest(SHORT)} and not ours:
        return "old"
    if digests == {new} and len(ours) == HOT - 2 and len(set(ours.values())) == 1:
        return "new"
    return f"mixed: {len(digests)} settings, {len(ours)} entries"


def judged(state: Path, plan: Plan, action: str, what: str) -> list[str]:
    """What is not as it must be after recovery, in words."""
    expected = "new" if (action == "apply") == committed_run_of(state, action) else "old"
    found = state_of(state, plan)
    problems = [] if found == expected else [f"{what}: {found}, {expected} expected"]
    if unfinished(JournalFolder(state / "journal", time.time)):
        problems.append(f"{what}: a run is still unfinished")
    return problems


def main(folder: Path, action: str, every: int) -> dict[str, object]:
    """All kills of one action, and after every EVERY-th those of its recovery."""
    start, state, killed = folder / "start", folder / "state", folder / "killed"
    folder.mkdir(exist_ok=True)
    first = tools(state)
    FakeAnswerCache(state / "cache.json").put(THEIRS)
    plan = treat.make_plan("cache-warmup", first.target, first.clock, asked=Asked(cache=first.cache))
    assert isinstance(plan, Plan)
    if action == "rollback":
        treat.apply(plan, first)
    fresh(state, start)

    def run() -> object:
        return treat.apply(plan, tools(state)) if action == "apply" else treat.rollback(tools(state), force=True)

    kills, recovery_kills = 0, 0
    wrong: list[str] = []
    while killed_at(run, kills + 1):
        kills += 1
        if kills % every == 0:
            fresh(state, killed)
            at = 1
            while killed_at(lambda: recovery.recover(tools(state)), at):
                recovery.recover(tools(state))
                wrong += judged(state, plan, action, f"{action} killed at {kills}, recovery at {at}")
                fresh(killed, state)
                at += 1
            fresh(killed, state)
            recovery_kills += at - 1
        recovery.recover(tools(state))
        wrong += judged(state, plan, action, f"{action} killed at {kills}")
        fresh(start, state)
    wrong += judged(state, plan, action, "not killed")
    return {"kills": kills, "recovery_kills": recovery_kills, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
