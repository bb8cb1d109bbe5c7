"""Triton's and redis_exporter's dialects on recorded pages: every signal is read, and read right."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.errors import UsageError
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Selection
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.backfill import Page, running_prometheus
from tests.contract.recordings import (
    DIALECTS,
    PAGES,
    SIGNALS,
    Recorded,
    Scrape,
    dialect,
    expressions,
    growth,
    names_on,
    read,
    recorded,
    samples,
    seconds,
    total,
)

DEFAULTS = recorded("triton", "tritonserver-2.51.0-defaults")
EVERYTHING = recorded("triton", "tritonserver-2.51.0-everything")
REDIS = recorded("redis", "redis_exporter-1.45.0-2+b4")
MODELS = ("plain", "cached", "narrow", "broken", "stream", "pair")
LARGEST_BYTES = 300_000


def load(recording: Recorded = EVERYTHING) -> list[Scrape]:
    return [recording.scrape("load-1"), recording.scrape("load-2")]


def values(scrapes: list[Scrape], name: str, model: str = "") -> dict[str, float]:
    """All that a dialect reads."""
    found = {item.signal: read(scrapes, name, item.signal, Selection(model)) for item in dialect(name).signals}
    return {signal: value for signal, value in found.items() if value is not None}


def test_every_signal_is_read_from_the_pages_or_said_to_be_unrecorded() -> None:
    found = {signal for model in MODELS for signal in values(load(), "triton", model)}
    given = {item.signal for item in dialect("triton").signals}
    assert given - found == {item.signal for item in dialect("triton").unrecorded}


def test_the_rest_is_said_to_be_missing_with_the_reason() -> None:
    """What an inference server might be expected to say; signals of other kinds of server are nobody's loss."""
    told = {item.signal for item in dialect("triton").signals} | {item.signal for item in dialect("triton").missing}
    for signal in (
        "error_rejected_rps",
        "error_client_rps",
        "accelerator_clock_ratio",
        "sm_activity_ratio",
        "retry_ratio",
    ):
        assert signal in told
    assert all(item.reason for item in dialect("triton").missing)


def test_every_metric_of_the_dialect_is_on_a_page_or_belongs_to_something_unrecorded() -> None:
    there = names_on([EVERYTHING.scrape("load-2"), DEFAULTS.scrape("load-2")])
    required = {metric for item in dialect("triton").signals for metric in item.requires}
    absent = {name for name in required - there if not name.startswith(("nv_gpu_", "nv_trt_llm_"))}
    # Of newer versions: 24.11 and 26.01.
    assert absent == {
        "nv_model_load_duration_secs",
        *(f"nv_inference_first_response_histogram_ms_{part}" for part in ("bucket", "sum", "count")),
    }


@pytest.mark.parametrize("model", ["plain", "narrow", "stream"])
def test_the_means_are_those_of_the_statistics(model: str) -> None:
    scrapes, found = load(DEFAULTS), values(load(DEFAULTS), "triton", model)

    def mean_ms(part: str) -> float:
        sums = {"count": 0, "ns": 0}
        for page, sign in (("load-2", 1), ("load-1", -1)):
            for item in DEFAULTS.statistics(page):
                if item["name"] == model:
                    for what in sums:
                        sums[what] += sign * int(item["inference_stats"][part][what])
        return sums["ns"] / sums["count"] / 1e6

    parts = (
        ("server_time_ms", "success"),
        ("queue_time_ms", "queue"),
        ("compute_time_ms", "compute_infer"),
        ("compute_input_time_ms", "compute_input"),
        ("compute_output_time_ms", "compute_output"),
    )
    for signal, part in parts:
        assert found[signal] == pytest.approx(mean_ms(part), rel=0.01, abs=0.001), signal
    items = growth(scrapes, "nv_inference_count", model=model)
    executions = growth(scrapes, "nv_inference_exec_count", model=model)
    assert found["batch_size_mean"] == pytest.approx(items / executions)
    assert found["execution_rate_eps"] == pytest.approx(executions / seconds(scrapes), rel=0.01)


