"""The traps of Triton's metrics, T1 to T14 of the reference and those met while recording.

Each test reads real pages, or pages derived from them by one mechanical rule that it names, both as the dialect does
and as one naively would; the truth comes from Triton's statistics, which count executions one by one, or from the
clients.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from latencydoctor.evidence.promql import evaluate
from latencydoctor.model.evidence import Selection
from tests.contract.recordings import (
    Recorded,
    Sample,
    Scrape,
    ask_template,
    derived,
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
COUNTERS_OFF = recorded("triton", "tritonserver-2.51.0-counters-off")
GPU_LEVEL = ("request_success", "inference_count", "exec_count", "_duration_us")


def load(recording: Recorded) -> list[Scrape]:
    return [recording.scrape("load-1"), recording.scrape("load-2")]


def dialect_reads(scrapes: list[Scrape], signal: str, model: str) -> float | None:
    return read(scrapes, "triton", signal, Selection(model))


def naive(scrapes: list[Scrape], template: str, model: str) -> float | None:
    return ask_template(scrapes, template, Selection(model))


def versions(recording: Recorded, page: str, model: str) -> list[dict[str, Any]]:
    return [item for item in recording.statistics(page) if item["name"] == model]


def executed_ns(recording: Recorded, page: str, model: str) -> int:
    """Nanoseconds of all executions so far, each counted once however many requests were in it."""
    return sum(
        int(size[part]["ns"])
        for version in versions(recording, page, model)
        for size in version["batch_stats"]
        for part in ("compute_input", "compute_infer", "compute_output")
    )


def statistic(recording: Recorded, page: str, model: str, part: str, what: str) -> int:
    return sum(int(version["inference_stats"][part][what]) for version in versions(recording, page, model))


def same(item: Sample) -> list[Sample]:
    return [item]


def test_t1_compute_counters_credit_every_request_with_the_whole_batch() -> None:
    scrapes = load(DEFAULTS)
    busy_s = (executed_ns(DEFAULTS, "load-2", "plain") - executed_ns(DEFAULTS, "load-1", "plain")) / 1e9
    truth = busy_s / seconds(scrapes)
    wrong = naive(scrapes, "sum(rate(nv_inference_compute_infer_duration_us{{sel}}[{window}])) / 1e6", "plain")
    assert wrong is not None
    assert wrong > 1.8 * truth
    # Batches differ in size here, and the counters credit the long ones most often: some per cent too high remain.
    assert dialect_reads(scrapes, "instance_busy_ratio", "plain") == pytest.approx(truth, rel=0.08)


def slower_cache(each_us: float) -> Any:
    """The rule: each miss's lookup took so much longer. It is in the queue time, as Triton counts it."""

    def change(item: Sample, misses: dict[str, float]) -> list[Sample]:
        name, labels, value = item
        longer = ("nv_inference_queue_duration_us", "nv_inference_request_duration_us")
        if labels.get("model") == "cached" and name in (*longer, "nv_cache_miss_duration_per_model"):
            value += each_us * misses["cached"]
        return [(name, labels, value)]

    return change


def with_slower_cache(scrapes: list[Scrape], each_us: float) -> list[Scrape]:
    change = slower_cache(each_us)
    slow = []
    for scrape in scrapes:
        misses = {"cached": total(scrape[2], "nv_cache_num_misses_per_model", model="cached")}
        slow.append(derived(scrape, lambda item, held=misses: change(item, held)))  # type: ignore[misc]  # bound now
    return slow


def test_t2_a_slow_cache_looks_like_a_queue() -> None:
    quick, slow = load(EVERYTHING), with_slower_cache(load(EVERYTHING), 200_000)
    before, after = dialect_reads(quick, "queue_time_ms", "cached"), dialect_reads(slow, "queue_time_ms", "cached")
    assert before is not None
    assert after is not None
    # Naively: requests wait several times longer, so batching is at fault.
    assert after > 3 * before
    share_before = dialect_reads(quick, "cache_in_queue_ratio", "cached")
    share_after = dialect_reads(slow, "cache_in_queue_ratio", "cached")
    assert share_before == pytest.approx(0, abs=0.02)
    assert share_after is not None
    assert share_after > 0.7
    # What else waits is what waited before.
    assert after * (1 - share_after) == pytest.approx(before, rel=0.05)


