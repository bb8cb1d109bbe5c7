"""What counts as an incident, where it begins, and when it cannot be told."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.incident import ENOUGH_REQUESTS
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import IncidentState
from tests.unit.series_builders import NOW_S, WINDOW_S, judged

CALM = [100.0] * 20


def test_a_calm_service_is_healthy() -> None:
    found = judged(e2e_p99_ms=CALM, error_ratio=[0.001] * 20)
    assert found.incident.state is IncidentState.HEALTHY
    assert found.incident.reason == "p99 is 100 ms, the SLO is 1,000 ms, 0.1 % of the requests fail"
    assert (found.incident.windows_bad, found.incident.windows_judged) == (0, 5)
    assert (found.first, found.last, found.baseline) == (15, 19, (10, 14))


@pytest.mark.parametrize(("bad", "state"), [(2, IncidentState.HEALTHY), (3, IncidentState.INCIDENT)])
def test_three_of_the_last_five_windows_decide(bad: int, state: IncidentState) -> None:
    tail = [2000.0] * bad + [900.0] * (5 - bad)
    found = judged(Slo(baseline_ratio=1000), e2e_p99_ms=[*CALM, *tail])
    assert found.incident.state is state
    assert found.incident.windows_bad == bad


@pytest.mark.parametrize(("value", "state"), [(1000.0, IncidentState.HEALTHY), (1000.1, IncidentState.INCIDENT)])
def test_the_slo_itself_is_still_good(value: float, state: IncidentState) -> None:
    assert judged(Slo(baseline_ratio=1000), e2e_p99_ms=[*CALM, *[value] * 5]).incident.state is state


@pytest.mark.parametrize(("value", "state"), [(199.9, IncidentState.HEALTHY), (200.0, IncidentState.INCIDENT)])
def test_twice_the_baseline_is_an_incident_below_the_slo(value: float, state: IncidentState) -> None:
    found = judged(e2e_p99_ms=[*CALM, *[value] * 6])
    assert found.incident.state is state
    if state is IncidentState.INCIDENT:
        assert found.incident.reason == (
            "p99 is 200 ms, at or above the limit set by the baseline, 200 ms, in 5 of the last 5 windows of 10 s"
        )
        assert found.incident.since_s == NOW_S - 6 * WINDOW_S


@pytest.mark.parametrize(("ratio", "state"), [(0.0049, IncidentState.HEALTHY), (0.005, IncidentState.INCIDENT)])
def test_errors_alone_are_an_incident(ratio: float, state: IncidentState) -> None:
    found = judged(e2e_p99_ms=[100.0] * 24, error_ratio=[*[0.0] * 20, *[ratio] * 4])
    assert found.incident.state is state
    if state is IncidentState.INCIDENT:
        assert found.incident.signal == "error_ratio"
        assert found.incident.reason.startswith("0.5 % of the requests fail, the limit is 0.5 %")


def test_a_crash_in_which_nothing_is_measured_but_errors_is_an_incident() -> None:
    found = judged(error_ratio=[*[0.0] * 10, *[1.0] * 5])
    assert found.incident.state is IncidentState.INCIDENT
    assert found.incident.since_s == NOW_S - 5 * WINDOW_S


def test_the_onset_is_where_latency_left_its_old_level_not_where_it_passed_the_slo() -> None:
    found = judged(e2e_p99_ms=[*CALM, 250.0, 400.0, 800.0, 1500.0, 2000.0, 2200.0, 2300.0])
    assert found.incident.since_s == NOW_S - 7 * WINDOW_S
    assert (found.first, found.baseline) == (20, (13, 19))


def test_a_single_good_window_does_not_end_the_stretch_and_two_do() -> None:
    slo = Slo(baseline_ratio=1000)
    one = judged(slo, e2e_p99_ms=[*CALM, 2000.0, 2000.0, 100.0, 2000.0, 2000.0, 2000.0])
    assert one.incident.since_s == NOW_S - 6 * WINDOW_S
    two = judged(slo, e2e_p99_ms=[*CALM, 2000.0, 100.0, 100.0, 2000.0, 2000.0, 2000.0])
    assert two.incident.since_s == NOW_S - 3 * WINDOW_S


def test_what_was_bad_earlier_and_is_well_now_is_healthy() -> None:
    found = judged(e2e_p99_ms=[*CALM, *[2000.0] * 10, *[110.0] * 5])
    assert found.incident.state is IncidentState.HEALTHY


def test_a_service_that_became_faster_is_healthy() -> None:
    assert judged(e2e_p99_ms=[*[800.0] * 15, *[100.0] * 10]).incident.state is IncidentState.HEALTHY


def test_an_incident_as_old_as_the_range_has_no_baseline() -> None:
    found = judged(e2e_p99_ms=[2000.0] * 12)
    assert found.incident.state is IncidentState.INCIDENT
    assert (found.first, found.baseline) == (0, None)


def test_two_windows_before_the_onset_are_no_baseline() -> None:
    assert judged(e2e_p99_ms=[100.0, 100.0, *[2000.0] * 8]).baseline is None
    assert judged(e2e_p99_ms=[100.0, 100.0, 100.0, *[2000.0] * 8]).baseline == (0, 2)


def test_the_mean_stands_in_for_p99_and_it_is_said() -> None:
    found = judged(e2e_mean_ms=[*CALM, *[1500.0] * 5])
    assert found.incident.signal == "e2e_mean_ms"
    assert found.incident.reason.startswith("the mean (no percentile is measured here) is 1,500 ms")


def test_p99_without_recent_values_gives_way_to_the_mean() -> None:
    found = judged(e2e_p99_ms=[100.0] * 5, e2e_mean_ms=[100.0] * 40)
    assert found.incident.state is IncidentState.HEALTHY
    # The builder ends every series now, so this p99 is recent; one that ended long ago is not.
    old = judged(e2e_p99_ms=[*[100.0] * 5, *[None] * 35], e2e_mean_ms=[100.0] * 40)
    assert old.incident.signal == "e2e_mean_ms"


def test_errors_alone_do_not_show_that_a_service_is_well() -> None:
    gone = [*[100.0] * 15, *[None] * 5]
    found = judged(e2e_p99_ms=gone, error_ratio=[0.0] * 20, request_rate_rps=[50.0] * 20)
    assert found.incident.state is IncidentState.CANNOT_TELL
    assert found.incident.reason == "no latency is measured here, or it has no recent values"
    failing = [*[0.0] * 15, *[0.2] * 5]
    found = judged(e2e_p99_ms=gone, error_ratio=failing, request_rate_rps=[50.0] * 20)
    assert found.incident.state is IncidentState.INCIDENT


@pytest.mark.parametrize("tail", [[None] * 5, [*[None] * 4, 100.0]])
def test_a_mean_that_can_be_judged_comes_before_a_p99_that_cannot(tail: list[float | None]) -> None:
    slow = [*[50.0] * 15, *[9000.0] * 5]
    found = judged(e2e_p99_ms=[*[100.0] * 15, *tail], e2e_mean_ms=slow, error_ratio=[0.0] * 20)
    assert found.incident.state is IncidentState.INCIDENT
    assert found.incident.signal == "e2e_mean_ms"


def test_windows_without_a_latency_do_not_end_a_bad_stretch() -> None:
    p99 = [*[100.0] * 12, *[2000.0] * 4, None, None, None, *[2000.0] * 5]
    found = judged(e2e_p99_ms=p99, error_ratio=[0.0] * 24, request_rate_rps=[50.0] * 24)
    assert found.incident.since_s == NOW_S - 12 * WINDOW_S


def test_no_latency_no_traffic_and_too_little_traffic_cannot_be_told() -> None:
    blind = judged(queue_time_ms=CALM)
    assert blind.incident.reason == "no latency is measured here, or it has no recent values"
    idle = judged(e2e_p99_ms=CALM, request_rate_rps=[*[50.0] * 5, *[0.0] * 15])
    assert idle.incident.reason == "there is no traffic"
    few = judged(e2e_p99_ms=CALM, request_rate_rps=[1.0] * 20)
    assert few.incident.reason == "only 0 of the last 10 windows have at least 20 requests"
    ended = judged(e2e_p99_ms=[*CALM, *[None] * 4], request_rate_rps=[*[50.0] * 20, *[None] * 4])
    assert ended.incident.reason == "the last 40 s say nothing: traffic or scraping has ended"
    for found in (blind, idle, few, ended):
        assert found.incident.state is IncidentState.CANNOT_TELL
        assert found.incident.since_s is None


def test_nothing_at_all_cannot_be_told() -> None:
    assert judged(e2e_p99_ms=[]).incident.state is IncidentState.CANNOT_TELL


def test_windows_with_too_few_requests_do_not_count() -> None:
    enough = ENOUGH_REQUESTS / WINDOW_S
    rates = [enough] * 20 + [enough - 0.01, enough] * 3
    values = CALM + [5000.0, 100.0] * 3
    found = judged(e2e_p99_ms=values, request_rate_rps=rates)
    assert found.incident.state is IncidentState.HEALTHY


def test_without_a_request_rate_every_value_counts() -> None:
    found = judged(e2e_p99_ms=[*CALM, *[2000.0] * 5], request_rate_rps=[])
    assert found.incident.state is IncidentState.INCIDENT


def test_noise_around_a_level_is_no_incident() -> None:
    values = [100.0 * math.exp(0.25 * math.sin(7 * index)) for index in range(60)]
    assert judged(e2e_p99_ms=values).incident.state is IncidentState.HEALTHY


@given(st.lists(st.one_of(st.none(), st.floats(0.1, 1e5)), min_size=1, max_size=60))
def test_the_stretch_lies_in_the_range_and_the_baseline_before_it(values: list[float | None]) -> None:
    found = judged(e2e_p99_ms=values)
    assert 0 <= found.first <= found.last
    if found.baseline is not None:
        assert 0 <= found.baseline[0] <= found.baseline[1] < found.first
    if found.incident.state is IncidentState.INCIDENT:
        assert found.incident.windows_bad >= 3
