"""A warm-up as part of a transaction: what it writes, when it stops, what undoing leaves, and where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from latencydoctor.app import recovery, treat
from latencydoctor.app.planning import Asked, Basis, make_plan
from latencydoctor.app.treat import Tools
from latencydoctor.app.warming import BATCH, PATIENCE_S
from latencydoctor.errors import KnownError, Refused, RolledBack
from latencydoctor.journal import JournalFolder
from latencydoctor.model.diagnosis import Cause, Confidence, Diagnosis
from latencydoctor.model.remedy import NothingToDo, Plan, Reading, RunEvent, RunState
from latencydoctor.remedy.plan import values_of, warming_of
from latencydoctor.remedy.plan_file import plan_digest, plan_from_json, plan_to_json
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes.answer_cache import FakeAnswerCache, name
from tests.fakes.clock import FakeClock
from tests.fakes.patient import BROKEN, FakePatient
from tests.fakes.verifier import GOOD, FakeVerifier
from tests.unit.app.test_planning import diagnosis

SHORT = f"{BROKEN}cache:\n  ttl_seconds: 2\n"
WARM, COLD = replace(GOOD, hit_ratio=0.9), replace(GOOD, hit_ratio=0.12)
THEIRS = {name(3): "", name(7): "somebody-elses"}


class Ward:
    """A patient whose cache has lost what is popular."""

    def __init__(self, state: Path, settings: str = SHORT) -> None:
        self.state = state
        self.patient = FakePatient(state, settings)
        self.clock = FakeClock()
        self.history = JournalFolder(state / "journal", self.clock.now_s)
        self.cache = FakeAnswerCache(state / "cache.json")
        self.cache.put(THEIRS)
        self.said: list[str] = []

    def tools(self, *readings: Reading, cancelled: Callable[[], bool] = treat.never) -> Tools:
        return Tools(
            target=self.patient,
            changer=self.patient.changer(),
            history=self.history,
            verifier=FakeVerifier(*readings) if readings else None,
            clock=self.clock,
            observer=lambda progress: self.said.append(progress.text),
            cancelled=cancelled,
            cache=self.cache,
        )

    def make(self, basis: Basis | None = None, *, force: bool = False) -> Plan | NothingToDo:
        return make_plan(
            "cache-warmup", self.patient, self.clock, basis or Basis(), Asked(cache=self.cache, force=force)
        )

    def plan(self) -> Plan:
        made = self.make()
        assert isinstance(made, Plan)
        return made

    @property
    def ours(self) -> dict[str, str]:
        return {one: run for one, run in self.cache.entries.items() if one not in THEIRS}

    def is_old(self) -> bool:
        text = (self.state / SETTINGS).read_text()
        return settings_digest(text) == settings_digest(SHORT) and self.cache.entries == THEIRS

    def events(self, run_id: str) -> list[str]:
        return [entry.event for entry in self.history.entries(run_id)]


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    return Ward(tmp_path / "stack")


def test_the_plan_repairs_the_time_to_live_and_names_what_is_missing(ward: Ward) -> None:
    plan = ward.plan()
    assert values_of(plan) == (("cache.ttl_seconds", "300"),)
    warming = warming_of(plan)
    assert warming is not None
    assert set(warming.ids) == {name(n) for n in range(450)} - {name(3), name(7)} or len(warming.ids) == 448
    assert {one.signal for one in plan.predictions} >= {"cache_hit_ratio", "e2e_p99_ms"}
    assert "capacity_rps" not in {one.signal for one in plan.predictions}
    assert {"cache_miss_ratio", "e2e_p99_ms", "error_ratio"} <= {one.signal for one in plan.requirements}
    assert plan_from_json(plan_to_json(plan)) == plan


def test_planning_and_a_dry_run_write_nothing_to_the_cache(ward: Ward) -> None:
    before = ward.cache.path.read_bytes(), ward.cache.path.stat().st_mtime_ns
    plan = ward.plan()
    treat.preview(plan, ward.tools(WARM))
    assert (ward.cache.path.read_bytes(), ward.cache.path.stat().st_mtime_ns) == before
    assert set(ward.cache.calls) == {"popularity"}
    assert not (ward.state / "journal").exists()


def test_each_batch_is_in_the_journal_before_it_is_written_and_all_before_the_commit(ward: Ward) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(WARM))
    assert (outcome.state, outcome.error) == (RunState.KEPT, None)
    assert len(ward.ours) == 448
    assert set(ward.ours.values()) == {outcome.run_id}
    assert {one: ward.cache.entries[one] for one in THEIRS} == THEIRS
    events = ward.events(outcome.run_id)
    assert events[:3] == [RunEvent.STARTED, RunEvent.WRITE_INTENT, RunEvent.WRITE_DONE]
    assert events[3:10] == [RunEvent.WARM_INTENT, RunEvent.WARM_DONE] * 3 + [RunEvent.COMMITTED]
    assert all(len(batch.entries) <= BATCH for batch in ward.cache.batches)
    lives = {ttl_s for batch in ward.cache.batches for _, ttl_s in batch.entries}
    assert len(lives) > 40
    assert min(lives) >= 270
    assert max(lives) <= 330


def test_a_hit_ratio_that_is_not_reached_rolls_everything_back(ward: Ward) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(COLD))
    assert outcome.state is RunState.ROLLED_BACK
    assert isinstance(outcome.error, RolledBack)
    assert "cache_miss_ratio 0.88 above" in outcome.reason
    assert ward.is_old()


def test_without_a_measured_hit_ratio_nothing_is_kept(ward: Ward) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(GOOD))
    assert outcome.state is RunState.HELD
    assert "no data on the cache's hits" in outcome.reason


def test_a_rollback_removes_exactly_what_is_still_the_runs_own(ward: Ward) -> None:
    run = treat.apply(ward.plan(), ward.tools(WARM)).run_id
    replaced = {**ward.cache.entries, name(20): ""}  # the gateway has stored its own answer meanwhile
    ward.cache.put(replaced)
    outcome = treat.rollback(ward.tools(WARM), force=True)
    assert not isinstance(outcome, NothingToDo)
    assert (outcome.state, outcome.error) == (RunState.ROLLED_BACK, None)
    assert ward.cache.entries == {**THEIRS, name(20): ""}
    events = ward.events(outcome.run_id)
    assert events.index(RunEvent.COMMITTED) < events.index(RunEvent.COOL_INTENT) < events.index(RunEvent.COOL_DONE)
    again = treat.rollback(ward.tools(WARM), run, force=True)
    assert isinstance(again, NothingToDo)


def test_a_warm_up_without_a_setting_to_repair_is_rolled_back_too(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack", BROKEN)
    plan = ward.plan()
    assert values_of(plan) == ()
    assert treat.apply(plan, ward.tools(WARM)).state is RunState.KEPT
    assert len(ward.ours) == 448
    outcome = treat.rollback(ward.tools(WARM), force=True)
    assert not isinstance(outcome, NothingToDo)
    assert outcome.state is RunState.ROLLED_BACK
    assert ward.cache.entries == THEIRS


@pytest.mark.parametrize("at", [2, 3, 4])
def test_a_gateway_that_fails_between_batches_leaves_nothing_behind(ward: Ward, at: int) -> None:
    plan = ward.plan()
    ward.cache.fails_at = at
    outcome = treat.apply(plan, ward.tools(WARM))
    assert outcome.state is RunState.UNDONE
    assert ward.is_old()


def test_an_undoing_that_cannot_reach_the_cache_is_finished_by_recovery(ward: Ward) -> None:
    plan = ward.plan()
    ward.cache.fails_at = 5  # popularity, three batches, and then the removal after the verification failed
    outcome = treat.apply(plan, ward.tools(COLD))
    assert outcome.state is RunState.ROLLBACK_FAILED
    assert ward.ours
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.ROLLED_BACK
    assert ward.is_old()


def test_a_rollback_whose_removal_fails_is_finished_by_recovery(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(WARM))
    ward.cache.fails_at = len(ward.cache.calls) + 2  # the look at what is tagged, then the removal
    outcome = treat.rollback(ward.tools(WARM), force=True)
    assert not isinstance(outcome, NothingToDo)
    assert outcome.state is RunState.OPEN
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.ROLLED_BACK
    assert ward.is_old()


def test_an_interrupt_between_batches_undoes_them(ward: Ward) -> None:
    plan = ward.plan()
    outcome = treat.apply(plan, ward.tools(WARM, cancelled=lambda: len(ward.cache.batches) >= 2))
    assert outcome.interrupted
    assert outcome.state is RunState.UNDONE
    assert ward.is_old()


def test_answers_that_are_not_known_are_computed_a_few_at_a_time(ward: Ward) -> None:
    ward.cache.unknown = 10
    plan, before_s = ward.plan(), ward.clock.now_s()
    treat.apply(plan, ward.tools())
    computing = [batch for batch in ward.cache.batches if batch.compute]
    assert [len(batch.entries) for batch in computing] == [4, 4, 2]
    assert len(ward.ours) == 448
    assert ward.clock.now_s() - before_s >= 10 / 20, "at most twenty a second"


def test_nothing_is_computed_while_questions_queue_and_patience_ends(ward: Ward) -> None:
    ward.cache.unknown = 10
    ward.cache.waits_ms = 80.0
    plan, before_s = ward.plan(), ward.clock.now_s()
    outcome = treat.apply(plan, ward.tools())
    assert len(ward.ours) == 438
    assert outcome.state is RunState.HELD
    assert PATIENCE_S <= ward.clock.now_s() - before_s < PATIENCE_S + 5
    assert any("10 are left to the traffic" in text for text in ward.said)


def test_a_warm_cache_has_nothing_to_do(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack", BROKEN)
    ward.cache.put({name(n): "" for n in range(450)})
    made = ward.make()
    assert isinstance(made, NothingToDo)
    assert "the cache is warm" in made.reason


def found(cause: str, fix: str) -> Diagnosis:
    base = diagnosis()
    assert base.cause is not None
    return replace(base, cause=Cause(cause, "A cause", "", "", "", fix, Confidence.HIGH, (), ()))


def test_it_is_refused_where_something_else_is_the_cause_unless_forced(ward: Ward) -> None:
    elsewhere = Basis(diagnosis=found("saturation", ""))
    with pytest.raises(Refused, match="not for what was found: A cause") as refused:
        ward.make(elsewhere)
    assert "--force" in refused.value.hint
    assert not ward.cache.calls
    forced = ward.make(elsewhere, force=True)
    assert isinstance(forced, Plan)
    assert any(line.startswith("Beware") for line in forced.justification)
    assert isinstance(ward.make(Basis(diagnosis=found("cache-flushed", "cache-warmup"))), Plan)


def test_a_target_without_such_a_cache_is_a_known_failure(ward: Ward) -> None:
    with pytest.raises(KnownError, match="not known"):
        make_plan("cache-warmup", ward.patient, ward.clock)
    plan = ward.plan()
    with pytest.raises(KnownError, match="no cache"):
        treat.preview(plan, replace(ward.tools(WARM), cache=None))


def test_a_plan_of_another_fix_may_not_warm(ward: Ward) -> None:
    plan = replace(ward.plan(), fix="batch-floor")
    crafted = replace(plan, digest=plan_digest(plan))
    with pytest.raises(Refused, match="may not"):
        treat.preview(crafted, ward.tools(WARM))
