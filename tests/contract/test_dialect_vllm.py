"""vLLM's dialect on pages recorded from a real vLLM, and on what other versions and fleets make of the same pages.

Pages of older versions and larger fleets are derived from the recorded ones by renaming, mechanically; each such page
says so in its fixture. The expected figures come from the pages' text by hand-written arithmetic, without PromQL.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from benchmarks.vllm_pages import EXPECTED, RATES, read_page
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.promql import Recording, evaluate_at, parse
from latencydoctor.evidence.queries import Present, choose, render
from latencydoctor.model.evidence import Selection
from latencydoctor.model.rule import Dialect

SIGNALS, DIALECTS = read_signals(locate())
VLLM: Dialect = next(dialect for dialect in DIALECTS if dialect.id == "vllm")
FOLDER = Path(__file__).parents[2] / VLLM.verified
RECORDED = yaml.safe_load((FOLDER / "recording.yaml").read_text())
MODEL = "tiny-llama"

# Reference, section 3: what the metrics were called before V1's renames. Longer names first.
BEFORE_THE_RENAMES = {
    "vllm:kv_cache_usage_perc": "vllm:gpu_cache_usage_perc",
    "vllm:prefix_cache_queries": "vllm:gpu_prefix_cache_queries",
    "vllm:prefix_cache_hits": "vllm:gpu_prefix_cache_hits",
    "vllm:inter_token_latency_seconds": "vllm:time_per_output_token_seconds",
}
SAME = 1e-6

Pages = list[tuple[float, str, str]]


def recorded(name: str) -> str:
    return (FOLDER / f"{name}.prom").read_text()


def scrapes(first: str, last: str, instance: str = "a:8000") -> Pages:
    """The two pages of the overload, or what was made of them, at the times they were taken."""
    return [(RECORDED["pages"]["load-1"], instance, first), (RECORDED["pages"]["load-2"], instance, last)]


def loaded() -> Pages:
    return scrapes(recorded("load-1"), recorded("load-2"))


def renamed(page: str, table: dict[str, str] = BEFORE_THE_RENAMES) -> str:
    """The page as a version with other names would have it."""
    for new, old in table.items():
        page = re.sub(rf"{new}(?=[_{{ ])", old, page)
    return page


def only(page: str, pattern: str) -> str:
    """The page's samples whose line fits."""
    return "".join(f"{line}\n" for line in page.splitlines() if re.search(pattern, line) and not line.startswith("#"))


def both(pages: Pages, change: tuple[str, str]) -> Pages:
    """Another engine's or model's pages: the same with one label's value replaced."""
    return [(time_s, instance, page.replace(*change)) for time_s, instance, page in pages]


def joined(left: Pages, right: Pages) -> Pages:
    """Pages that hold the samples of two: one target with two engines or models."""
    return [
        (time_s, instance, page + only(other, "^vllm:"))
        for (time_s, instance, page), (_, _, other) in zip(left, right, strict=True)
    ]


def readings(pages: Pages, model: str = MODEL) -> dict[str, float]:
    """Every signal of the dialect that has a value: the best expression first, the next where it gives nothing."""
    at_s = max(time_s for time_s, _, _ in pages)
    window_s = at_s - min(time_s for time_s, _, _ in pages) + 1
    held = Recording()
    for time_s, instance, page in sorted(pages):
        held.add_page(time_s, instance, page)
    choices, _ = choose(Present(held.names, held.names), [VLLM], SIGNALS)
    found: dict[str, float] = {}
    for choice in choices:
        for expression in choice.expressions:
            query = render(expression, Selection(model), window_s, VLLM.model_label)
            elements = evaluate_at(held, parse(query), at_s)
            if elements:
                assert len(elements) == 1, (choice.signal, "several values for one signal")
                found[choice.signal] = elements[0].value
                break
    return found


def test_all_signals_are_read_from_the_recorded_pages_or_said_to_be_missing() -> None:
    given = {expression.signal for expression in VLLM.signals}
    unrecorded = {absent.signal for absent in VLLM.unrecorded}
    assert set(readings(loaded())) == given - unrecorded


@pytest.mark.parametrize("signal", sorted(EXPECTED))
def test_what_is_read_is_what_the_page_says(signal: str) -> None:
    pages = [read_page(time_s, text) for time_s, _, text in loaded()]
    # A rate counts the growth as of the whole window, as Prometheus does.
    tolerance = 0.15 if signal in RATES else SAME
    assert readings(loaded())[signal] == pytest.approx(EXPECTED[signal](pages), rel=tolerance)


