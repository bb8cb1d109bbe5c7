"""Several servers and several models: which one stands out, what was loaded, what no part of a server explains.

The pages are the recorded ones, changed by one mechanical rule that each test names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
import yaml

from latencydoctor.evidence.promql import evaluate
from latencydoctor.evidence.queries import render
from latencydoctor.model.evidence import Selection
from tests.contract.recordings import (
    PAGES,
    Recorded,
    Sample,
    Scrape,
    derived,
    dialect,
    expressions,
    growth,
    read,
    recorded,
    samples,
)

TRITON = recorded("triton", "tritonserver-2.51.0-defaults")
CACHED = recorded("triton", "tritonserver-2.51.0-everything")


def load(recording: Recorded = TRITON) -> list[Scrape]:
    return [recording.scrape("load-1"), recording.scrape("load-2")]


def listed(name: str, folder: str) -> list[Scrape]:
    """The last two pages of a recording that lists its scrapes."""
    facts = yaml.safe_load((PAGES / name / folder / "recording.yaml").read_text(encoding="utf-8"))
    return [
        (float(one["time_s"]), "it:1", (PAGES / name / folder / one["file"]).read_text(encoding="utf-8"))
        for one in facts["scrapes"][-2:]
    ]


def vllm() -> list[Scrape]:
    folder = PAGES / "vllm" / "vllm-0.32.0"
    at_s = yaml.safe_load((folder / "recording.yaml").read_text(encoding="utf-8"))["pages"]
    return [
        (float(at_s[name]), "it:1", (folder / f"{name}.prom").read_text(encoding="utf-8"))
        for name in ("load-1", "load-2")
    ]


def another(scrapes: Sequence[Scrape], instance: str, times: Callable[[str], float]) -> list[Scrape]:
    """The rule for another replica: what grew between the pages grew so many times as much, by the metric's name."""
    first = {(name, tuple(labels.items())): value for name, labels, value in samples(scrapes[0][2])}

    def change(one: Sample) -> Iterable[Sample]:
        name, labels, value = one
        before = first.get((name, tuple(labels.items())), value)
        # Ray tells its replicas apart by a label of its own.
        told = {**labels, "replica": instance} if "replica" in labels else labels
        yield name, told, before + times(name) * (value - before)

    pages = [derived(scrape, change) for scrape in scrapes]
    return [(time_s, instance, text) for time_s, _, text in pages]


