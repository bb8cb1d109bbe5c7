"""Rates through all that happens to counters: resets, restarts, gaps, second reporters, series that end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import UsageError
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Collected, Selection
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.backfill import Load, Page, Place, running_prometheus, serve_phases

SIGNALS, DIALECTS = read_signals(locate())
START_S = float(int(time.time()) - 1900)
STEADY = Load(900, 60, 110)


def read(page: Page, folder: Path, at_s: float, selection: Selection | None = None) -> Collected:
    with running_prometheus(folder / "it", page) as url:
        metrics = PrometheusMetrics(PrometheusSource(url))
        request = CollectRequest(selection or Selection(""), at_s, 800.0)
        return collect(Sources(metrics), Rules(DIALECTS, SIGNALS), request)


def rates(collected: Collected) -> list[float]:
    (series,) = (series for series in collected.series if series.signal == "request_rate_rps")
    return list(series.values)


def server(**labels: str) -> Place:
    return Place(server=(("job", "triton"), *labels.items()), front=None, simulated=False)


def test_a_counter_that_begins_anew_costs_at_most_a_scrape(tmp_path: Path) -> None:
    page = Page()
    middle_s = serve_phases(page, START_S, [Load(600, 60, 110)], server(instance="a"))
    end_s = serve_phases(page, middle_s, [Load(300, 60, 110)], server(instance="a"))
    found = rates(read(page, tmp_path, end_s))
    # A reset is read as a start from zero, and the made counters begin at 1000: one window may be off by that.
    assert sorted(found)[1:-1] == pytest.approx([60.0] * (len(found) - 2))
    assert min(found) >= 0


def test_a_restart_under_a_new_name_is_not_counted_twice(tmp_path: Path) -> None:
    page = Page()
    middle_s = serve_phases(page, START_S, [Load(600, 60, 110)], server(pod="a", instance="10.0.0.1:8002"))
    end_s = serve_phases(page, middle_s, [Load(300, 60, 110)], server(pod="b", instance="10.0.0.2:8002"))
    collected = read(page, tmp_path, end_s)
    assert collected.selection == Selection("faq-encoder")
    # Between the last scrape of the one and the second of the other a window may hold less, never more.
    assert max(rates(collected)) == pytest.approx(60.0)
    assert len([rate for rate in rates(collected) if rate < 59]) <= 2


def test_a_gap_is_a_gap_and_no_spike(tmp_path: Path) -> None:
    page = Page()
    end_s = serve_phases(page, START_S, [STEADY], server(instance="a"))
    silence = (end_s - 400, end_s - 220)
    for by_labels in page.samples.values():
        for points in by_labels.values():
            points[:] = [(at_s, value) for at_s, value in points if not silence[0] < at_s < silence[1]]
    collected = read(page, tmp_path, end_s)
    (series,) = (series for series in collected.series if series.signal == "request_rate_rps")
    assert not [at_s for at_s in series.times_s if silence[0] + 20 < at_s < silence[1]]
    # At the edges a window is only partly covered, and Prometheus extends its rate by half a scrape at most.
    assert max(series.values) <= 60.0 * 1.01
    assert collected.scrape_interval_s == 5.0


@pytest.mark.parametrize("label", ["prometheus_replica", "receive_replica", "replica"])
def test_two_prometheus_servers_that_scrape_the_same_are_one(tmp_path: Path, label: str) -> None:
    page = Page()
    end_s = 0.0
    for copy in ("p-0", "p-1"):
        end_s = serve_phases(page, START_S, [STEADY], server(instance="a", **{label: copy}))
        for step in range(180):
            page.observe(START_S + 5 * (step + 1), "up", 1.0, job="triton", instance="a", **{label: copy})
    # The first was down for a while, so the second is the one to read.
    for name in page.samples:
        for labels, points in page.samples[name].items():
            if "p-0" in labels:
                points[:] = [(at_s, value) for at_s, value in points if not end_s - 200 < at_s < end_s - 100]
    collected = read(page, tmp_path, end_s)
    assert rates(collected) == pytest.approx([60.0] * len(rates(collected)))
    assert collected.selection == Selection("faq-encoder")
    proofs = [series.proof.query for series in collected.series if series.signal == "request_rate_rps"]
    assert f'{label}="p-1"' in proofs[0]


def test_replicas_of_the_server_itself_are_added_up(tmp_path: Path) -> None:
    page = Page()
    end_s = 0.0
    for worker in ("w-0", "w-1"):
        # As Ray names its workers: one address exports all of them, and `up` knows nothing of them.
        end_s = serve_phases(page, START_S, [STEADY], server(instance="a", replica=worker))
    for step in range(180):
        page.observe(START_S + 5 * (step + 1), "up", 1.0, job="triton", instance="a")
    collected = read(page, tmp_path, end_s)
    assert rates(collected) == pytest.approx([120.0] * len(rates(collected)))


def test_a_target_that_two_jobs_scrape_is_never_merged(tmp_path: Path) -> None:
    page = Page()
    end_s = 0.0
    for job in ("blue", "green"):
        place = Place(server=(("job", job), ("instance", "a:8002")), front=None, simulated=False)
        end_s = serve_phases(page, START_S, [STEADY], place)
    with pytest.raises(UsageError, match="several services fit"):
        read(page, tmp_path, end_s)


def test_series_that_ended_long_ago_are_no_service(tmp_path: Path) -> None:
    page = Page()
    old = Place("old-model", (("job", "triton"), ("instance", "a")), None, simulated=False)
    serve_phases(page, START_S, [Load(200, 60, 110)], old)
    end_s = serve_phases(page, START_S + 900, [STEADY], server(instance="a"))
    assert read(page, tmp_path, end_s).selection == Selection("faq-encoder")


def test_a_server_that_has_just_died_is_still_the_one_meant(tmp_path: Path) -> None:
    page = Page()
    end_s = serve_phases(page, START_S, [STEADY], server(instance="a"))
    # Beyond the five minutes that Prometheus looks back for an instant value.
    collected = read(page, tmp_path, end_s + 360)
    assert collected.selection == Selection("faq-encoder")
    assert rates(collected)[0] == pytest.approx(60.0)


def test_a_young_service_tells_its_scrape_interval(tmp_path: Path) -> None:
    page = Page()
    end_s = serve_phases(page, START_S, [Load(12, 60, 110)], server(instance="a"), scrape_s=2.0)
    assert read(page, tmp_path, end_s).scrape_interval_s == 2.0