def test_the_overload_shows_as_a_queue_behind_full_slots() -> None:
    found = readings(loaded())
    slots = int(RECORDED["flags"][RECORDED["flags"].index("--max-num-seqs") + 1])
    assert 0 < found["requests_running"] <= slots < found["requests_waiting"]
    assert found["queue_time_ms"] > found["compute_time_ms"]
    assert found["server_time_ms"] == pytest.approx(found["queue_time_ms"] + found["compute_time_ms"], rel=0.1)
    assert found["compute_time_ms"] == pytest.approx(found["prefill_time_ms"] + found["decode_time_ms"], rel=SAME)
    clients = int(re.findall(r"load: (\d+)", RECORDED["load"])[0])
    assert found["concurrency"] == pytest.approx(clients, rel=0.15)
    assert found["preemption_rate_eps"] > 0


# ---- traps of the reference ---------------------------------------------------------------------------------------


def test_kv_usage_is_a_ratio_despite_its_name() -> None:
    assert 0.1 < readings(loaded())["kv_cache_usage_ratio"] <= 1


def test_the_prefix_cache_counts_tokens() -> None:
    first, last = (read_page(time_s, text) for time_s, _, text in loaded())
    asked = last.total("vllm:prefix_cache_queries_total") - first.total("vllm:prefix_cache_queries_total")
    requests = last.total("vllm:request_success_total") - first.total("vllm:request_success_total")
    assert asked > 50 * requests
    assert 0.5 < readings(loaded())["prefix_cache_hit_ratio"] < 1


def test_iteration_tokens_total_is_a_histogram() -> None:
    page = recorded("load-2")
    assert "# TYPE vllm:iteration_tokens_total histogram" in page
    assert not re.search(r"(?m)^vllm:iteration_tokens_total[{ ]", page)
    found = readings(loaded())
    done = found["tokens_per_execution"] * found["execution_rate_eps"]
    fresh = found["prompt_tokens_rate"] * (1 - found["prefix_cache_hit_ratio"]) + found["generation_tokens_rate"]
    assert done == pytest.approx(fresh, rel=0.7)


def test_small_queues_are_told_by_the_mean_since_the_first_bucket_ends_at_300_ms() -> None:
    calm = [(RECORDED["pages"][name], "a:8000", recorded(name)) for name in ("calm-1", "calm-2")]
    found = readings(calm)
    assert found["queue_time_p99_ms"] == pytest.approx(297, rel=SAME)
    assert found["queue_time_ms"] < 5


def test_given_up_requests_are_unknown_where_the_server_does_not_count_them() -> None:
    assert RECORDED["clients_saw"]["load"]["given up"] > 10
    assert 'finished_reason="abort",model_name="tiny-llama"} 0.0' in recorded("load-2")
    assert "aborted_ratio" not in readings(loaded())
    # What a version that counts them shows: the requests that ended by a stop token relabelled as given up.
    counting = both(loaded(), ('finished_reason="abort"', 'finished_reason="x"'))
    counting = both(counting, ('finished_reason="stop"', 'finished_reason="abort"'))
    assert 0 < readings(counting)["aborted_ratio"] < 0.5


def test_errors_are_unknown_not_zero_where_nothing_counts_them() -> None:
    uncounted = [
        (time_s, instance, only(page, '^vllm:(?!request_success_total.*finished_reason="error")'))
        for time_s, instance, page in loaded()
    ]
    assert "error_ratio" not in readings(uncounted)
    assert readings(loaded())["error_ratio"] == 0


def test_another_applications_failures_are_not_vllms() -> None:
    other = 'http_requests_total{handler="/v1/orders",method="GET",status="5xx"} %d\n'
    pages = [*loaded(), *scrapes(other % 10, other % 9000, instance="shop:80")]
    pages.sort(key=lambda one: one[0])
    found = readings(pages)
    assert (found["error_ratio"], found["error_server_rps"]) == (0, 0)
    assert found["error_client_rps"] == pytest.approx(readings(loaded())["error_client_rps"])


# ---- other versions -----------------------------------------------------------------------------------------------


def test_old_names_read_the_same() -> None:
    old = scrapes(renamed(recorded("load-1")), renamed(recorded("load-2")))
    assert "kv_cache_usage_perc" not in old[0][2]
    assert readings(old) == readings(loaded())


