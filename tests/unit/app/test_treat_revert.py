"""Taking a change of the settings back as a transaction, from the plan to the rollback, on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencydoctor.app import treat
from latencydoctor.app.planning import Basis, make_plan
from latencydoctor.app.treat import Tools
from latencydoctor.errors import Refused
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import NothingToDo, OperationKind, Plan, RunState
from latencydoctor.remedy.plan_file import plan_from_json, plan_to_json
from latencydoctor.remedy.settings_text import generation_of, settings_digest
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.targets.kept_generations import KEPT
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes.clock import FakeClock
from tests.fakes.patient import BROKEN, EFFECTIVE, FakePatient
from tests.fakes.verifier import GOOD, FakeVerifier
from tests.unit.builders import NOW_S, evidence, values

HEALTHY = BROKEN.replace("generation: 7", "generation: 6").replace("max_batch_size: 8", "max_batch_size: 32")
MEASURED = {
    "e2e_p99_ms": 2140.0, "error_ratio": 0.004, "request_rate_rps": 360.0, "cache_hit_ratio": 0.1,
    "compute_time_ms": 28.0, "batch_size_mean": 8.0, "execution_rate_eps": 35.7, "accelerator_busy_ratio": 0.29,
}  # fmt: skip
BASIS = Basis(evidence=evidence(*values(MEASURED)), window_s=5.0)
"""Its incident began 30 s before NOW_S."""


class Ward:
    def __init__(self, state: Path, changed_s: float = NOW_S - 33) -> None:
        self.patient = FakePatient(state)
        self.clock = FakeClock()
        self.state = state
        moments = iter((NOW_S - 3600, changed_s))
        keeper = KeptGenerations(state / KEPT, lambda: next(moments))
        keeper.keep(6, HEALTHY, "ana")
        keeper.keep(7, BROKEN, "ben")

    def plan(self) -> Plan | NothingToDo:
        return make_plan("revert-change", self.patient, self.clock, BASIS)

    def tools(self) -> Tools:
        history = JournalFolder(self.state / "journal", self.clock.now_s)
        return Tools(self.patient, self.patient.changer(), history, FakeVerifier(GOOD), self.clock, lambda _: None)

    @property
    def settings(self) -> str:
        return (self.state / SETTINGS).read_text()


def test_a_canary_that_somebody_left_behind_is_taken_back_with_the_rest(tmp_path: Path) -> None:
    left = BROKEN + "canary:\n  batching:\n    max_batch_size: 4\n"
    ward = Ward(tmp_path / "stack")
    for name in (SETTINGS, EFFECTIVE):
        (ward.state / name).write_text(left)
    moments = iter((NOW_S - 3600, NOW_S - 33))
    (ward.state / KEPT).unlink()
    keeper = KeptGenerations(ward.state / KEPT, lambda: next(moments))
    keeper.keep(6, HEALTHY, "ana")
    keeper.keep(7, left, "ben")
    outcome = treat.apply(planned(ward), ward.tools())
    assert (outcome.state, outcome.trial) == (RunState.KEPT, None)
    assert "canary" not in ward.settings


def planned(ward: Ward) -> Plan:
    found = ward.plan()
    assert isinstance(found, Plan), found
    return found


def test_the_plan_shows_the_whole_change_back_and_what_a_queue_makes_of_it(tmp_path: Path) -> None:
    made = planned(Ward(tmp_path / "stack"))
    (operation,) = made.operations
    assert (operation.kind, operation.key) == (OperationKind.RESTORE_SETTINGS, "6")
    assert "+    max_batch_size: 32" in made.diff.splitlines()
    assert "generation" not in made.diff
    assert "max_batch_size: 32" in made.compiled_diff
    p99 = next(one for one in made.predictions if one.signal == "e2e_p99_ms")
    assert p99.after is not None
    assert p99.after < 1000
    assert any("written by ben: 3 s before" in line for line in made.justification)
    assert plan_from_json(plan_to_json(made)) == made


def test_the_forecast_knows_what_executions_took_before_the_change(tmp_path: Path) -> None:
    """The server has been loaded anew since, and has run nothing but the small batches that it was then limited to."""
    ward = Ward(tmp_path / "stack")
    before = {"batch_size_mean": 16.1, "compute_time_ms": 36.8}
    seen = evidence(*values(MEASURED, before))
    basis = Basis(evidence=seen, window_s=5.0, times=(BatchTime(8, 1000, 28.0),))
    made = make_plan("revert-change", ward.patient, ward.clock, basis)
    assert isinstance(made, Plan)
    capacity = next(one for one in made.predictions if one.signal == "capacity_rps")
    # 19.2 ms + 1.1 ms an item: 32 in 54.4 ms.
    assert capacity.after == pytest.approx(588, rel=0.02)
    assert "2000 executions of 2 batch sizes" in capacity.method


def test_it_is_applied_byte_for_byte_and_rolled_back_byte_for_byte(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack")
    outcome = treat.apply(planned(ward), ward.tools())
    assert outcome.state is RunState.KEPT
    assert ward.settings == HEALTHY.replace("generation: 6", "generation: 8")
    assert outcome.digest == settings_digest(HEALTHY)
    back = treat.rollback(ward.tools(), force=True)
    assert not isinstance(back, NothingToDo)
    assert back.state is RunState.ROLLED_BACK
    assert settings_digest(ward.settings) == settings_digest(BROKEN)
    assert generation_of(ward.settings) == 9


def test_a_plan_whose_settings_are_not_kept_any_more_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack")
    made = planned(ward)
    history = ward.state / KEPT
    told = json.loads(history.read_text())
    del told["generations"][0]
    history.write_text(json.dumps(told))
    with pytest.raises(Refused, match="does not keep"):
        treat.apply(made, ward.tools())
    assert ward.settings == BROKEN
    assert not (ward.state / "journal").exists()


def test_a_kept_text_that_was_changed_after_the_plan_is_refused(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack")
    made = planned(ward)
    history = ward.state / KEPT
    history.write_text(history.read_text().replace("max_batch_size: 32", "max_batch_size: 64"))
    with pytest.raises(Refused, match="does not keep"):
        treat.preview(made, ward.tools())


def test_a_change_long_before_the_incident_is_left_alone(tmp_path: Path) -> None:
    found = Ward(tmp_path / "stack", changed_s=NOW_S - 900).plan()
    assert isinstance(found, NothingToDo)
    assert "did 14 min before it" in found.reason


def test_settings_that_leave_a_size_to_its_default_are_not_forecast(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack")
    history = ward.state / KEPT
    told = json.loads(history.read_text())
    told["generations"][0]["text"] = HEALTHY.replace("    timeout_micros: 0\n", "")
    history.write_text(json.dumps(told))
    (only,) = planned(ward).predictions
    assert only.after is None
    assert only.method == "not predicted: the earlier settings leave inference.batching.timeout_micros to its default"