def test_t3_lookups_hold_the_front_end_s_thread_not_the_model() -> None:
    quick, slow = load(EVERYTHING), with_slower_cache(load(EVERYTHING), 200_000)
    for signal in ("instance_busy_ratio", "compute_time_ms", "batch_size_mean"):
        assert dialect_reads(slow, signal, "cached") == dialect_reads(quick, signal, "cached")
    before, after = dialect_reads(quick, "cache_time_ms", "cached"), dialect_reads(slow, "cache_time_ms", "cached")
    assert before is not None
    assert after is not None
    assert before < 0.1
    assert after > 20


def test_t4_a_cache_that_fails_is_no_error_to_triton() -> None:
    """The rule: no lookup finds anything, as when each times out."""

    def change(item: Sample) -> list[Sample]:
        name, labels, value = item
        return [(name, labels, 0.0 if name.startswith(("nv_cache_num_hits", "nv_cache_hit")) else value)]

    failing = [derived(scrape, change) for scrape in load(EVERYTHING)]
    assert dialect_reads(failing, "error_ratio", "cached") == 0.0
    assert dialect_reads(failing, "cache_hit_ratio", "cached") == 0.0
    # Only the cache server's own page tells the failure.
    redis = recorded("redis", "redis_exporter-1.45.0-2+b4")
    asked = load(redis)
    refused = read(asked, "redis", "cache_error_rate_eps", Selection(""))
    assert refused == pytest.approx(redis.clients("load-2")["refused"] / seconds(asked), rel=0.02)
    assert read(asked, "redis", "cache_up", Selection("")) == 1.0
    down = [derived(one, lambda item: [(item[0], item[1], 0.0 if item[0] == "redis_up" else item[2])]) for one in asked]
    assert read(down, "redis", "cache_up", Selection("")) == 0.0


def test_t5_questions_asked_again_meanwhile_are_neither_hit_nor_miss() -> None:
    scrapes = load(EVERYTHING)
    hits, asked = (
        statistic(EVERYTHING, "load-2", "cached", part, "count")
        - statistic(EVERYTHING, "load-1", "cached", part, "count")
        for part in ("cache_hit", "success")
    )
    wrong = naive(
        scrapes,
        "sum(rate(nv_cache_num_hits_per_model{{sel}}[{window}]))"
        " / (sum(rate(nv_cache_num_hits_per_model{{sel}}[{window}]))"
        " + sum(rate(nv_cache_num_misses_per_model{{sel}}[{window}])))",
        "cached",
    )
    assert wrong is not None
    assert wrong > 1.2 * hits / asked
    assert dialect_reads(scrapes, "cache_hit_ratio", "cached") == pytest.approx(hits / asked, rel=1e-6)
    # Eight clients asked each of twenty new questions at once.
    together = [EVERYTHING.scrape("unload-load"), EVERYTHING.scrape("equal")]
    assert EVERYTHING.clients("equal") == {"cached": {"ok": 160}}
    assert dialect_reads(together, "cache_duplicate_ratio", "cached") == pytest.approx(140 / 160)
    executions = growth(together, "nv_inference_exec_count", model="cached")
    assert dialect_reads(together, "requests_per_execution", "cached") == pytest.approx(160 / executions, rel=1e-6)


def test_t6_requests_that_find_the_queue_full_are_counted_nowhere() -> None:
    scrapes, clients = load(DEFAULTS), DEFAULTS.clients("load-2")["narrow"]
    assert clients["queue_full"] > 20 * (clients["ok"] + clients["timed_out"])
    failed = growth(scrapes, "nv_inference_request_failure", model="narrow")
    assert failed == clients["timed_out"]
    # What Triton calls rejected waited too long; it must not be taken for what was turned away.
    timeouts = dialect_reads(scrapes, "error_timeout_rps", "narrow")
    assert timeouts == pytest.approx(clients["timed_out"] / seconds(scrapes), rel=0.01)
    assert expressions("triton", "error_rejected_rps") == ()
    reasons = {item.signal: item.reason for item in dialect("triton").missing}
    assert "front end" in reasons["error_rejected_rps"]


