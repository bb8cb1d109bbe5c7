"""How `make race` reads, translates and counts answers, and what it lets the tools read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults import Run, load_cases
from benchmarks.faults.pages.target import Series
from benchmarks.race import QUICK_CASES, wanted
from benchmarks.race_environment import PINS, pinned
from benchmarks.race_pages import ending, page
from benchmarks.race_score import TOOLS, Judged, by_case, by_tool, misses, replicas, share
from benchmarks.race_tools import NO_CAUSE, Answer, Said, inferpilot, ours, vllm_doctor
from benchmarks.race_words import INFERPILOT, INFERPILOT_NOTHING, MEANT, OURS, VLLM_DOCTOR, has_a_word, meant

CASES = {case.id: case for case in load_cases()}
KNOWN = {path.stem for path in (Path(__file__).parents[2] / "rules" / "causes").glob("*.yaml")}


def judged(case: str, tool: str, *words: str, advises: bool = False, took_s: float = 1.0) -> Judged:
    return Judged(CASES[case], Answer(tool, Said(words, advises), 0, took_s))


@pytest.mark.parametrize(
    ("case", "tool", "words", "outcome"),
    [
        ("kv-full", OURS, ("kv-preemption",), "right"),
        ("kv-full", OURS, ("saturation", "kv-preemption"), "wrong"),
        ("pasted-documents", OURS, ("longer-prompts",), "right"),
        ("kv-full", VLLM_DOCTOR, ("queue_latency", "ttft_bottleneck"), "right"),
        ("kv-full", VLLM_DOCTOR, ("replica_imbalance", "queue_latency"), "wrong"),
        ("kv-full", VLLM_DOCTOR, (), "silent"),
        ("kv-full", VLLM_DOCTOR, ("a_rule_of_a_later_version",), "wrong"),
        ("healthy-idle", INFERPILOT, (), "right"),
        ("healthy-idle", INFERPILOT, ("not_kv_bound",), "wrong"),
        ("healthy-idle", OURS, (NO_CAUSE,), "wrong"),
        ("kv-full", OURS, (NO_CAUSE,), "silent"),
    ],
)
def test_right_is_who_names_the_cause_first_or_finds_nothing_where_there_is_nothing(
    case: str, tool: str, words: tuple[str, ...], outcome: str
) -> None:
    assert judged(case, tool, *words).outcome == outcome


def test_a_tool_that_could_not_be_run_is_never_right() -> None:
    one = Judged(CASES["healthy-idle"], Answer(INFERPILOT, None, None, 120.0))
    assert one.outcome == "failed"
    assert not one.right_somewhere
    assert not one.advises_replicas


def test_a_later_finding_is_counted_apart() -> None:
    late = judged("prefix-collapse", VLLM_DOCTOR, "replica_imbalance", "prefix_cache_efficiency")
    assert (late.right, late.right_somewhere) == (False, True)
    # On a healthy case any finding is a false alarm, whatever it names.
    assert not judged("healthy-idle", VLLM_DOCTOR, "replica_imbalance").right_somewhere


def test_meanings_are_causes_that_there_are_and_ours_has_no_other_than_its_name() -> None:
    for tool, words in MEANT.items():
        for word in words:
            assert meant(tool, word)
            assert meant(tool, word) <= KNOWN
    assert meant(OURS, "saturation") == {"saturation"}
    assert not INFERPILOT_NOTHING & MEANT[INFERPILOT].keys()


def test_some_causes_have_no_word_at_all() -> None:
    assert has_a_word(VLLM_DOCTOR, frozenset({"thermal-throttling", "saturation"}))
    assert not has_a_word(VLLM_DOCTOR, frozenset({"thermal-throttling"}))
    assert has_a_word(OURS, frozenset({"thermal-throttling"}))


def checks(*findings: tuple[str, str | None]) -> str:
    """What vllm-doctor prints: rules by their first recommendation, or None where a rule found nothing."""
    told = [{"id": name, "finding": text and {"title": name, "recommendations": [text]}} for name, text in findings]
    return json.dumps({"checks": told})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (checks(("queue_pressure", "Add replicas or increase concurrency limits")), Said(("queue_pressure",), True)),
        (
            checks(("ttft_bottleneck", "Inspect queue depth — consider adding replicas")),
            Said(("ttft_bottleneck",), True),
        ),
        (
            checks(("error_rate", "Reduce load or add replicas if errors correlate with traffic spikes")),
            Said(("error_rate",), False),
        ),
        (
            checks(
                ("prefix_cache_efficiency", "Enable prefix caching"), ("queue_pressure", "Add replicas"), ("x", None)
            ),
            Said(("prefix_cache_efficiency", "queue_pressure"), False),
        ),
        (checks(("queue_pressure", None)), Said((), False)),
    ],
)
def test_vllm_doctors_findings_are_read_in_its_order(text: str, said: Said) -> None:
    assert vllm_doctor(text) == said


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("not_kv_bound", Said(("not_kv_bound",), True)),
        ("healthy_or_underutilized", Said((), False)),
        ("insufficient_metrics", Said((), False)),
    ],
)
def test_inferpilots_verdict_is_its_finding_unless_it_found_nothing(verdict: str, said: Said) -> None:
    assert inferpilot(json.dumps({"verdict": verdict, "next_step": "look at scaling or compute-side levers"})) == said


@pytest.mark.parametrize(
    ("state", "cause", "said"),
    [
        ("incident", {"id": "saturation", "scaling": "cures"}, Said(("saturation", "retry-storm"), True)),
        ("incident", {"id": "kv-preemption", "scaling": "buys time"}, Said(("kv-preemption", "retry-storm"), True)),
        ("incident", {"id": "dns-slow", "scaling": "wrong"}, Said(("dns-slow", "retry-storm"), False)),
        ("incident", None, Said((NO_CAUSE,), False)),
        ("healthy", None, Said((), False)),
        ("cannot tell", None, Said((), False)),
    ],
)
def test_our_own_answer_is_its_cause(state: str, cause: dict[str, str] | None, said: Said) -> None:
    document = {"incident": {"state": state}, "cause": cause, "contributing": [{"id": "retry-storm"}]}
    assert ours(json.dumps(document)) == said


def run() -> Run:
    labels = 'job="vllm",pod="vllm-{}"'
    times = np.asarray([5.0, 20.0, 35.0, 50.0, 65.0, 80.0, 95.0])
    series = (
        Series("up", labels.format(0), times, np.ones(7)),
        Series("vllm:num_requests_waiting", labels.format(0), times, np.arange(7.0)),
        # Ended after two scrapes.
        Series("vllm:num_requests_waiting", labels.format(1), times[:2], np.asarray([70.0, 80.0])),
        Series("DCGM_FI_DEV_SM_CLOCK", 'job="dcgm-exporter"', times, np.ones(7)),
    )
    return Run(CASES["kv-full"], "vllm", 0, "kv-full-vllm-s0", "chat-8b", {}, True, series, 1000.0, 1100.0)


def test_a_page_is_what_the_servers_themselves_said_last() -> None:
    assert page(run(), 0.0) == 'vllm:num_requests_waiting{job="vllm",pod="vllm-0"} 6.0\n'
    assert page(run(), 60.0).splitlines() == [
        'vllm:num_requests_waiting{job="vllm",pod="vllm-0"} 2.0',
        'vllm:num_requests_waiting{job="vllm",pod="vllm-1"} 80.0',
    ]
    assert page(run(), 99.0) == ""


def test_a_run_can_end_now() -> None:
    moved = ending(run(), 5000.0)
    assert (moved.start_s, moved.end_s) == (4900.0, 5000.0)
    assert page(moved, 60.0) == page(run(), 60.0)


def test_the_cases_are_those_of_vllm() -> None:
    ids = [case.id for case in wanted({})]
    assert "kv-full" in ids
    assert all("vllm" in CASES[one].engines for one in ids)
    assert [case.id for case in wanted({"QUICK": "1"})] == list(QUICK_CASES)
    assert [case.id for case in wanted({"QUICK": "1", "CASES": "thermal,night-traffic"})] == [
        "night-traffic",
        "thermal",
    ]


def test_every_package_is_pinned() -> None:
    pins = pinned(PINS.read_text())
    assert (pins["vllm-doctor"], pins["inferpilot"]) == ("0.6.0", "0.1.0")
    assert len(pins) > 20
    assert pinned("# a note\n\na==1  # why\n") == {"a": "1"}


def test_the_tables_hold_every_figure() -> None:
    right = [judged("kv-full", OURS, "kv-preemption"), judged("healthy-idle", OURS)]
    doctor = [judged("thermal", VLLM_DOCTOR, "queue_pressure", advises=True), judged("healthy-idle", VLLM_DOCTOR)]
    pilot = [judged("kv-full", INFERPILOT), judged("healthy-idle", INFERPILOT, "not_kv_bound", took_s=3.0)]
    every = [*right, *doctor, *pilot]
    assert [share([one for one in every if one.answer.tool == tool]) for tool in TOOLS] == [1.0, 0.5, 0.0]
    assert share([]) == 0.0
    rows = {line[:44].strip(): line[44:].split() for line in by_tool(every, dict.fromkeys(TOOLS, "1.0"))}
    assert rows["right"] == ["2/2", "=", "1.00", "1/2", "=", "0.50", "0/2", "=", "0.00"]
    assert rows["faults it has a word for: named first"] == ["1/1", "0/0", "0/1"]
    assert rows["faults: something else named first"] == ["0", "1", "0"]
    assert rows["faults: no cause named"] == ["0", "0", "1"]
    assert rows["do not scale: advises replicas"] == ["0/1", "1/2", "0/1"]
    assert rows["wall time, longest"] == ["1.00", "s", "1.00", "s", "3.00", "s"]
    assert [line.split() for line in misses(every, VLLM_DOCTOR)] == [
        ["wrong", "thermal", "thermal-throttling", "queue_pressure"]
    ]
    assert replicas(every, VLLM_DOCTOR) == ["thermal"]
    assert replicas([replace(doctor[0], case=CASES["saturation"])], VLLM_DOCTOR) == []


def test_a_line_of_the_table_tells_what_each_said() -> None:
    every = [judged("kv-full", OURS, "kv-preemption"), judged("kv-full", VLLM_DOCTOR, "error_rate", "x")]
    every.append(judged("kv-full", INFERPILOT))
    assert by_case(every)[1].split() == ["kv-full", "kv-preemption", "+", "kv-preemption", "x", "error_rate", ".", "-"]
