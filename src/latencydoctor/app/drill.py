"""The rehearsed incident from the calm before it to the verified fix, on a patient of its own.

The doctor sees only what a stranger's deployment would show. The windows are declared beforehand: `before` starts when
the alert fires, `after` a fixed time after the change is in effect; both have the same length and offered rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.app.course import Course, judge, tell
from latencydoctor.app.drill_ports import Doctor, Load, LoadRunner, Patient, Place
from latencydoctor.app.ports import Clock, Observer, Progress
from latencydoctor.errors import KnownError
from latencydoctor.model.drill import Drilled, DrillWindow, Scenario
from latencydoctor.model.load import LoadPlan, Phase
from latencydoctor.model.remedy import Decision, NothingToDo

_POLL_S = 0.25
_SETTLE_SLACK_S = 10.0


@dataclass(frozen=True, slots=True)
class Edges:
    """Everything outside that a drill touches."""

    patient: Patient
    doctor: Doctor
    loads: LoadRunner
    clock: Clock
    observer: Observer


def run(scenario: Scenario, edges: Edges, *, prove_rollback: bool = False) -> Drilled:
    """Run one drill and tear everything down, whatever happens.

    Raises `KnownError` when the stage itself fails; what the doctor gets wrong is a miss, not an error.
    """
    course = Course(scenario)
    load: Load | None = None
    try:
        course.place = edges.patient.up(scenario, edges.observer)
        load = edges.loads.start(_load_plan(scenario, course.place))
        _calm(course, edges, load)
        _crowd(course, edges, load)
        _examine(course, edges)
        if scenario.expected_fix:
            _treat(course, edges, load, label="after")
            if prove_rollback:
                _prove_rollback(course, edges, load)
        _measure_the_untreated(course, edges, load)
        course.executions = edges.patient.executions()
        judge(course)
        return tell(course)
    finally:
        edges.observer(Progress("teardown", "stopping load and stack"))
        try:
            if load is not None:
                load.stop(drain=False)
        finally:
            # Also on another Ctrl-C meanwhile.
            edges.patient.down()


def _load_plan(scenario: Scenario, place: Place) -> LoadPlan:
    warm = (Phase("warm", scenario.warm_rps, scenario.warm_s),) if scenario.warm_s else ()
    return LoadPlan(
        url=place.url,
        phases=(*warm, Phase("calm", scenario.calm_rps, None), Phase("crowd", scenario.crowd_rps, None)),
        questions=place.questions,
        seed=scenario.seed,
        deadline_ms=place.deadline_ms,
        bound_s=600,
        mix=scenario.mix,
    )


def _calm(course: Course, edges: Edges, load: Load) -> None:
    start_s = edges.clock.now_s()
    course.note(start_s, f"calm traffic, {course.scenario.calm_rps:g} requests/s", "load generator")
    _wait_until(edges, start_s + course.scenario.calm_s, "calm", "baseline traffic")
    if edges.patient.firing():
        raise KnownError(
            f"the alert {edges.patient.firing()[0]} fires before there is a crowd",
            hint="The machine is too busy for this drill; end other work and run it again.",
        )
    # The first seconds warm the cache and the connections; they are no baseline.
    warmed_s = start_s + max(5.0, course.scenario.warm_s)
    _measure(course, edges, load, "calm", warmed_s, start_s + course.scenario.calm_s)


def _crowd(course: Course, edges: Edges, load: Load) -> None:
    scenario = course.scenario
    load.switch("crowd")
    start_s = edges.clock.now_s()
    course.note(start_s, _told_of_the_crowd(scenario), "load generator")
    if scenario.injection is not None:
        edges.patient.strike(scenario.injection)
        course.note(edges.clock.now_s(), scenario.injection.told, "done by the drill")
    patience_s = scenario.alert_within_s if scenario.accepted_causes else scenario.measure_s + 10
    while edges.clock.now_s() < start_s + patience_s:
        firing = edges.patient.firing()
        if firing:
            course.alert_s = edges.clock.now_s()
            course.note(course.alert_s, f"alert {firing[0]} fires", "Prometheus, /api/v1/alerts")
            break
        waited_s = edges.clock.now_s() - start_s
        edges.observer(Progress("crowd", "waiting for the alert to fire", waited_s / patience_s))
        edges.clock.sleep(_POLL_S)
    if course.alert_s is not None:
        _wait_until(edges, course.alert_s + course.scenario.measure_s, "before", "measuring the incident")


def _told_of_the_crowd(scenario: Scenario) -> str:
    if scenario.crowd_rps == scenario.calm_rps:
        return f"the traffic stays as it is, {scenario.crowd_rps:g} requests/s"
    verb = "arrives" if scenario.crowd_rps > scenario.calm_rps else "leaves"
    return f"the crowd {verb}, {scenario.crowd_rps:g} requests/s"


def _examine(course: Course, edges: Edges) -> None:
    edges.observer(Progress("diagnose", "reading the evidence"))
    course.diagnosis = edges.doctor.diagnose()
    told = course.diagnosis.cause.title if course.diagnosis.cause else course.diagnosis.incident.state.value
    course.note(edges.clock.now_s(), f"diagnosed: {told}", "latencydoctor diagnose")
    edges.observer(Progress("diagnose", told, 1.0))


def _treat(course: Course, edges: Edges, load: Load, label: str) -> None:
    scenario = course.scenario
    planned = edges.doctor.plan(scenario.expected_fix)
    if isinstance(planned, NothingToDo):
        course.misses.append(f"there was nothing to plan: {planned.reason}")
        return
    course.plan = course.plan or planned
    course.note(edges.clock.now_s(), f"planned: {planned.title}", "plan, shown as a dry run")
    edges.observer(Progress("plan", planned.diff))
    started_s = edges.clock.now_s()
    treated = edges.doctor.apply(planned, edges.observer)
    verified_s = edges.clock.now_s()
    if treated.trial is not None:
        course.note(
            treated.trial.checks[-1].end_s, f"canary promoted: {treated.trial.reason}", f"journal {treated.run_id}"
        )
    course.note(treated.in_effect_s, "the change is in effect", f"journal {treated.run_id}")
    course.note(verified_s, f"verified: {treated.verification.decision.value}", f"journal {treated.run_id}")
    if label == "after":
        course.treated, course.applied_s, course.verified_s = treated, started_s, verified_s
    if course.alert_s is not None and label == "after":
        _measure(course, edges, load, "before", course.alert_s, course.alert_s + scenario.measure_s)
    start_s = treated.in_effect_s + scenario.settle_s
    _wait_until(edges, start_s + scenario.measure_s, label, "measuring the effect")
    _measure(course, edges, load, label, start_s, start_s + scenario.measure_s)
    if label == "after":
        _measure(course, edges, load, "reload", started_s, start_s)


def _prove_rollback(course: Course, edges: Edges, load: Load) -> None:
    if course.treated is None or course.plan is None:
        return
    scenario, ended = course.scenario, course.treated.verification
    if ended.decision is Decision.ROLL_BACK:
        course.misses.append(
            f"there is nothing left to roll back: the apply ended as {ended.decision.value!r} ({ended.reason}), "
            "and the old settings are back"
        )
        return
    edges.observer(Progress("rollback", "putting the old settings back"))
    digest = edges.doctor.roll_back(course.treated.run_id, edges.observer)
    at_s = edges.clock.now_s()
    course.note(at_s, "rolled back, proven by digest", digest)
    if digest != course.plan.objects[0].digest:
        course.misses.append("the rollback did not restore the digest that the plan was made on")
    start_s = at_s + scenario.settle_s
    _wait_until(edges, start_s + scenario.measure_s, "rollback", "measuring the old settings again")
    _measure(course, edges, load, "rolled back", start_s, start_s + scenario.measure_s)
    # The old settings have had time to do more harm: the second plan is held against what is true now.
    edges.observer(Progress("applied again", "diagnosing again"))
    edges.doctor.diagnose()
    _treat(course, edges, load, label="applied again")


def _measure_the_untreated(course: Course, edges: Edges, load: Load) -> None:
    """Where nothing was changed, the crowd's own window is measured: from the alert, or the last one without any."""
    if any(window.label == "before" for window in course.windows):
        return
    length_s = course.scenario.measure_s
    end_s = course.alert_s + length_s if course.alert_s is not None else edges.clock.now_s()
    _measure(course, edges, load, "before" if course.alert_s is not None else "crowd", end_s - length_s, end_s)


def _measure(course: Course, edges: Edges, load: Load, label: str, start_s: float, end_s: float) -> None:
    """Wait until everything intended in the window has been answered or has timed out, then keep its figures."""
    assert course.place is not None, "load runs only against a stack that is up"
    give_up_s = max(edges.clock.now_s(), end_s) + course.place.deadline_ms / 1000 + _SETTLE_SLACK_S
    while not load.settled(end_s):
        if edges.clock.now_s() > give_up_s:
            raise KnownError(
                f"the load generator has not settled the window {label!r} in time",
                hint="The machine is overloaded; end other work and run the drill again.",
            )
        edges.clock.sleep(_POLL_S)
    course.windows.append(DrillWindow(label, load.window(start_s, end_s)))


def _wait_until(edges: Edges, end_s: float, phase: str, text: str) -> None:
    start_s = edges.clock.now_s()
    while (now_s := edges.clock.now_s()) < end_s:
        edges.observer(Progress(phase, text, (now_s - start_s) / max(end_s - start_s, 1e-9)))
        edges.clock.sleep(min(_POLL_S, end_s - now_s))