def mostly_hits(scrape: Scrape) -> Scrape:
    """The rule: thousands of hits more for each request, which do not wait."""
    more = 5000 * total(scrape[2], "nv_inference_request_success", model="cached")

    def change(item: Sample) -> list[Sample]:
        name, labels, value = item
        counts = name in ("nv_cache_num_hits_per_model", "nv_inference_request_success")
        return [(name, labels, value + more if counts and labels["model"] == "cached" else value)]

    return derived(scrape, change)


def test_t7_an_ensemble_has_no_batch_no_queue_and_counts_failures_twice() -> None:
    scrapes, clients = load(DEFAULTS), DEFAULTS.clients("load-2")["pair"]
    batch = "sum(rate(nv_inference_count{{sel}}[{window}])) / sum(rate(nv_inference_exec_count{{sel}}[{window}]))"
    # Two items in each request, so its "batch" is always 2.
    assert naive(scrapes, batch, "pair") == pytest.approx(2)
    for signal in ("batch_size_mean", "requests_per_execution", "execution_rate_eps", "instance_busy_ratio"):
        assert dialect_reads(scrapes, signal, "pair") is None, signal
    assert dialect_reads(scrapes, "queue_depth", "pair") is None
    assert dialect_reads(scrapes, "requests_waiting", "pair") is None
    for model, expected in (("pair", 1.0), ("plain", 0.0), ("broken", 0.0), ("narrow", 0.0), ("stream", 0.0)):
        assert dialect_reads(scrapes, "model_is_ensemble", model) == expected, model
        assert (dialect_reads(scrapes, "batch_size_mean", model) is None) == (model == "pair")
    # Hits hardly wait either, which does not make a model an ensemble.
    cached = [mostly_hits(scrape) for scrape in load(EVERYTHING)]
    wrong = naive(
        cached,
        "sum(rate(nv_inference_queue_duration_us{{sel}}[{window}]))"
        " / sum(rate(nv_inference_request_success{{sel}}[{window}]))",
        "cached",
    )
    assert wrong is not None
    assert wrong < 5
    assert dialect_reads(cached, "model_is_ensemble", "cached") == 0.0
    assert dialect_reads(cached, "batch_size_mean", "cached") is not None
    truth = clients["failed"] / (clients["failed"] + clients["ok"])
    assert growth(scrapes, "nv_inference_request_failure", model="pair") == 2 * clients["failed"]
    assert dialect_reads(scrapes, "error_ratio", "pair") == pytest.approx(truth, rel=1e-6)
    rate = (clients["failed"] + clients["ok"]) / seconds(scrapes)
    assert dialect_reads(scrapes, "request_rate_rps", "pair") == pytest.approx(rate, rel=0.02)


@pytest.mark.parametrize(
    "engine",
    [
        ("nv_trt_llm_request_metrics", {"request_type": "scheduled", "model": "stream", "version": "1"}, 12.0),
        ("vllm:generation_tokens_total", {"model": "stream", "version": "1"}, 500.0),
    ],
    ids=["TensorRT-LLM", "vLLM"],
)
def test_t8_engines_of_language_models_batch_inside(engine: Sample) -> None:
    """The rule: the decoupled model's page also has one series of such an engine."""
    scrapes = load(DEFAULTS)
    # One request an execution, whatever the engine does with it.
    assert dialect_reads(scrapes, "batch_size_mean", "stream") == pytest.approx(1)
    there = [derived(scrape, same, [engine]) for scrape in scrapes]
    for signal in ("batch_size_mean", "requests_per_execution", "instance_busy_ratio"):
        assert dialect_reads(there, signal, "stream") is None, signal
        assert dialect_reads(there, signal, "plain") is not None, "another model beside it"
    if engine[0].startswith("nv_"):
        assert dialect_reads(there, "requests_running", "stream") == 12.0


def on_gpus(scrape: Scrape, gauges: dict[str, tuple[float, float]]) -> Scrape:
    """The rule: half of each model's executions on each of two GPUs, as Triton labels them; hits, misses and pending
    stay without gpu_uuid. `gauges` are utilisation and total memory by GPU."""

    def change(item: Sample) -> list[Sample]:
        name, labels, value = item
        if "model" not in labels or not name.endswith(GPU_LEVEL) or "summary" in name:
            return [item]
        return [(name, labels, 0.0), *((name, {**labels, "gpu_uuid": gpu}, value / 2) for gpu in ("GPU-a", "GPU-b"))]

    more: list[Sample] = []
    for gpu, (busy, memory) in gauges.items():
        more += [
            ("nv_gpu_utilization", {"gpu_uuid": gpu}, busy),
            ("nv_gpu_memory_total_bytes", {"gpu_uuid": gpu}, memory),
            ("nv_gpu_memory_used_bytes", {"gpu_uuid": gpu}, memory / 2),
        ]
    return derived(scrape, change, more)


