"""What has happened in a drill so far, what of it did not go as designed, and the record told from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from latencydoctor.app.drill_ports import Executions, Place, Treated
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.drill import Drilled, DrillFigures, DrillWindow, Scenario
from latencydoctor.model.evidence import IncidentState
from latencydoctor.model.incident import IncidentRecord, LoadWindow, TimelineEntry
from latencydoctor.model.load import WindowStats
from latencydoctor.model.remedy import Decision, Plan
from latencydoctor.percent import percent

MIN_RATIO = 5.0
"""p99 before over p99 after: the scene went from 2.3 s to 0.2 s; below five times the effect is not proven."""

SAME_RATE_RATIO = 0.02
"""Before and after must be offered the same rate, or their latencies cannot be compared."""

MAX_HIT_ERROR_RATIO = 0.05
"""How far a reached hit ratio may be from the predicted one: five points."""

MAX_LATE_P99_MS = 50.0
"""A generator that sends later than this has measured itself."""

MAX_UNTOLD_RATIO = 0.005
"""Of the standard requests so many may fail in another way than by being turned away: the mission's limit on errors."""

MAX_OVERRUN_RATIO = 0.01
"""Executions that took longer than the time they simulate. Above one in a hundred they would show in a p99; a few
are what any shared machine's scheduler does to a process."""


@dataclass(slots=True)
class Course:
    """What has happened so far; the drill fills it in as it goes, the report is told from it."""

    scenario: Scenario
    place: Place | None = None
    windows: list[DrillWindow] = field(default_factory=list)
    timeline: list[TimelineEntry] = field(default_factory=list)
    alert_s: float | None = None
    diagnosis: Diagnosis | None = None
    plan: Plan | None = None
    treated: Treated | None = None
    applied_s: float | None = None
    verified_s: float | None = None
    executions: Executions | None = None
    misses: list[str] = field(default_factory=list)

    def note(self, at_s: float, what: str, proof: str = "") -> None:
        """One more line of the timeline."""
        self.timeline.append(TimelineEntry(at_s, what, proof))

    def window(self, label: str) -> WindowStats | None:
        """The figures of a measured window, None when it was not measured."""
        return next((one.stats for one in self.windows if one.label == label), None)


def judge(course: Course) -> None:
    """Add a miss for everything that did not go as the scenario designed it."""
    misses = course.misses
    _judge_cause(course)
    if course.scenario.accepted_causes and course.alert_s is None:
        misses.append("the alert did not fire")
    if not course.scenario.accepted_causes and course.alert_s is not None:
        misses.append("an alert fired although the settings are healthy")
    if course.scenario.expected_fix:
        _judge_fix(course)
    ran = course.executions
    if ran is not None and ran.overruns > ran.count * MAX_OVERRUN_RATIO:
        misses.append(f"{ran.overruns:g} of {ran.count:g} executions took longer than the time they simulate")
    for window in course.windows:
        late_ms = window.stats.late_p99_ms
        if late_ms is not None and late_ms > MAX_LATE_P99_MS:
            misses.append(f"the load generator was late by {late_ms:.0f} ms (p99) in the window {window.label!r}")


def _judge_cause(course: Course) -> None:
    found = course.diagnosis.cause.id if course.diagnosis and course.diagnosis.cause else None
    accepted = course.scenario.accepted_causes
    if found not in (accepted or (None,)):
        expected = " or ".join(accepted) or "no cause"
        course.misses.append(f"the diagnosis is {found or 'no cause'}, expected {expected}")
    if not accepted and course.diagnosis is not None:
        state = course.diagnosis.incident.state
        if state is not IncidentState.HEALTHY:
            course.misses.append(f"the diagnosis says {state.value!r}, expected 'healthy'")


def _judge_fix(course: Course) -> None:
    misses = course.misses
    if course.treated is None:
        misses.append("no fix was applied")
        return
    if course.treated.verification.decision is not Decision.KEEP:
        misses.append(f"the verification said {course.treated.verification.decision.value!r}, expected 'keep'")
    figures = _figures(course)
    if course.scenario.vip_p99_below_ms is not None:
        misses += _vip_misses(course, course.scenario.vip_p99_below_ms)
    elif figures.ratio is None or figures.ratio < MIN_RATIO:
        misses.append(f"p99 before is {figures.ratio or 0:.1f} times p99 after, expected at least {MIN_RATIO:g}")
    elif figures.failed_after:
        misses.append(f"{figures.failed_after} requests failed during the reload or after the fix")
    if course.scenario.canary and course.treated.trial is None:
        misses.append("no canary tried the fix before all traffic got it")
    if (figures.alert_to_verified_s or 0) > course.scenario.verified_within_s:
        misses.append(f"alert to verified fix took {figures.alert_to_verified_s:.0f} s")
    before, after = course.window("before"), course.window("after")
    _judge_prediction(course, after)
    if before and after and abs(before.offered_rps / after.offered_rps - 1) > SAME_RATE_RATIO:
        misses.append(f"the offered rate was {before.offered_rps:.1f}/s before and {after.offered_rps:.1f}/s after")


