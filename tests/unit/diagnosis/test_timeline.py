"""The order in which things began, on one clock."""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.diagnosis.timeline import timeline
from latencydoctor.model.diagnosis import Moment, MomentKind
from latencydoctor.model.evidence import IncidentState, Severity
from tests.unit.builders import NOW_S, event, evidence, measure


def test_logs_signals_and_the_incident_stand_in_order_of_their_onset() -> None:
    busy = replace(measure("accelerator_busy_ratio", 0.9, 0.2), family="accelerator")
    seen = replace(
        evidence(
            busy,
            measure("queue_time_ms", 900.0, 9.0),
            measure("e2e_p99_ms", 2140.0, 70.0),
            events=(event("gpu_oom", 3),),
        ),
        first_movers=(("queue_time_ms", NOW_S - 20), ("accelerator_busy_ratio", NOW_S - 40)),
    )
    assert timeline(seen) == (
        Moment(
            NOW_S - 40,
            MomentKind.ACCELERATOR,
            "accelerator_busy_ratio",
            "",
            0.9,
            0.2,
            "query_of_accelerator_busy_ratio",
            "ratio",
        ),
        Moment(NOW_S - 30, MomentKind.INCIDENT, "e2e_p99_ms", "", 2140.0, 1000.0, "query_of_e2e_p99_ms", "ms"),
        Moment(NOW_S - 20, MomentKind.LOG, "gpu_oom", "a line", 3.0, None, "gateway.log:7", "", Severity.ERROR),
        Moment(NOW_S - 20, MomentKind.METRIC, "queue_time_ms", "", 900.0, 9.0, "query_of_queue_time_ms", "ms"),
    )


def test_signals_that_moved_in_one_window_keep_their_order() -> None:
    seen = replace(evidence(), first_movers=(("z", NOW_S - 20), ("a", NOW_S - 20)))
    assert [one.what for one in timeline(seen) if one.kind is MomentKind.METRIC] == ["z", "a"]


def test_signal_without_a_measure_has_its_moment_all_the_same() -> None:
    (one, _) = timeline(replace(evidence(), first_movers=(("queue_time_ms", NOW_S - 40),)))
    assert (one.what, one.value, one.proof) == ("queue_time_ms", None, "")


def test_incident_alone_has_no_order_and_events_without_a_time_no_place() -> None:
    undated = replace(event("gpu_oom"), first_s=None, last_s=None)
    assert timeline(evidence(measure("e2e_p99_ms", 2140.0), events=(undated,))) == ()


def test_healthy_service_has_events_but_no_onset() -> None:
    seen = evidence(events=(event("gpu_oom"),), state=IncidentState.HEALTHY)
    assert [one.kind for one in timeline(seen)] == [MomentKind.LOG]
