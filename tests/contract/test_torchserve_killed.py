"""kill -9 of the shipped program at each listed moment of a change on a TorchServe, and recovery to exactly one end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.crash_matrix_kills import OF_TORCHSERVE
from benchmarks.crash_matrix_program import GOOD, Moment, command, dying, moments
from latencydoctor.journal import read_chain
from latencydoctor.model.effects import Effect, unwatched
from latencydoctor.model.remedy import RunEvent
from tests.fakes import torchserve_case
from tests.fakes.torchserve_case import Case

EVERY = 7
"""Of an effect's moments its first is died at, and of the others each so manieth."""


def chosen(all_moments: tuple[Moment, ...]) -> list[Moment]:
    return [moment for index, moment in enumerate(all_moments) if moment.nth == 1 or index % EVERY == 0]


def stands(case: Case, known: set[Path]) -> bool:
    """Whether the killed run was committed, by its journal."""
    fresh = set(case.journals.glob("*.jsonl")) - known
    entries = read_chain(fresh.pop().read_bytes()).entries if fresh else ()
    events = [entry.event for entry in entries]
    return RunEvent.COMMITTED in events and RunEvent.UNDO_INTENT not in events


@pytest.mark.slow
@pytest.mark.parametrize("archives", [None, {}], ids=["further archive", "registered again"])
def test_a_kill_at_any_listed_effect_ends_in_exactly_the_old_or_the_new_state(
    tmp_path: Path, archives: dict[str, str] | None
) -> None:
    with torchserve_case.prepared(tmp_path, archives) as case:
        before = case.versions()
        ended, found = moments(case.apply, case.log, GOOD)
        assert ended.code == 0, case.log.read_text()
        after = case.versions()
        assert after != before
        assert command(case.rollback, case.log, unwatched, GOOD).code == 0
        assert case.versions() == before
        kills = 0
        for moment in chosen(found):
            known = set(case.journals.glob("*.jsonl"))
            died = command(case.apply, case.log, dying(moment), GOOD)
            kills += died.code == -9
            expected = after if died.code == 0 or stands(case, known) else before
            recovered = command(case.recover, case.log, unwatched, GOOD)
            assert recovered.code == 0, f"{moment}: {case.log.read_text()[-2000:]}"
            assert case.versions() == expected, str(moment)
            assert not case.under_way(), str(moment)
            if expected == after:
                assert command(case.rollback, case.log, unwatched, GOOD).code == 0, case.log.read_text()[-2000:]
            assert case.versions() == before, str(moment)
            shutil.rmtree(case.journals, ignore_errors=True)
        assert kills >= 25
        crossed = {moment.effect for moment in found}
        missing = OF_TORCHSERVE - crossed - ({Effect.SET_DEFAULT_VERSION} if archives == {} else set())
        assert missing == set()