def _vip_misses(course: Course, below_ms: float) -> Iterator[str]:
    """VIP requests are served in time, and whoever else is not served is told so and when to come back."""
    before, after = course.window("before"), course.window("after")
    if before is None or after is None or before.vip is None or after.vip is None or after.standard is None:
        yield "nothing was measured of each priority"
        return
    if after.vip.p99_ms is None or after.vip.p99_ms >= below_ms:
        yield f"VIP p99 after the fix is {after.vip.p99_ms or math.inf:.0f} ms, expected below {below_ms:g} ms"
    if before.vip.p99_ms is None or before.vip.p99_ms < 2 * below_ms:
        yield f"VIP p99 before the fix is {before.vip.p99_ms or 0:.0f} ms: there was nothing to mend"
    not_served = after.vip.shed_count + after.vip.failed_count
    if not_served:
        yield f"{not_served} VIP requests were turned away or failed after the fix"
    untold = after.standard.failed_count
    if untold > MAX_UNTOLD_RATIO * after.standard.offered_count:
        yield f"{untold} standard requests failed after the fix without being told when to come back"


def _judge_prediction(course: Course, after: WindowStats | None) -> None:
    """A predicted hit ratio must be the one that the load itself saw afterwards."""
    predicted = [one.after for one in course.plan.predictions if one.signal == "cache_hit_ratio"] if course.plan else []
    for ratio in predicted:
        seen = after.hit_ratio if after else None
        if ratio is not None and seen is not None and abs(seen - ratio) > MAX_HIT_ERROR_RATIO:
            course.misses.append(f"a hit ratio of {percent(ratio, 1)} was predicted and {percent(seen, 1)} reached")


def _figures(course: Course) -> DrillFigures:
    before, after = course.window("before"), course.window("after")
    shown = after or before or course.window("crowd")
    p99_before = before.p99_ms if before else None
    p99_after = after.p99_ms if after else (None if before else (shown.p99_ms if shown else None))
    during = [stats for stats in (course.window("reload"), after) if stats is not None]
    verified_s = None
    if course.verified_s is not None and course.alert_s is not None:
        verified_s = course.verified_s - course.alert_s
    cause = course.diagnosis.cause.id if course.diagnosis and course.diagnosis.cause else None
    return DrillFigures(
        p99_before_ms=p99_before,
        p99_after_ms=p99_after,
        ratio=p99_before / p99_after if p99_before and p99_after else None,
        failed_before=before.failed_count if before else None,
        failed_after=sum(stats.failed_count for stats in during) if during else None,
        offered_rps=shown.offered_rps if shown else None,
        answered_rps=shown.answered_rps if shown else None,
        hit_ratio=shown.hit_ratio if shown else None,
        alert_to_verified_s=verified_s,
        cause=cause,
        accelerator=course.place.accelerator if course.place else course.scenario.accelerator,
        vip_p99_before_ms=before.vip.p99_ms if before and before.vip else None,
        vip_p99_after_ms=after.vip.p99_ms if after and after.vip else None,
        vip_failed_after=after.vip.failed_count + after.vip.shed_count if after and after.vip else None,
        standard_p99_after_ms=after.standard.p99_ms if after and after.standard else None,
        shed_after_ratio=after.standard.shed_ratio if after and after.standard else None,
    )


def tell(course: Course) -> Drilled:
    """The finished drill as a record."""
    assert course.diagnosis is not None, "a drill that got this far has been diagnosed"
    figures = _figures(course)
    record = IncidentRecord(
        title=f"Drill: {course.scenario.title}",
        accelerator=figures.accelerator,
        diagnosis=course.diagnosis,
        plan=course.plan,
        verification=course.treated.verification if course.treated else None,
        timeline=tuple(course.timeline),
        windows=tuple(_load_window(one) for one in course.windows),
        trial=course.treated.trial if course.treated else None,
    )
    return Drilled(course.scenario, figures, tuple(course.windows), record, tuple(course.misses))


def _load_window(window: DrillWindow) -> LoadWindow:
    stats = window.stats
    return LoadWindow(
        label=window.label,
        start_s=stats.start_s,
        length_s=stats.end_s - stats.start_s,
        offered_rps=stats.offered_rps,
        answered_rps=stats.answered_rps,
        p50_ms=stats.p50_ms,
        p99_ms=stats.p99_ms,
        failed=stats.failed_count,
        hit_ratio=stats.hit_ratio,
        vip_p99_ms=stats.vip.p99_ms if stats.vip else None,
        standard_p99_ms=stats.standard.p99_ms if stats.standard else None,
        shed_ratio=stats.standard.shed_ratio if stats.standard else None,
    )
