from itertools import pairwise

from latencydoctor.stack.gateway.series import REQUEST_BOUNDS_S, STAGES, GatewaySeries


def test_the_page_has_the_names_that_others_rely_on() -> None:
    series = GatewaySeries()
    series.gauges(inflight=lambda: 3, generation=lambda: 7, share=lambda: 0.2)
    series.request(504, "vip", "canary", cached=False).add()
    series.event("queue_delay").add()
    page = series.registry.page().decode()
    for line in (
        'gateway_requests_total{status="504",priority="vip",arm="canary",cached="false"} 1',
        'gateway_request_duration_seconds_count{arm="stable",priority="standard"} 0',
        "gateway_cache_hits_total 0",
        "gateway_cache_misses_total 0",
        "gateway_cache_errors_total 0",
        "gateway_single_flight_joined_total 0",
        "gateway_inflight_requests 3",
        "gateway_settings_generation 7",
        "gateway_canary_share_ratio 0.2",
        'gateway_events_total{event="queue_delay"} 1',
    ):
        assert line in page.splitlines()
    for stage in STAGES:
        assert f'gateway_stage_duration_seconds_count{{stage="{stage}"}} 0' in page


def test_the_bounds_hold_the_limits_that_alerts_and_goals_use() -> None:
    assert {0.1, 0.5, 1, 2, 5} <= set(REQUEST_BOUNDS_S)
    assert list(REQUEST_BOUNDS_S) == sorted(REQUEST_BOUNDS_S)


def test_a_percentile_near_the_limit_is_read_to_a_tenth() -> None:
    steps = [after / before for before, after in pairwise(REQUEST_BOUNDS_S) if 0.05 <= before < 1.5]
    assert max(steps) < 1.13


def test_the_same_outcome_is_counted_in_the_same_series() -> None:
    series = GatewaySeries()
    assert series.request(200, "vip", "stable", cached=True) is series.request(200, "vip", "stable", cached=True)
    assert series.event("a") is series.event("a")