GIB = float(2**30)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0.4, 80 * GIB), (0.6, 80 * GIB), 0.5),
        # The second GPU cannot be read: it is not idle.
        ((0.4, 80 * GIB), (0.0, 0.0), 0.4),
        ((0.0, 0.0), (0.0, 0.0), None),
        # Its memory can, its utilisation cannot (MIG): it executes, so it is not at 0 all the time.
        ((0.4, 80 * GIB), (0.0, 80 * GIB), 0.4),
        ((0.0, 80 * GIB), (0.0, 80 * GIB), None),
    ],
)
def test_t9_a_gpu_at_zero_is_not_idle(
    first: tuple[float, float], second: tuple[float, float], expected: float | None
) -> None:
    scrapes = [on_gpus(scrape, {"GPU-a": first, "GPU-b": second}) for scrape in load(DEFAULTS)]
    busy = dialect_reads(scrapes, "accelerator_busy_ratio", "plain")
    assert busy == (pytest.approx(expected) if expected is not None else None)
    wrong = naive(scrapes, "avg(nv_gpu_utilization)", "plain")
    assert (wrong != busy) == (0.0 in (first[0], second[0]))
    memory = dialect_reads(scrapes, "accelerator_memory_total_bytes", "plain")
    assert memory == ((first[1] + second[1]) or None)


def test_t9_a_gpu_that_executes_nothing_may_be_idle() -> None:
    scrapes = [
        on_gpus(EVERYTHING.scrape(page), {"GPU-a": (0.0, GIB), "GPU-b": (0.0, GIB)}) for page in ("equal", "silent")
    ]
    assert growth(scrapes, "nv_inference_exec_count") == 0
    assert dialect_reads(scrapes, "accelerator_busy_ratio", "plain") == 0.0


def test_t10_a_silent_summary_is_no_number() -> None:
    scrapes = [EVERYTHING.scrape("equal"), EVERYTHING.scrape("silent")]
    text = EVERYTHING.text("silent")
    quantiles = [value for name, labels, value in samples(text) if name.endswith("summary_us") and "quantile" in labels]
    assert quantiles
    assert all(map(math.isnan, quantiles))
    (wrong,) = evaluate(scrapes, "max(nv_inference_queue_summary_us)", scrapes[-1][0])
    assert math.isnan(wrong.value)
    for signal in ("e2e_p99_ms", "e2e_p50_ms", "queue_time_p99_ms", "compute_time_p99_ms"):
        for item in expressions("triton", signal):
            if names_on(scrapes).issuperset(item.requires):
                # Nothing at all, so that the next best expression is asked: not one NaN.
                at_s = scrapes[-1][0]
                filled = item.expr.replace("{{sel}}", "").replace(",{sel}", "").replace("{window}", "70s")
                assert evaluate(scrapes, filled, at_s) == ()


def test_t10_percentiles_of_replicas_are_not_averaged() -> None:
    """The rule for the other replica: all its times are so many times longer."""

    def times(factor: float) -> list[Scrape]:
        def change(item: Sample) -> list[Sample]:
            name, labels, value = item
            return [(name, labels, value * factor if "quantile" in labels else value)]

        return [(time_s, "other:8002", derived((time_s, "", text), change)[2]) for time_s, _, text in load(EVERYTHING)]

    one = load(EVERYTHING)
    alone = dialect_reads(one, "queue_time_p99_ms", "cached")
    assert alone is not None
    assert dialect_reads([*one, *times(1.1)], "queue_time_p99_ms", "cached") == pytest.approx(1.1 * alone)
    # Anything between them may be true: no value rather than a wrong one.
    assert dialect_reads([*one, *times(5)], "queue_time_p99_ms", "cached") is None
    assert naive([*one, *times(5)], 'avg(nv_inference_queue_summary_us{quantile="0.99",{sel}})', "cached") is not None


