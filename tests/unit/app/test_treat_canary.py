"""A change that a canary tries first: promoted, rolled back, held, interrupted, killed; nothing is committed before."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from latencydoctor.app import recovery, treat
from latencydoctor.app.canary_journal import cut_off
from latencydoctor.app.treat import Cautious, Tools
from latencydoctor.errors import Held, Refused, RollbackFailed, RolledBack, UsageError
from latencydoctor.model.remedy import Decision, Plan, Reading, RunEvent, RunState
from latencydoctor.remedy.settings_text import generation_of, settings_digest
from latencydoctor.remedy.staging import NoCanary, Stage
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes.arms import BETTER, SILENT, WORSE, FakeArms
from tests.fakes.patient import BROKEN, EFFECTIVE
from tests.fakes.verifier import GOOD
from tests.unit.app.test_treat import Ward, full_disk_at

TWO = BROKEN.replace("  model: faq-encoder\n", "  model: faq-encoder\n  replicas: 2\n")


class TwoWard(Ward):
    """A ward whose patient has two replicas; `arms` are readings of the canary and its peers."""

    def __init__(self, state: Path) -> None:
        super().__init__(state)
        for name in (SETTINGS, EFFECTIVE):
            (state / name).write_text(TWO)

    def staged(self, *arms: tuple[Reading, Reading], cancelled: Callable[[], bool] = treat.never) -> Tools:
        return dataclasses.replace(self.tools(GOOD, cancelled=cancelled), arms=FakeArms(*arms))

    def is_old(self) -> bool:
        running = (self.state / EFFECTIVE).read_text()
        return settings_digest(self.settings) == settings_digest(TWO) == settings_digest(running)

    def run_fields(self, event: RunEvent) -> list[dict[str, object]]:
        entries = self.history.entries(self.history.list()[0].run_id)
        return [dict(entry.fields) for entry in entries if entry.event == event]


@pytest.fixture
def ward(tmp_path: Path) -> TwoWard:
    return TwoWard(tmp_path / "stack")


def test_a_canary_that_holds_is_promoted_and_the_full_change_is_verified(ward: TwoWard) -> None:
    seen: list[str] = []
    tools = ward.staged(BETTER)
    tools = dataclasses.replace(tools, observer=lambda _: seen.append((ward.state / SETTINGS).read_text()))
    outcome = treat.apply(ward.plan(), tools)

    assert (outcome.state, outcome.error) == (RunState.KEPT, None)
    assert ward.is_new()
    assert "canary" not in ward.settings
    assert generation_of(ward.settings) == 9
    assert any("canary:\n  batching:\n" in text for text in seen)
    assert outcome.trial is not None
    assert (outcome.trial.decision, len(outcome.trial.checks)) == (Decision.KEEP, 5)
    assert outcome.verification is not None
    assert ward.events() == [
        RunEvent.STARTED,
        RunEvent.CANARY_INTENT,
        RunEvent.CANARY_DONE,
        *[RunEvent.CANARY_WINDOW] * 5,
        RunEvent.CANARY_DECISION,
        RunEvent.WRITE_INTENT,
        RunEvent.WRITE_DONE,
        RunEvent.COMMITTED,
        *[RunEvent.CHECK] * 3,
        RunEvent.DECISION,
        RunEvent.ENDED,
    ]
    (intent,) = ward.run_fields(RunEvent.CANARY_INTENT)
    assert (intent["kind"], intent["share_ratio"]) == ("replica", 0.5)
    (write,) = ward.run_fields(RunEvent.WRITE_INTENT)
    assert write["before"] == intent["after"]


def test_the_canary_runs_the_whole_change_and_its_peers_what_was_there(ward: TwoWard) -> None:
    ready = treat.preview(ward.plan(), ward.staged(BETTER))
    assert isinstance(ready.stage, Stage)
    assert ready.stage.told == "one of 2 replicas, which answers 50 % of the sessions"
    # Each replica gets half of the requests, and 16 of those do not come within the wait.
    added = "canary:\n  batching:\n    timeout_micros: 100000\n    max_batch_size: 32\n    preferred_batch_size: 13\n"
    assert ready.canary_text.replace(added, "") == TWO
    assert ward.history.list() == ()


def test_a_worse_canary_is_rolled_back_by_digest_and_the_old_state_measured(ward: TwoWard) -> None:
    outcome = treat.apply(ward.plan(), ward.staged(WORSE))
    assert isinstance(outcome.error, RolledBack)
    assert (outcome.state, outcome.digest) == (RunState.ROLLED_BACK, settings_digest(TWO))
    assert ward.is_old()
    assert "4.00 times the baseline's" in outcome.error.message
    assert outcome.remeasured is not None
    assert RunEvent.COMMITTED not in ward.events()
    with pytest.raises(UsageError, match="no applied run"):
        treat.rollback(ward.staged(WORSE))


def test_a_canary_that_nobody_can_judge_is_taken_back_and_held(ward: TwoWard) -> None:
    outcome = treat.apply(ward.plan(), ward.staged(SILENT))
    assert isinstance(outcome.error, Held)
    assert "--no-canary" in outcome.error.hint
    assert outcome.state is RunState.UNDONE
    assert ward.is_old()
    assert outcome.trial is not None
    assert outcome.trial.decision is Decision.HOLD


def test_an_interrupt_takes_the_canary_back(ward: TwoWard) -> None:
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(RunEvent.CANARY_WINDOW in ward.events())
        return asked[-1]

    outcome = treat.apply(ward.plan(), ward.staged(BETTER, cancelled=cancelled))
    assert outcome.interrupted
    assert (outcome.state, outcome.error) == (RunState.UNDONE, None)
    assert ward.is_old()


class Killed(BaseException):
    """The process is gone."""


def killing_after(event: RunEvent, count: int, tools: Tools, ward: TwoWard) -> Tools:
    """Tools whose run dies when it asks anything after so many records of that kind."""

    def dies() -> bool:
        if ward.history.list() and ward.events().count(event) >= count:
            raise Killed
        return False

    return dataclasses.replace(tools, cancelled=dies)


@pytest.mark.parametrize(("event", "count"), [(RunEvent.CANARY_DONE, 1), (RunEvent.CANARY_WINDOW, 2)])
def test_recovery_undoes_a_canary_that_was_killed(ward: TwoWard, event: RunEvent, count: int) -> None:
    with pytest.raises(Killed):
        treat.apply(ward.plan(), killing_after(event, count, ward.staged(BETTER), ward))
    assert "canary" in ward.settings
    with pytest.raises(Refused, match="never finished"):
        treat.apply(ward.plan(), ward.staged(BETTER))
    (outcome,) = recovery.recover(ward.staged(BETTER))
    assert outcome.state is RunState.UNDONE
    assert ward.is_old()


def test_failed_windows_count_on_after_the_checker_was_killed(ward: TwoWard) -> None:
    plan = ward.plan()
    slow = (dataclasses.replace(WORSE[0], p99_ms=1500.0), dataclasses.replace(WORSE[1], p99_ms=1490.0))
    with pytest.raises(Killed):
        treat.apply(plan, killing_after(RunEvent.CANARY_WINDOW, 2, ward.staged(slow), ward))
    recovery.recover(ward.staged(slow))
    treat.apply(plan, ward.staged(slow))
    windows = ward.run_fields(RunEvent.CANARY_WINDOW)
    assert [one["failures_in_a_row"] for one in windows][:2] == [3, 4]
    # Fifteen windows in all, two of them of the run that was killed.
    assert len(windows) == 13


def test_windows_of_another_plan_or_of_long_ago_do_not_count(ward: TwoWard) -> None:
    plan = ward.plan()
    with pytest.raises(Killed):
        treat.apply(plan, killing_after(RunEvent.CANARY_WINDOW, 2, ward.staged(BETTER), ward))
    recovery.recover(ward.staged(BETTER))
    ward.clock.sleep(1000.0)
    treat.apply(plan, ward.staged(BETTER))
    assert len(ward.run_fields(RunEvent.CANARY_WINDOW)) == 5


def test_settings_changed_by_somebody_else_while_the_canary_is_tried_are_left_alone(ward: TwoWard) -> None:
    tools = ward.staged(BETTER)
    foreign = TWO.replace("max_batch_size: 8", "max_batch_size: 4").replace("generation: 7", "generation: 20")

    def meddle() -> bool:
        if ward.events().count(RunEvent.CANARY_WINDOW) == 1 and "canary" in ward.settings:
            (ward.state / SETTINGS).write_text(foreign)
        return False

    outcome = treat.apply(ward.plan(), dataclasses.replace(tools, cancelled=meddle))
    assert isinstance(outcome.error, RollbackFailed)
    assert ward.settings == foreign
    assert outcome.trial is not None
    assert "changed by someone else" in outcome.trial.reason


def test_without_a_second_replica_there_is_no_honest_canary(tmp_path: Path) -> None:
    single = Ward(tmp_path / "one")
    (single.state / SETTINGS).write_text(BROKEN.replace("  model", "  replicas: 1\n  model"))
    (single.state / EFFECTIVE).write_text(single.settings)
    tools = dataclasses.replace(single.tools(GOOD), arms=FakeArms(BETTER))
    ready = treat.preview(single.plan(), tools)
    assert isinstance(ready.stage, NoCanary)
    assert "no second replica" in ready.stage.reason
    assert treat.apply(single.plan(), tools).state is RunState.KEPT
    assert RunEvent.CANARY_INTENT not in single.events()
    single = Ward(tmp_path / "other")
    with pytest.raises(Refused, match="there can be no canary"):
        treat.apply(
            single.plan(), dataclasses.replace(single.tools(GOOD), arms=FakeArms(BETTER)), Cautious(canary=True)
        )


def test_a_person_may_do_without_a_canary(ward: TwoWard) -> None:
    outcome = treat.apply(ward.plan(), ward.staged(WORSE), Cautious(canary=False))
    assert (outcome.state, outcome.trial) == (RunState.KEPT, None)


def test_a_canary_without_metrics_is_refused_before_anything_is_touched(ward: TwoWard) -> None:
    blind = dataclasses.replace(ward.tools(), verifier=None)
    with pytest.raises(Refused, match="no metrics source is configured"):
        treat.apply(ward.plan(), blind)
    assert ward.history.list() == ()
    assert ward.settings == TWO


def test_a_target_that_routes_no_share_is_changed_whole(ward: TwoWard) -> None:
    assert treat.preview(ward.plan(), ward.tools(GOOD)).stage == NoCanary("this target routes no share of its traffic")


def test_settings_that_hold_a_canary_already_are_not_changed(ward: TwoWard) -> None:
    held = TWO + "canary:\n  batching:\n    max_batch_size: 9\n"
    plan = ward.plan()
    for name in (SETTINGS, EFFECTIVE):
        (ward.state / name).write_text(held)
    with pytest.raises(Refused, match="stale"):
        treat.apply(plan, ward.staged(BETTER))
    with pytest.raises(Refused, match="hold a canary already"):
        treat.apply(ward.plan(), ward.staged(BETTER))


def test_a_canary_that_the_server_refuses_is_undone(ward: TwoWard) -> None:
    ward.patient.refuses = lambda text: "canary" in text
    outcome = treat.apply(ward.plan(), ward.staged(BETTER))
    assert isinstance(outcome.error, RolledBack)
    assert outcome.state is RunState.UNDONE
    assert ward.is_old()


def test_what_a_canary_found_is_read_back_as_it_was(ward: TwoWard) -> None:
    plan = ward.plan()
    assert isinstance(plan, Plan)
    with pytest.raises(Killed):
        treat.apply(plan, killing_after(RunEvent.CANARY_WINDOW, 1, ward.staged(WORSE), ward))
    (check,) = cut_off(ward.history, plan.digest, ward.clock.now_s())
    assert (check.canary, check.baseline) == WORSE
    assert cut_off(ward.history, "another", ward.clock.now_s()) == ()


def test_a_journal_that_fails_when_a_canary_is_promoted_takes_it_back(
    ward: TwoWard, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ward.plan()
    full_disk_at(ward, RunEvent.WRITE_INTENT, monkeypatch)
    outcome = treat.apply(plan, ward.staged(BETTER))
    assert isinstance(outcome.error, RolledBack)
    assert ward.is_old()
    monkeypatch.undo()
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.UNDONE
    assert ward.is_old()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -5.0])
def test_figures_that_are_none_are_no_data_of_a_canary(ward: TwoWard, bad: float) -> None:
    outcome = treat.apply(ward.plan(), ward.staged((dataclasses.replace(GOOD, p99_ms=bad), GOOD)))
    assert isinstance(outcome.error, Held)
    assert "no data on p99" in outcome.reason
    assert ward.is_old()