def test_requests_are_those_the_clients_sent() -> None:
    clients = DEFAULTS.clients("load-2")
    through_the_ensemble = clients["pair"]["ok"] + clients["pair"]["failed"]
    rate = values(load(DEFAULTS), "triton", "plain")["request_rate_rps"]
    assert rate == pytest.approx((clients["plain"]["ok"] + through_the_ensemble) / seconds(load(DEFAULTS)), rel=0.01)


def test_percentiles_are_of_the_minute_and_in_milliseconds() -> None:
    found = values(load(), "triton", "cached")
    # 20 ms and 1 ms an item, at most eight of them.
    assert 20 < found["compute_time_p99_ms"] < 40
    assert found["queue_time_p99_ms"] > found["queue_time_ms"]
    found = values(load(), "triton", "stream")
    assert found["e2e_p99_ms"] >= found["e2e_p50_ms"]


def test_replicas_add_up_and_their_means_are_weighted() -> None:
    """The rule for the other replica: the same pages under another name, as if it had been scraped as well.

    Busy instances are those of a replica, to be held against how many each has.
    """
    one = load()
    two = [*one, *((time_s, "other:8002", text) for time_s, _, text in one)]
    for model in ("plain", "cached"):
        single, double = values(one, "triton", model), values(two, "triton", model)
        assert {double.pop(signal) for signal in ("replica_imbalance_ratio", "slowest_replica_ratio")} == {1.0}
        assert set(single) == set(double)
        summed = {
            "request_rate_rps", "queue_depth", "concurrency", "execution_rate_eps",
            "cache_lookup_rate_rps", "cache_entry_count", "hot_step_queue_depth", "pending_growth_rps",
        }  # fmt: skip
        for signal, value in single.items():
            assert double[signal] == pytest.approx(value * (2 if signal in summed else 1), rel=1e-6), signal


def test_models_are_kept_apart() -> None:
    apart = {model: values(load(DEFAULTS), "triton", model)["request_rate_rps"] for model in MODELS}
    for model, rate in apart.items():
        if model in ("plain", "stream"):
            assert rate == pytest.approx(growth(load(DEFAULTS), "nv_inference_request_success", model=model)
                                         / seconds(load(DEFAULTS)), rel=0.01)  # fmt: skip
    assert len(set(apart.values())) == len(MODELS)
    unknown = values(load(DEFAULTS), "triton", "nobody")
    # No metric says which models are an ensemble's parts: those are of all models.
    assert set(unknown) <= {
        "cache_in_queue_ratio",
        "hot_step_share_ratio",
        "hot_step_queue_depth",
        "pending_growth_rps",
    }


def test_every_signal_of_redis_exporter_is_read() -> None:
    found = values(load(REDIS), "redis")
    assert set(found) == {item.signal for item in dialect("redis").signals}
    clients, length_s = REDIS.clients("load-2"), seconds(load(REDIS))
    lookups = clients["hits"] + clients["misses"]
    assert found["cache_hit_ratio"] == pytest.approx(clients["hits"] / lookups, rel=0.001)
    assert found["cache_lookup_rate_rps"] == pytest.approx(lookups / length_s, rel=0.01)
    text = REDIS.text("load-2")
    used, limit = total(text, "redis_memory_used_bytes"), total(text, "redis_memory_max_bytes")
    assert found["cache_memory_used_ratio"] == pytest.approx(used / limit)
    evicted = growth(load(REDIS), "redis_evicted_keys_total")
    assert found["cache_eviction_rate_eps"] == pytest.approx(evicted / length_s, rel=0.01)
    assert 0 < found["cache_command_time_ms"] < 1
    assert found["cache_uptime_s"] == total(text, "redis_uptime_in_seconds")
    assert found["cache_insert_error_rate_eps"] == 0.0
    assert found["cache_error_rate_eps"] > 0
    gone = evicted + growth(load(REDIS), "redis_expired_keys_total")
    new = growth(load(REDIS), "redis_db_keys") + gone
    written = growth(load(REDIS), "redis_commands_total", cmd="hset")
    assert found["cache_new_key_ratio"] == pytest.approx(new / clients["misses"], rel=0.001)
    assert found["cache_duplicate_write_ratio"] == pytest.approx(1 - new / written, abs=0.001)
    assert found["cache_up"] == 1.0


