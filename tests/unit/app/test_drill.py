"""The course of a drill: order of events, declared windows, what counts as a miss, and that all is torn down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.app import drill
from latencydoctor.app.course import Course, judge, tell
from latencydoctor.app.drill_ports import Treated
from latencydoctor.app.ports import Progress
from latencydoctor.app.scenarios import FLASH_CROWD, find
from latencydoctor.diagnosis.rank import diagnose
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.model.canary import CanaryCheck, CanaryKind, CanaryTrial
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.drill import Drilled, DrillWindow
from latencydoctor.model.evidence import IncidentState
from latencydoctor.model.load import ClassStats, LoadPlan, Phase
from latencydoctor.model.remedy import Decision, NothingToDo, Plan, Prediction, Reading, TargetObject, Verification
from tests.fakes.clock import FakeClock
from tests.fakes.drill import FakeDoctor, FakeLoad, FakeLoads, FakePatient, Scene
from tests.unit.builders import evidence, values
from tests.unit.diagnosis.test_walk import BACKLOG, BASELINE
from tests.unit.shipped import KNOWLEDGE

PLAN = Plan(
    schema=1,
    fix="batch-floor",
    title="share executions",
    target="fake",
    created_s=0.0,
    objects=(TargetObject("settings.yaml", 1, "digest-before"),),
    operations=(),
    diff="-a\n+b\n",
    compiled_diff="",
    predictions=(),
    side_effects=(),
    blast_radius="one model",
    justification=(),
    requirements=(),
    before_values=(),
    simulated=True,
    digest="d",
)


def batching_failed() -> Diagnosis:
    return diagnose(evidence(*values(BACKLOG, BASELINE)), KNOWLEDGE)


def healthy() -> Diagnosis:
    return diagnose(evidence(*values(BACKLOG), state=IncidentState.HEALTHY), KNOWLEDGE)


class Stage:
    """A scene with everything on it."""

    def __init__(self, diagnosis: Diagnosis | None = None, plan: Plan | NothingToDo = PLAN) -> None:
        self.clock = FakeClock()
        self.scene = Scene(self.clock)
        self.doctor = FakeDoctor(self.scene, diagnosis or batching_failed(), plan)
        self.told: list[Progress] = []

    def run(self, fault: str = "batching", *, prove_rollback: bool = False) -> Drilled:
        edges = drill.Edges(FakePatient(self.scene), self.doctor, FakeLoads(self.scene), self.clock, self.told.append)
        return drill.run(find(fault), edges, prove_rollback=prove_rollback)


def test_the_incident_is_diagnosed_fixed_and_measured_as_declared() -> None:
    stage = Stage()
    drilled = stage.run()
    assert drilled.misses == ()
    assert stage.scene.calls == ["up", "load", "switch crowd", "diagnose", "plan batch-floor", "apply", "stop", "down"]
    windows = {window.label: window.stats for window in drilled.windows}
    assert list(windows) == ["calm", "before", "after", "reload"]
    assert windows["before"].end_s - windows["before"].start_s == 20.0
    assert windows["after"].end_s - windows["after"].start_s == 20.0
    alert = next(entry for entry in drilled.record.timeline if "fires" in entry.what)
    assert windows["before"].start_s == alert.at_s
    effect = next(entry for entry in drilled.record.timeline if "in effect" in entry.what)
    assert windows["after"].start_s == effect.at_s + 9.0
    figures = drilled.figures
    assert (figures.p99_before_ms, figures.p99_after_ms, figures.ratio) == (2000.0, 100.0, 20.0)
    assert (figures.failed_before, figures.failed_after, figures.cause) == (0, 0, "batching-failed")
    assert figures.alert_to_verified_s == pytest.approx(41.0, abs=0.5)
    assert {"calm", "crowd", "before", "diagnose", "plan", "after", "teardown"} <= {one.phase for one in stage.told}


def test_the_rollback_is_proven_by_digest_measured_and_the_fix_applied_again() -> None:
    stage = Stage()
    drilled = stage.run(prove_rollback=True)
    assert drilled.misses == ()
    assert [window.label for window in drilled.windows][-2:] == ["rolled back", "applied again"]
    by_label = {window.label: window.stats.p99_ms for window in drilled.windows}
    assert by_label["rolled back"] == 2000.0
    assert by_label["applied again"] == 100.0
    assert stage.scene.calls.count("apply") == 2


def test_where_the_apply_took_its_change_back_itself_there_is_nothing_left_to_roll_back() -> None:
    stage = Stage()
    stage.doctor.decision = Decision.ROLL_BACK
    drilled = stage.run(prove_rollback=True)
    assert not any(call.startswith("rollback") for call in stage.scene.calls)
    assert stage.scene.calls.count("apply") == 1
    assert (
        "there is nothing left to roll back: the apply ended as 'roll back' (three checks passed), "
        "and the old settings are back" in drilled.misses
    )


def test_a_rollback_to_anything_else_is_a_miss() -> None:
    stage = Stage()
    stage.doctor.restored = "another digest"
    assert any("digest" in miss for miss in stage.run(prove_rollback=True).misses)


def test_the_same_crowd_on_healthy_settings_is_no_incident() -> None:
    stage = Stage(healthy())
    stage.scene.broken = False
    drilled = stage.run("none")
    assert drilled.misses == ()
    assert drilled.figures.cause is None
    assert drilled.figures.p99_before_ms is None
    assert [window.label for window in drilled.windows] == ["calm", "crowd"]


def test_an_alert_or_a_cause_on_healthy_settings_is_a_miss() -> None:
    drilled = Stage().run("none")
    assert any("alert fired" in miss for miss in drilled.misses)
    assert any("expected no cause" in miss for miss in drilled.misses)
    assert any("expected 'healthy'" in miss for miss in drilled.misses)


def test_saturation_of_all_there_is_room_for_is_named_and_nothing_is_changed() -> None:
    full = BACKLOG | {"accelerator_busy_ratio": 0.96, "batch_size_mean": 31.5, "config_max_batch_size": 32.0}
    stage = Stage(diagnose(evidence(*values(full, BASELINE)), KNOWLEDGE))
    drilled = stage.run("saturation-at-limit")
    assert drilled.misses == ()
    assert drilled.figures.cause == "saturation"
    assert "apply" not in stage.scene.calls
    assert [window.label for window in drilled.windows] == ["calm", "before"]


def test_what_does_not_go_as_designed_is_said() -> None:
    stage = Stage()
    stage.doctor.decision = Decision.HOLD
    stage.scene.failed = 3
    stage.scene.late_ms = 80.0
    stage.scene.overruns = 11.0
    misses = " | ".join(stage.run().misses)
    for part in ("said 'hold'", "6 requests failed", "late by 80 ms", "11 of 1000 executions"):
        assert part in misses, part


def test_a_few_overruns_are_no_miss() -> None:
    stage = Stage()
    stage.scene.overruns = 10.0
    assert stage.run().misses == ()


def test_nothing_to_plan_is_a_miss() -> None:
    drilled = Stage(plan=NothingToDo("batch-floor", "already as it would be")).run()
    assert any("nothing to plan" in miss for miss in drilled.misses)
    assert any("no fix was applied" in miss for miss in drilled.misses)


def test_an_alert_that_never_fires_is_a_miss_and_the_diagnosis_is_made_all_the_same() -> None:
    stage = Stage()
    stage.scene.alert_after_s = 1e9
    drilled = stage.run()
    assert "the alert did not fire" in drilled.misses
    assert "diagnose" in stage.scene.calls


def test_an_alert_before_the_crowd_ends_the_drill_and_tears_everything_down() -> None:
    stage = Stage()
    stage.scene.early_alert = True
    with pytest.raises(KnownError, match="before there is a crowd"):
        stage.run()
    assert stage.scene.calls[-2:] == ["stop", "down"]


def test_ctrl_c_in_the_middle_tears_everything_down(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()

    def interrupt() -> Diagnosis:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage.doctor, "diagnose", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert stage.scene.calls[-2:] == ["stop", "down"]


def test_a_second_ctrl_c_while_the_load_ends_leaves_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()

    def interrupt(_self: FakeLoad, *, drain: bool = True) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeLoad, "stop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert stage.scene.calls[-1] == "down"


def test_a_crowd_that_is_the_incident_is_at_least_five_times_the_calm_traffic() -> None:
    for fault in ("batching", "none", "saturation", "throttled", "slow-preprocessing"):
        assert find(fault).crowd_rps >= 5 * find(fault).calm_rps


def test_every_fault_has_its_baseline_also_in_short() -> None:
    for scenario in FLASH_CROWD.values():
        quick = scenario.quick()
        assert quick == replace(scenario, calm_s=quick.calm_s, measure_s=quick.measure_s)
        # Three windows of 5 s are the least that a baseline can be made of, and one more is cut off at its ends.
        assert quick.calm_s - scenario.warm_s >= 17, scenario.fault
        assert scenario.crowd_rps * 5 * quick.measure_s / 10 > 20, "a window holds enough requests to be judged"


def test_a_fault_is_done_to_the_stack_when_the_crowd_arrives_and_is_told() -> None:
    throttled = BACKLOG | {"accelerator_throttled_ratio": 1.0, "accelerator_clock_ratio": 0.3, "execution_time_ms": 80}
    stage = Stage(diagnose(evidence(*values(throttled, BASELINE)), KNOWLEDGE))
    drilled = stage.run("throttled")
    assert drilled.misses == ()
    assert stage.scene.calls[2:5] == ["switch crowd", "strike throttle", "diagnose"]
    assert "the device's clock falls from 1500 to 400 MHz" in [entry.what for entry in drilled.record.timeline]


def test_any_of_the_accepted_causes_is_right_and_every_other_is_a_miss() -> None:
    scenario = replace(find("throttled"), accepted_causes=("thermal-throttling", "batching-failed"))
    stage = Stage()
    edges = drill.Edges(FakePatient(stage.scene), stage.doctor, FakeLoads(stage.scene), stage.clock, stage.told.append)
    assert drill.run(scenario, edges).misses == ()
    misses = Stage().run("throttled").misses
    assert misses == (
        "the diagnosis is batching-failed, expected accelerator-throttled or thermal-throttling or power-capping",
    )


def test_a_cold_cache_is_warmed_by_less_traffic_before_the_calm_is_measured() -> None:
    stage = Stage()
    drilled = stage.run("cold-cache")
    calm = next(window.stats for window in drilled.windows if window.label == "calm")
    assert calm.end_s - calm.start_s == find("cold-cache").calm_s - find("cold-cache").warm_s
    told = [entry.what for entry in drilled.record.timeline]
    assert "the traffic stays as it is, 320 requests/s" in told
    leaving = [entry.what for entry in Stage().run("long-delay").record.timeline]
    assert "the crowd leaves, 20 requests/s" in leaving


def test_an_unknown_fault_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="no fault 'network'") as caught:
        find("network")
    assert "batching" in caught.value.hint


@pytest.mark.parametrize(("predicted", "right"), [(0.16, True), (0.08, True), (0.18, False), (None, True)])
def test_a_predicted_hit_ratio_must_be_reached_within_five_points(predicted: float | None, *, right: bool) -> None:
    told = Prediction("cache_hit_ratio", "ratio", 0.05, predicted, 0.0, 1.0, "counted")
    stage = Stage(plan=replace(PLAN, predictions=(told,)))
    misses = stage.run().misses
    assert (misses == ()) is right, misses
    assert right or misses == ("a hit ratio of 18.0 % was predicted and 12.0 % reached",)


def test_a_lost_cache_is_warmed_again() -> None:
    scenario = find("lost-cache")
    assert scenario.expected_fix == "cache-warmup"
    assert scenario.settings[0] == ("cache.ttl_seconds", "2")
    assert scenario.calm_rps * (1 - scenario.mix.hot_share_ratio) < 229 < scenario.crowd_rps, "launch-bound does 229/s"


def test_a_fix_that_was_to_be_tried_by_a_canary_and_was_not_is_a_miss() -> None:
    drilled = Stage().run("canary")
    assert drilled.misses == ("no canary tried the fix before all traffic got it",)


def test_a_canary_is_told_in_the_timeline_and_in_the_record() -> None:
    stage = Stage()
    check = CanaryCheck(
        0.0, stage.clock.now_s() + 90.0, Reading(90.0, 0.0, None, 900.0), Reading(1800.0, 0.0, None, 900.0), "", 0
    )
    stage.doctor.trial = CanaryTrial(CanaryKind.REPLICA, 0.5, (check,), Decision.KEEP, "p99 is half", None)
    drilled = stage.run("canary")
    assert drilled.misses == ()
    assert drilled.record.trial is stage.doctor.trial
    assert "canary promoted: p99 is half" in [entry.what for entry in drilled.record.timeline]


def by_priority(vip: ClassStats, standard: ClassStats) -> tuple[str, ...]:
    """What is held against the fix where VIP requests are served at the cost of the others."""
    scenario = find("vip-flood")
    slow = ClassStats(160, 0, 0, 160, 3000.0, 3000.0)
    base = FakeLoad(Scene(FakeClock()), LoadPlan("u", (Phase("calm", 300.0, None),), ("q",))).window(0.0, 10.0)
    course = Course(scenario)
    course.windows = [
        DrillWindow("before", replace(base, vip=slow, standard=slow)),
        DrillWindow("after", replace(base, vip=vip, standard=standard)),
    ]
    course.treated = Treated("r", "j", 1.0, Verification(Decision.KEEP, "", ()))
    course.diagnosis = diagnose(evidence(*values(BACKLOG, BASELINE)), KNOWLEDGE)
    course.alert_s, course.verified_s = 1.0, 60.0
    judge(course)
    assert tell(course).figures.vip_p99_before_ms == 3000.0
    return tuple(miss for miss in course.misses if "diagnosis" not in miss and "alert" not in miss)


SERVED = ClassStats(160, 160, 0, 0, 150.0, 300.0)
SHED = ClassStats(2900, 1400, 1490, 10, 400.0, 600.0)


def test_vip_in_time_and_the_others_told_when_to_come_back_is_as_designed() -> None:
    assert by_priority(SERVED, SHED) == ()


@pytest.mark.parametrize(
    ("vip", "standard", "says"),
    [
        (replace(SERVED, p99_ms=500.0), SHED, "VIP p99 after the fix is 500 ms"),
        (replace(SERVED, p99_ms=None), SHED, "VIP p99 after the fix is inf ms"),
        (replace(SERVED, answered_count=159, shed_count=1), SHED, "1 VIP requests were turned away"),
        (SERVED, replace(SHED, failed_count=15), "15 standard requests failed after the fix"),
    ],
)
def test_each_of_it_missed_is_said(vip: ClassStats, standard: ClassStats, says: str) -> None:
    (miss,) = by_priority(vip, standard)
    assert miss.startswith(says)