SERVERS = {
    "triton": ("plain", load, ("nv_inference_compute_infer_duration_us",)),
    "vllm": ("tiny-llama", vllm, ("vllm:inter_token_latency_seconds_sum",)),
    "torchserve": (
        "tiny",
        lambda: listed("torchserve", "torchserve-0.12.0"),
        ("ts_inference_latency_microseconds", "ts_queue_latency_microseconds"),
    ),
    "ray_serve": (
        "Tiny",
        lambda: listed("ray_serve", "ray-2.60.0"),
        ("ray_serve_deployment_processing_latency_ms_sum",),
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_replica_with_most_requests_and_a_slow_one_stand_out(name: str) -> None:
    model, pages, times = SERVERS[name]
    one = pages()
    busy = [*one, *another(one, "busy:1", lambda _: 3.0)]
    slow = [*one, *another(one, "slow:1", lambda metric: 4.0 if metric in times else 1.0)]
    third = [*slow, *another(one, "third:1", lambda _: 1.0)]

    def reads(scrapes: list[Scrape], signal: str) -> float | None:
        return read(scrapes, name, signal, Selection(model))

    # Three quarters of the requests for one of two; its mean time is the same.
    assert reads(busy, "replica_imbalance_ratio") == pytest.approx(1.5, rel=0.01)
    assert reads(busy, "slowest_replica_ratio") == pytest.approx(1.0, rel=0.01)
    assert reads(slow, "replica_imbalance_ratio") == pytest.approx(1.0, rel=0.01)
    assert reads(slow, "slowest_replica_ratio") == pytest.approx(4.0, rel=0.01)
    assert reads(third, "slowest_replica_ratio") == pytest.approx(4.0, rel=0.01)
    # One replica that is seen may be one of many: that is no proof that all are alike.
    assert reads(one, "replica_imbalance_ratio") is None
    assert reads(one, "slowest_replica_ratio") is None


def test_a_few_requests_fall_unevenly_by_chance() -> None:
    few = [*another(load(), "it:8002", lambda _: 0.001), *another(load(), "b:8002", lambda _: 0.003)]
    assert growth(few[2:], "nv_inference_request_success", model="plain") < 15
    assert read(few, "triton", "replica_imbalance_ratio", Selection("plain")) is None


def test_torchserve_s_quick_refusals_do_not_make_a_slow_replica_look_fast() -> None:
    """The rule: the other replica answers four times as slowly, and turns nearly all away at once with 503."""
    one = listed("torchserve", "torchserve-0.12.0")
    grows = {"ts_inference_latency_microseconds": 4.0, "ts_queue_latency_microseconds": 4.0}
    grows["ts_inference_requests_total"] = 10.0
    answered = growth(one, "Requests2XX")
    refused = growth(one, "Requests5XX")
    grows["Requests5XX"] = (10.0 * (answered + refused) - answered) / refused
    slow = [*one, *another(one, "slow:1", lambda metric: grows.get(metric, 1.0))]
    assert read(slow, "torchserve", "slowest_replica_ratio", Selection("tiny")) == pytest.approx(4.0, rel=0.01)


# ---- parts of an ensemble -----------------------------------------------------------------------------------------


def queues(scrapes: list[Scrape]) -> dict[str, float]:
    return {
        model: growth(scrapes, "nv_inference_queue_duration_us", model=model)
        for model in ("plain", "cached", "narrow", "broken", "stream", "pair")
    }


def test_the_step_that_holds_the_queue_is_told_of_all_models() -> None:
    scrapes = load()
    waited = queues(scrapes)
    share = read(scrapes, "triton", "hot_step_share_ratio", Selection("pair"))
    depth = read(scrapes, "triton", "hot_step_queue_depth", Selection("pair"))
    length_s = scrapes[1][0] - scrapes[0][0]
    assert share == pytest.approx(max(waited.values()) / sum(waited.values()), rel=0.01)
    assert depth == pytest.approx(max(waited.values()) / 1e6 / length_s, rel=0.01)


def without(scrapes: list[Scrape], unwanted: Callable[[Sample], bool]) -> list[Scrape]:
    return [derived(scrape, lambda one: () if unwanted(one) else (one,)) for scrape in scrapes]


def test_without_an_ensemble_there_is_no_step() -> None:
    """The rule: the page of a server without the ensemble."""
    apart = without(load(), lambda one: one[1].get("model") == "pair")
    for signal in ("hot_step_share_ratio", "hot_step_queue_depth", "pending_growth_rps"):
        assert read(load(), "triton", signal, Selection("pair")) is not None, signal
        assert read(apart, "triton", signal, Selection("plain")) is None, signal


def test_pending_requests_that_grow() -> None:
    """The rule: a hundred more requests are pending on the last page."""
    first, last = load()

    def change(one: Sample) -> Iterable[Sample]:
        name, labels, value = one
        held = name == "nv_inference_pending_request_count"
        yield name, labels, value + (100.0 if held and labels == {"model": "plain", "version": "1"} else 0.0)

    before = read([first, last], "triton", "pending_growth_rps", Selection("pair"))
    after = read([first, derived(last, change)], "triton", "pending_growth_rps", Selection("pair"))
    assert before is not None
    assert after == pytest.approx(before + 100 / (last[0] - first[0]), rel=0.01)


# ---- what a server's time is made of ------------------------------------------------------------------------------


def test_the_share_of_copies_and_of_what_nothing_explains() -> None:
    scrapes = load()

    def grew(part: str) -> float:
        return growth(scrapes, f"nv_inference_{part}_duration_us", model="plain")

    copies, all_of_it = grew("compute_input") + grew("compute_output"), grew("request")
    parts = copies + grew("compute_infer")
    assert read(scrapes, "triton", "copy_share_ratio", Selection("plain")) == pytest.approx(copies / parts, rel=1e-6)
    rest = (all_of_it - grew("queue") - parts) / all_of_it
    found = read(scrapes, "triton", "unexplained_time_ratio", Selection("plain"))
    assert found == pytest.approx(rest, rel=1e-6)
    # An ensemble's time is that of its parts; a cache's insertions are in the request's time alone.
    assert read(scrapes, "triton", "unexplained_time_ratio", Selection("pair")) is None
    assert read(load(CACHED), "triton", "unexplained_time_ratio", Selection("cached")) is None


# ---- loads --------------------------------------------------------------------------------------------------------


def loaded(*seconds: float | None) -> list[Scrape]:
    """Pages a window apart with the load time of one model's version; None for a page without it."""
    found = []
    for index, value in enumerate(seconds):
        line = f'nv_model_load_duration_secs{{model="m",version="1"}} {value}\n' if value is not None else ""
        line += f'nv_model_load_duration_secs{{model="m",version="{index}9"}} 3\n' if value == 7.0 else ""
        found.append((1000.0 + 10 * index, "it:8002", line + "there 1\n"))
    return found


@pytest.mark.parametrize(
    ("seconds", "loads"),
    [
        ((1.5, 1.5, 1.5, 1.5, 1.5, 1.5), 0),
        ((1.5, 1.5, 1.5, 1.5, 1.5, 2.5), 1),
        ((1.5, 1.5, 1.5, 1.5, 2.5, 3.5), 1),
        # Longer ago than two windows.
        ((1.5, 2.5, 2.5, 2.5, 2.5, 2.5), 0),
        # Once not scraped is not loaded.
        ((1.5, 1.5, 1.5, 1.5, None, 1.5), 0),
        # Away for long and there again with another time: the server was started anew.
        ((1.5, 1.5, None, None, None, 2.5), 1),
        # Another version beside it: its gauge and the change.
        ((1.5, 1.5, 1.5, 1.5, 1.5, 7.0), 2),
        # A Prometheus that has only begun to look.
        ((1.5,), 0),
    ],
)
def test_models_that_were_loaded_are_counted(seconds: tuple[float | None, ...], loads: float) -> None:
    assert loads_in(loaded(*seconds), "triton", "m") == loads


def loads_in(scrapes: list[Scrape], name: str, model: str) -> float:
    """How many models were loaded in the last two windows of ten seconds."""
    (item,) = expressions(name, "model_loads")
    at_s = scrapes[-1][0]
    (found,) = evaluate(scrapes, render(item, Selection(model), 10.0, dialect(name).model_label), at_s)
    return found.value


def test_a_vllm_that_started_anew_loaded_its_model() -> None:
    """The rule: the same page again and again, the last one with a later start."""
    _, last = vllm()
    restarted = derived(last, lambda one: [(one[0], one[1], one[2] + (one[0] == "process_start_time_seconds"))])
    before = [(1000.0 + 10 * index, "it:1", last[2]) for index in range(5)]
    assert loads_in([*before, (1050.0, "it:1", last[2])], "vllm", "tiny-llama") == 0
    assert loads_in([*before, (1050.0, "it:1", restarted[2])], "vllm", "tiny-llama") == 1


# ---- vLLM and SGLang ----------------------------------------------------------------------------------------------


def test_waiting_by_reason_adds_up() -> None:
    scrapes = vllm()
    capacity, deferred, depth = (
        read(scrapes, "vllm", signal, Selection("tiny-llama"))
        for signal in ("requests_waiting_capacity", "requests_deferred", "queue_depth")
    )
    assert depth == pytest.approx((capacity or 0) + (deferred or 0))
    assert deferred == 0


def test_the_front_end_s_time_is_what_queue_and_prefill_leave() -> None:
    scrapes = vllm()

    def mean_ms(metric: str) -> float:
        return 1000 * growth(scrapes, f"{metric}_sum") / growth(scrapes, f"{metric}_count")

    rest = mean_ms("vllm:time_to_first_token_seconds") - mean_ms("vllm:request_queue_time_seconds")
    rest -= mean_ms("vllm:request_prefill_time_seconds")
    found = read(scrapes, "vllm", "front_end_time_ms", Selection("tiny-llama"))
    assert found == pytest.approx(max(rest, 0), rel=1e-6, abs=1e-6)
    # The rule: tokenising takes a quarter of a second more for each request.
    requests = growth(scrapes, "vllm:time_to_first_token_seconds_count")

    def change(one: Sample) -> Iterable[Sample]:
        name, labels, value = one
        yield name, labels, value + (0.25 * requests if name == "vllm:time_to_first_token_seconds_sum" else 0.0)

    slow = [scrapes[0], derived(scrapes[1], change)]
    slower = read(slow, "vllm", "front_end_time_ms", Selection("tiny-llama"))
    assert slower == pytest.approx(max(rest + 250, 0), rel=1e-6)