def test_a_cache_server_of_others_is_not_ours() -> None:
    one = load(REDIS)
    two = [*one, *((time_s, "other:9121", text) for time_s, _, text in one)]
    assert values(two, "redis") == {}
    needs = {name.id: name.needs for name in SIGNALS}
    for signal in {item.signal for item in dialect("redis").signals} - {"cache_hit_ratio", "cache_lookup_rate_rps"}:
        assert "--selector" in needs[signal], signal
    chosen = {
        item.signal: read(two, "redis", item.signal, Selection("", 'instance="other:9121"'))
        for item in dialect("redis").signals
    }
    assert chosen == values(one, "redis")
    # A selector that does not fit the cache server: the only one there is may still be meant.
    assert read(one, "redis", "cache_hit_ratio", Selection("", 'instance="triton:8002"')) == pytest.approx(
        values(one, "redis")["cache_hit_ratio"]
    )
    assert read(two, "redis", "cache_hit_ratio", Selection("", 'instance="triton:8002"')) is None


@pytest.mark.parametrize("name", ["triton", "redis", "nginx"])
def test_the_recordings_say_how_they_were_made(name: str) -> None:
    folders = sorted(path.name for path in (PAGES / name).iterdir())
    assert folders
    for folder in folders:
        held = recorded(name, folder)
        for key in ("server", "version", "from", "recipe", "date", "load", "trimmed", "pages"):
            assert held.told[key], key
        assert folder.startswith(f"{held.told['server']}-{held.told['version']}")
        assert {"idle", "load-1", "load-2"} <= set(held.told["pages"])
        for page in held.told["pages"]:
            assert len(held.text(page)) < LARGEST_BYTES
    assert dialect(name).verified.removeprefix(f"tests/contract/pages/{name}/") in folders


def test_no_triton_expression_divides_before_it_sums() -> None:
    """One series with gpu_uuid and one without: a ratio of single series is of unlike things."""
    for item in expressions("triton", "batch_size_mean") + expressions("triton", "queue_time_ms"):
        assert item.expr.startswith("sum(rate(")
    assert [item.id for item in DIALECTS if item.id == "triton"] == ["triton"]


def test_an_engineer_is_told_what_to_do_about_an_ensemble(tmp_path: Path) -> None:
    """The recorded pages in a real Prometheus, and a whole reading of it."""
    page = Page()
    for time_s, instance, text in load(DEFAULTS):
        for name, labels, value in samples(text):
            page.observe(time_s, name, value, **labels, instance=instance, job="triton")
    at_s = load(DEFAULTS)[-1][0]
    rules = Rules(DIALECTS, SIGNALS)
    with running_prometheus(tmp_path / "it", page) as url:
        sources = Sources(PrometheusMetrics(PrometheusSource(url)))
        with pytest.raises(UsageError) as caught:
            collect(sources, rules, CollectRequest(Selection(""), at_s, 60.0))
        assert caught.value.hint.count("--model") == len(MODELS)
        ensemble = collect(sources, rules, CollectRequest(Selection("pair"), at_s, 60.0))
        plain = collect(sources, rules, CollectRequest(Selection("plain"), at_s, 60.0))
    gaps = {gap.signal: gap for gap in ensemble.gaps}
    assert "--model NAME" in gaps["batch_size_mean"].needs
    assert "batch_size_mean" in {series.signal for series in plain.series}
    assert plain.dialects == ("triton",)