def test_t10_the_request_summary_is_missing_where_the_cache_is_on() -> None:
    assert total(EVERYTHING.text("load-2"), "nv_inference_request_summary_us_count", model="plain") > 0
    assert dialect_reads(load(EVERYTHING), "e2e_p99_ms", "cached") is None
    assert dialect_reads(load(EVERYTHING), "e2e_mean_ms", "cached") is not None


def test_t11_counters_start_anew_after_unload_and_load() -> None:
    scrapes = [EVERYTHING.scrape(page) for page in ("hot-reload", "loaded", "unload-load")]
    grown = growth(scrapes, "nv_inference_request_success", model="plain")
    assert grown < 0
    rate = dialect_reads(scrapes, "request_rate_rps", "plain")
    assert rate is not None
    truth = statistic(EVERYTHING, "unload-load", "plain", "success", "count") / seconds(scrapes)
    assert rate == pytest.approx(truth, rel=0.02)
    resets = dialect_reads(scrapes, "process_resets", "plain")
    assert resets is not None
    assert resets > 0
    assert dialect_reads(scrapes, "process_resets", "cached") == 0.0


def test_t11_a_hot_reload_resets_the_statistics_but_not_the_counters() -> None:
    scrapes = [EVERYTHING.scrape("load-2"), EVERYTHING.scrape("hot-reload")]
    before = statistic(EVERYTHING, "load-2", "plain", "success", "count")
    after = statistic(EVERYTHING, "hot-reload", "plain", "success", "count")
    assert after < before
    assert dialect_reads(scrapes, "process_resets", "plain") == 0.0
    assert growth(scrapes, "nv_inference_request_success", model="plain") == after


def test_t12_a_cache_turned_on_by_a_hot_reload_is_not_counted() -> None:
    scrapes = [EVERYTHING.scrape("load-2"), EVERYTHING.scrape("hot-reload")]
    hits = statistic(EVERYTHING, "hot-reload", "plain", "cache_hit", "count")
    assert hits > 0
    assert total(EVERYTHING.text("hot-reload"), "nv_cache_num_hits_per_model", model="plain") == 0
    # Not "no hits": no value.
    for signal in ("cache_hit_ratio", "cache_lookup_rate_rps", "cache_duplicate_ratio"):
        assert dialect_reads(scrapes, signal, "plain") is None, signal
    executed = statistic(EVERYTHING, "hot-reload", "plain", "compute_infer", "count")
    truth_ms = statistic(EVERYTHING, "hot-reload", "plain", "compute_infer", "ns") / executed / 1e6
    wrong = naive(
        scrapes,
        "sum(rate(nv_inference_compute_infer_duration_us{{sel}}[{window}]))"
        " / sum(rate(nv_inference_request_success{{sel}}[{window}])) / 1000",
        "plain",
    )
    assert wrong is not None
    assert wrong < 0.97 * truth_ms
    assert dialect_reads(scrapes, "compute_time_ms", "plain") == pytest.approx(truth_ms, rel=0.003)
    # After unload and load they are there.
    fresh = [EVERYTHING.scrape("loaded"), EVERYTHING.scrape("unload-load")]
    assert dialect_reads(fresh, "cache_hit_ratio", "plain") is not None


def test_t13_the_depth_of_the_queue_is_not_the_pending_gauge() -> None:
    scrapes = load(DEFAULTS)
    waited_ns = statistic(DEFAULTS, "load-2", "plain", "queue", "ns") - statistic(
        DEFAULTS, "load-1", "plain", "queue", "ns"
    )
    truth = waited_ns / 1e9 / seconds(scrapes)
    assert truth > 0.5
    wrong = naive(scrapes, "sum(nv_inference_pending_request_count{{sel}})", "plain")
    assert wrong == 0.0
    assert dialect_reads(scrapes, "queue_depth", "plain") == pytest.approx(truth, rel=0.03)
    assert not any("pending" in item.expr for item in expressions("triton", "queue_depth"))


def first_responses(scrape: Scrape, model: str, share: float, suffix: str = "_bucket") -> Scrape:
    """The rule: each request's first response came after `share` of its mean time, as newer Tritons would count it."""
    count = total(scrape[2], "nv_inference_request_success", model=model)
    sum_ms = total(scrape[2], "nv_inference_request_duration_us", model=model) / 1000 * share
    name, labels = "nv_inference_first_response_histogram_ms", {"model": model, "version": "1"}
    buckets = [
        (f"{name}{suffix}", {**labels, "le": bound}, count * reached)
        for bound, reached in (("100", 0.5), ("500", 1.0), ("2000", 1.0), ("5000", 1.0), ("+Inf", 1.0))
    ]
    return derived(scrape, same, [*buckets, (f"{name}_sum", labels, sum_ms), (f"{name}_count", labels, count)])


