"""A diagnosis on the screen, as data and in Markdown."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from latencydoctor.diagnosis.rank import diagnose
from latencydoctor.model.diagnosis import Answer, Diagnosis, Forecasted
from latencydoctor.model.evidence import Evidence, Gap, GapReason, IncidentState, Selection
from latencydoctor.model.remark import Remark
from latencydoctor.report import machine, markdown, terminal
from latencydoctor.report.units import instant
from latencydoctor.report.wording import compared, name
from tests.unit.builders import event, evidence, gap, measure, values
from tests.unit.diagnosis.test_walk import BACKLOG, BASELINE
from tests.unit.shipped import KNOWLEDGE

HOSTILE = "\x1b[2J[/INST] | `x` ``` <script>"


def seen(state: IncidentState = IncidentState.INCIDENT) -> Evidence:
    numbers = values(BACKLOG | {"e2e_p99_ms": 2140.0}, BASELINE | {"e2e_p99_ms": 70.0})
    return evidence(
        *numbers,
        measure("accelerator_memory_used_bytes", 1e9, simulated=True),
        gaps=(gap("response_time_ms"),),
        events=(event("queue_delay", 7, HOSTILE),),
        state=state,
    )


def result(state: IncidentState = IncidentState.INCIDENT) -> Diagnosis:
    return diagnose(replace(seen(state), selection=Selection(HOSTILE)), KNOWLEDGE)


def screen(diagnosis: Diagnosis, width: int = 80, *, verbose: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False, highlight=False)
    terminal.show(diagnosis, console, verbose=verbose)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_screen_names_cause_numbers_path_and_next_command() -> None:
    text = screen(result(), 120)
    for part in (
        "INCIDENT",
        "Batching has failed",
        "1,400 ms > 50 ms",
        "before 3 ms",
        "query_of_queue_time_ms",
        "29 % ≤ 85 %",
        "response time",
        "DO NOT",
        "SIMULATED ACCELERATOR",
        "latencydoctor plan batch-floor -o plan.json",
    ):
        assert part in text, part
    assert text.rstrip().splitlines()[-1].startswith("NEXT")


@pytest.mark.parametrize("times", [1, 8, 40])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_every_number_of_the_proof_has_its_name_beside_it_however_long_its_query_is(width: int, times: int) -> None:
    found = result()
    assert found.cause is not None
    proof = found.cause.evidence[0].proof
    assert proof is not None
    long = tuple(
        replace(one, unit="requests/s", baseline=63.8, proof=replace(proof, query="rate(x[5s])/" * times))
        for one in found.cause.evidence
    )
    text = screen(replace(found, cause=replace(found.cause, evidence=long)), width)
    rows = text[text.index("PROOF") : text.index("DO NOT")].splitlines()
    for finding in long:
        told = f"{name(finding.signal)} {compared(finding)}"
        assert any(told in " ".join(row.split()) for row in rows), told


def test_what_a_simulated_queue_says_stands_beside_the_proof_and_what_it_cannot_say_does_not() -> None:
    for answer, shown in (
        (Answer.YES, "enough: p99 120 ms"),
        (Answer.NO, "not enough: p99 120 ms"),
        (Answer.UNKNOWN, ""),
    ):
        found = result()
        assert found.cause is not None
        said = Forecasted(answer, "p99 120 ms", 1500.0, 120.0, 1000.0)
        found = replace(found, cause=replace(found.cause, forecast=said))
        rows = [line for line in screen(found, 120).splitlines() if line.startswith("FORECAST")]
        assert [row.split(maxsplit=1)[1].strip() for row in rows] == ([f"{shown} (simulated queue)"] if shown else [])
        assert "(simulated queue)" in markdown.diagnosis(found)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_screen_and_no_control_byte_gets_through(width: int) -> None:
    for verbose in (False, True):
        text = screen(result(), width, verbose=verbose)
        assert max(len(line) for line in text.splitlines()) <= width
        assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_what_is_cut_says_so_lest_a_figure_be_read_as_another_one(width: int) -> None:
    found = replace(result(), log_events=(event("queue_delay", 7, "a question waited 507 ms " * 20),))
    whole, shown = screen(found, 2000), screen(found, width)
    for label in ("PATH", "LOGS", "ONSET"):
        rows, full = _block(shown, label), _block(whole, label)
        assert len(rows) == len(full)
        for row, other in zip(rows, full, strict=True):
            assert row == other or (row.endswith("…") and other.startswith(row[:-1]))


def _block(text: str, label: str) -> list[str]:
    """The rows of one labelled part of the screen."""
    found: list[str] = []
    for row in text.splitlines():
        if row[:9].strip():
            at_label = row.startswith(label)
        if at_label:
            found.append(row[9:].strip())
    return found


def test_foreign_brackets_survive_as_text() -> None:
    assert "[/INST]" in screen(result(), 200)


def test_healthy_screen_is_short() -> None:
    text = screen(result(IncidentState.HEALTHY))
    assert text.startswith("HEALTHY")
    assert "CAUSE" not in text
    assert "NEXT" not in text


def test_verbose_lists_every_gap_with_its_detail() -> None:
    assert "nothing exports it" in screen(result(), 160, verbose=True)


def test_a_source_that_was_named_and_failed_stands_first_among_what_is_missing_with_its_reason() -> None:
    failed = (
        Gap("metrics", GapReason.UNREACHABLE, "Prometheus does not answer: connection refused"),
        Gap("logs", GapReason.UNREACHABLE, "x.log: No such file or directory"),
    )
    found = result(IncidentState.CANNOT_TELL)
    text = screen(replace(found, missing=(*found.missing, *failed)), 400)
    (row,) = (line for line in text.splitlines() if line.startswith("MISSING"))
    told = (
        "metrics (unreachable: Prometheus does not answer: connection refused), "
        "logs (unreachable: x.log: No such file or directory)"
    )
    assert row.split(maxsplit=1)[1].startswith(told)


def test_data_is_sorted_and_whole() -> None:
    document = json.loads(machine.diagnosis(result()))
    assert document["cause"]["id"] == "batching-failed"
    assert document["state"] == "incident"
    assert document["healthy"] is False
    assert list(document) == sorted(document)
    assert document["path"][-1]["answer"] == "yes"


def test_no_cause_is_null() -> None:
    document = json.loads(machine.diagnosis(diagnose(evidence(state=IncidentState.CANNOT_TELL), KNOWLEDGE)))
    assert document["cause"] is None
    assert document["state"] == "cannot tell"


def test_numbers_are_finite_and_free_of_noise() -> None:
    assert machine.plain(0.1 + 0.2) == 0.3
    assert machine.plain(float("nan")) is None
    assert machine.plain({"a": (1, True, None)}) == {"a": [1, True, None]}
    with pytest.raises(TypeError, match="object has no form"):
        machine.plain(object())


def test_markdown_keeps_hostile_text_inside_its_cell() -> None:
    text = markdown.diagnosis(result())
    assert "\x1b" not in text
    assert "<script>" not in text.replace("`", "\n").splitlines()[0]
    rows = [line for line in text.splitlines() if line.startswith("| ERROR")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 6
    assert "Simulated accelerator" in text
    assert "| queue time | 1,400 ms > 50 ms | 3 ms |" in text


REMARKS = tuple(Remark(f"r{number}", f"{HOSTILE} {number}", "it costs", "write less") for number in range(3))


def test_remarks_on_settings_stand_below_the_cause_two_of_them_unless_asked_for_all() -> None:
    told = replace(result(), remarks=REMARKS)
    short, whole = screen(told, 120), screen(told, 120, verbose=True)
    assert "SETTINGS" in short
    assert short.count("it costs; write less") == 2
    assert "and 1 more (--verbose)" in short
    assert whole.count("it costs; write less") == 3
    assert "\x1b" not in whole
    assert "## Settings worth a look" in markdown.diagnosis(told)
    assert "\x1b" not in markdown.diagnosis(told)
    assert [one["id"] for one in json.loads(machine.diagnosis(told))["remarks"]] == ["r0", "r1", "r2"]
    assert "SETTINGS" not in screen(result(), 120)


def test_every_time_says_its_zone_and_baselines_say_of_when_they_are() -> None:
    found = result()
    text = markdown.diagnosis(found)
    assert found.baseline_window is not None
    assert f"Baselines are of {instant(found.baseline_window.start_s)} to" in text
    assert "| window (UTC) |" in text
    assert "| time (UTC) |" in text
    labels = [row[:9].strip() for row in screen(found).splitlines()]
    assert "LOGS UTC" in labels
    assert "ONSET UTC" in [row[:9].strip() for row in screen(found, verbose=True).splitlines()]


def test_figures_of_the_whole_incident_are_told_from_those_of_the_last_windows() -> None:
    found = result()
    assert "SYMPTOMS  over the incident: " in screen(found, 200)
    assert "explained by it, over the incident: " in markdown.diagnosis(found)
    assert found.cause is not None
    without = replace(found, cause=replace(found.cause, symptoms=()))
    assert "over the incident" not in screen(without, 200)


def test_a_negative_rest_says_why_the_parts_are_more_than_the_whole() -> None:
    parts = {"network_time_ms": 2.0, "queue_time_ms": 930.0, "compute_time_ms": 28.0}
    numbers = values(BACKLOG | parts | {"e2e_mean_ms": 864.0, "e2e_p99_ms": 2140.0}, BASELINE)
    found = diagnose(evidence(*numbers), KNOWLEDGE)
    (row,) = (line for line in screen(found).splitlines() if "unexplained" in line)
    assert row.endswith("some requests skip parts")
    assert "Parts make up more than the whole" in markdown.diagnosis(found)
    none_left = diagnose(evidence(*values(BACKLOG | parts | {"e2e_mean_ms": 1000.0}, BASELINE)), KNOWLEDGE)
    assert "Parts make up more" not in markdown.diagnosis(none_left)


def test_a_value_beside_its_threshold_is_never_rounded_to_it() -> None:
    near = values(BACKLOG | {"queue_time_ms": 50.004}, BASELINE)
    assert "50.004 ms > 50 ms" in screen(diagnose(evidence(*near), KNOWLEDGE), 120)