def test_twin_names_are_not_counted_twice() -> None:
    twins = [
        (time_s, instance, page + only(renamed(page), "^vllm:(gpu_|time_per_output)"))
        for time_s, instance, page in loaded()
    ]
    assert "gpu_cache_usage_perc" in twins[0][2]
    assert readings(twins) == readings(loaded())


def test_a_fleet_in_the_middle_of_an_upgrade_is_read_whole() -> None:
    old = scrapes(renamed(recorded("load-1")), renamed(recorded("load-2")), instance="b:8000")
    twice = readings([*loaded(), *old])
    once = readings(loaded())
    for signal in ("kv_cache_usage_ratio", "prefix_cache_hit_ratio", "inter_token_latency_p99_ms", "e2e_p99_ms"):
        assert twice[signal] == pytest.approx(once[signal], rel=SAME)
    # The half with the new names is emptier here: if the other were left out, its usage would show.
    emptier = [
        (at_s, where, re.sub(r"(:kv_cache_usage_perc\{.*\}) .*", r"\1 0.25", page)) for at_s, where, page in loaded()
    ]
    assert readings(emptier)["kv_cache_usage_ratio"] == 0.25
    assert readings([*emptier, *old])["kv_cache_usage_ratio"] == once["kv_cache_usage_ratio"]


def test_v0_names_and_labels() -> None:
    """V0: no engine label, the queue's histogram under another name, the prefix cache's ratio as a gauge."""
    table = BEFORE_THE_RENAMES | {"vllm:request_queue_time_seconds": "vllm:time_in_queue_requests"}

    def v0(page: str) -> str:
        held = read_page(0, page)
        ratio = held.total("vllm:prefix_cache_hits_total") / held.total("vllm:prefix_cache_queries_total")
        kept = only(renamed(page, table), "^vllm:(?!gpu_prefix_cache|iteration|request_inference|admission)")
        return kept.replace('engine="0",', "") + f'vllm:gpu_prefix_cache_hit_rate{{model_name="{MODEL}"}} {ratio}\n'

    found, now = readings(scrapes(v0(recorded("load-1")), v0(recorded("load-2")))), readings(loaded())
    for signal in ("queue_time_ms", "queue_time_p99_ms", "kv_cache_usage_ratio", "inter_token_latency_p50_ms"):
        assert found[signal] == pytest.approx(now[signal], rel=SAME)
    assert found["prefix_cache_hit_ratio"] == pytest.approx(now["prefix_cache_hit_ratio"], rel=0.05)
    assert "execution_rate_eps" not in found
    off = [
        (time_s, instance, re.sub(r"(?m)^(vllm:gpu_prefix_cache_hit_rate.*) .*$", r"\1 -1", page))
        for time_s, instance, page in scrapes(v0(recorded("load-1")), v0(recorded("load-2")))
    ]
    assert "prefix_cache_hit_ratio" not in readings(off)


# ---- several engines, replicas, models ----------------------------------------------------------------------------

SUMMED = ("request_rate_rps", "requests_running", "requests_waiting", "queue_depth", "concurrency", "replica_count",
          "prompt_tokens_rate", "generation_tokens_rate", "preemption_rate_eps", "execution_rate_eps",
          "requests_deferred", "requests_waiting_capacity")  # fmt: skip


@pytest.mark.parametrize("where", ["engines of one server", "replicas"])
def test_engines_and_replicas_add_up(where: str) -> None:
    if where == "replicas":
        twice = readings([*loaded(), *scrapes(recorded("load-1"), recorded("load-2"), instance="b:8000")])
    else:
        twice = readings(joined(loaded(), both(loaded(), ('engine="0"', 'engine="1"'))))
    once = readings(loaded())
    for signal, value in once.items():
        front = (
            signal.startswith("error_") and where != "replicas"
        )  # These are counted for the server, not its engines.
        factor = 2 if signal in SUMMED or (signal.endswith("_rps") and not front) else 1
        assert twice[signal] == pytest.approx(factor * value, rel=SAME), signal


def test_models_are_told_apart() -> None:
    other = both(both(loaded(), ("tiny-llama", "other")), ("a:8000", "b:8000"))
    idle = [(time_s, instance, recorded("idle").replace("tiny-llama", "other")) for time_s, instance, _ in other]
    pages = [*loaded(), *((time_s, "b:8000", page) for time_s, _, page in idle)]
    assert readings(pages) == readings(loaded())
    assert readings(pages, "other")["requests_waiting"] == 0