def test_t14_the_histogram_s_series_end_in_bucket() -> None:
    real = [first_responses(scrape, "plain", 1.0) for scrape in load(DEFAULTS)]
    assert dialect_reads(real, "e2e_p99_ms", "plain") == pytest.approx(492)
    assert naive(real, "histogram_quantile(0.99, sum by (le) (rate("
                 "nv_inference_first_response_histogram_ms{{sel}}[{window}])))", "plain") is None  # fmt: skip
    documented = [first_responses(scrape, "plain", 1.0, suffix="") for scrape in load(DEFAULTS)]
    assert dialect_reads(documented, "e2e_p99_ms", "plain") is None


def test_t14_a_first_response_is_not_the_whole_answer() -> None:
    parts = [first_responses(scrape, "stream", 0.1) for scrape in load(DEFAULTS)]
    assert dialect_reads(parts, "e2e_p99_ms", "stream") is None


def test_labels_are_summed_with_and_without_gpu_uuid() -> None:
    plain = load(EVERYTHING)
    gpus = [on_gpus(scrape, {"GPU-a": (0.4, GIB), "GPU-b": (0.6, GIB)}) for scrape in plain]
    wrong = naive(
        gpus,
        "max(rate(nv_cache_num_hits_per_model{{sel}}[{window}]) / on (model, version)"
        ' rate(nv_inference_request_success{gpu_uuid="",{sel}}[{window}]))',
        "cached",
    )
    assert wrong is None, "hits over the successes of the same series: nothing divided by nothing"
    for signal in ("request_rate_rps", "cache_hit_ratio", "compute_time_ms", "queue_time_ms", "batch_size_mean",
                   "requests_per_execution", "instance_busy_ratio", "e2e_mean_ms", "queue_depth"):  # fmt: skip
        expected = dialect_reads(plain, signal, "cached")
        assert expected is not None, signal
        assert dialect_reads(gpus, signal, "cached") == pytest.approx(expected), signal
    # Another server on the same two GPUs reports them again: they are not four.
    other = [(time_s, "other:8002", text) for time_s, _, text in gpus]
    assert dialect_reads([*gpus, *other], "accelerator_memory_total_bytes", "cached") == 2 * GIB
    assert dialect_reads([*gpus, *other], "accelerator_busy_ratio", "cached") == pytest.approx(0.5)


def test_frozen_counters_are_not_an_idle_server() -> None:
    """Section 1.1: counter_latencies=false stops the request counters as well."""
    scrapes, clients = load(COUNTERS_OFF), COUNTERS_OFF.clients("load-2")["plain"]
    assert naive(scrapes, "sum(rate(nv_inference_request_success{{sel}}[{window}]))", "plain") == 0.0
    rate = dialect_reads(scrapes, "request_rate_rps", "plain")
    # The ensemble's first step adds its share.
    assert rate is not None
    assert rate == pytest.approx(clients["ok"] / seconds(scrapes), rel=0.05)
    for signal in ("error_ratio", "batch_size_mean", "execution_rate_eps", "process_resets", "queue_depth"):
        assert dialect_reads(scrapes, signal, "plain") is None, signal
    for signal in ("queue_time_ms", "compute_time_ms", "server_time_ms"):
        measured = dialect_reads(scrapes, signal, "plain")
        assert measured is not None
        assert measured > 1, signal


def test_errors_a_python_model_returns_count_as_successes() -> None:
    """Met while recording: half of what the clients saw fail is among the successes."""
    scrapes, clients = load(DEFAULTS), DEFAULTS.clients("load-2")["broken"]
    succeeded = growth(scrapes, "nv_inference_request_success", model="broken")
    assert succeeded > 1.9 * clients["ok"]
    ratio = dialect_reads(scrapes, "error_ratio", "broken")
    truth = clients["failed"] / (clients["failed"] + clients["ok"])
    assert ratio is not None
    assert 0.4 * truth < ratio < 0.6 * truth
