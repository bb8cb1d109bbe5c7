"""A flooded server answers its metrics page late, or not every time: it is read on for as long as there is time."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from latencydoctor.cli import probing, wiring
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import CannotTell
from latencydoctor.model.configuration import MetricsPage
from latencydoctor.model.evidence import GapReason, IncidentState, Selection
from latencydoctor.model.readings import Discovery
from latencydoctor.report import terminal
from latencydoctor.sources import pages, pages_schedule
from latencydoctor.sources.pages import PageMetrics
from tests.contract.strangers import Answer, Asked, drip_head, stranger
from tests.contract.test_pages import triton

_, DIALECTS = read_signals(locate())
TEXT = "text/plain; version=0.0.4"


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same relations in a fifth of the time."""
    monkeypatch.setattr(pages_schedule, "SCRAPE_AT_LEAST_S", 0.4)
    monkeypatch.setattr(pages_schedule, "RESERVE_S", 1.5)


def answering(is_fine: Callable[[int], bool], otherwise: Answer = drip_head) -> Answer:
    """A page of a served model; the requests, counted from 0, that are not fine get another answer."""
    count, began_s = itertools.count(), time.monotonic()

    def answer(asked: Asked) -> None:
        if is_fine(next(count)):
            asked.reply(triton("bert", 1500.0, time.monotonic() - began_s).encode(), kind=TEXT)
        else:
            otherwise(asked)

    return answer


def unavailable(asked: Asked) -> None:
    asked.reply(b"", "503 Service Unavailable")


def discover(url: str, scrapes: int, deadline_s: float, every_s: float = 0.4) -> Discovery:
    reader = PageMetrics([MetricsPage(url)], scrapes, every_s, deadline_s)
    at_s = reader.record(DIALECTS, lambda _ratio, _text: None)
    return reader.discover(DIALECTS, Selection(""), at_s)


def told(found: Discovery) -> tuple[GapReason, str]:
    (gap,) = [gap for gap in found.gaps if gap.signal == "pages"]
    return gap.reason, gap.detail


@pytest.mark.parametrize(("otherwise", "words"), [(drip_head, "no page within"), (unavailable, "HTTP 503")])
def test_a_server_that_is_late_at_first_is_read_when_it_answers(otherwise: Answer, words: str) -> None:
    with stranger(answering(lambda count: count >= 3, otherwise)) as server:
        found = discover(server.url, scrapes=12, deadline_s=10.0)
    assert [one.model for one in found.candidates] == ["bert"]
    assert words in told(found)[1]
    assert "3 of 12 readings" in told(found)[1]


@pytest.mark.parametrize("otherwise", [drip_head, unavailable])
def test_a_server_that_falls_silent_is_asked_to_the_end_and_what_it_said_counts(otherwise: Answer) -> None:
    began_s = time.monotonic()
    with stranger(answering(lambda count: count < 4, otherwise)) as server:
        found = discover(server.url, scrapes=8, deadline_s=6.0)
        asked = len(server.asked)
    assert time.monotonic() - began_s < 6.0 + 3.0
    assert asked > 6
    assert [one.model for one in found.candidates] == ["bert"]
    reason, detail = told(found)
    assert reason is (GapReason.DEADLINE if otherwise is drip_head else GapReason.UNREACHABLE)
    assert f"{asked - 4} of {asked} readings of" in detail


def test_a_page_that_needs_longer_than_the_rhythm_allows_is_read_in_its_own() -> None:
    def slow(asked: Asked) -> None:
        time.sleep(0.7)
        asked.reply(triton("bert", 1500.0, time.monotonic()).encode(), kind=TEXT)

    with stranger(slow) as server:
        reader = PageMetrics([MetricsPage(server.url)], 14, 0.4, 9.0)
        at_s = reader.record(DIALECTS, lambda _ratio, _text: None)
        found = reader.discover(DIALECTS, Selection(""), at_s)
    assert "1 of" in told(found)[1]
    assert found.scrape_interval_s == pytest.approx(0.8)
    assert reader.schedule.window_s >= 2 * 0.8


def test_a_server_that_never_answers_fails_in_time_and_in_one_line() -> None:
    began_s = time.monotonic()
    with stranger(drip_head) as server, pytest.raises(CannotTell) as failed:
        discover(server.url, scrapes=7, deadline_s=4.0)
    assert 2.0 < time.monotonic() - began_s < 4.0 + 3.0, "it is waited for, but no longer than asked"
    assert "\n" not in failed.value.message
    assert "no metrics page could be read twice" in failed.value.message
    assert "readings of" in failed.value.message
    assert "no page within" in failed.value.message


def test_a_report_says_how_many_readings_failed() -> None:
    with stranger(answering(lambda count: count not in (3, 5), unavailable)) as server:
        request = wiring.DiagnoseRequest(metrics_urls=(server.url,), scrapes=11, every="400ms", deadline="12s")
        found = wiring.diagnose(request)
    assert found.diagnosis.incident.state is IncidentState.INCIDENT
    screen = Console(file=io.StringIO(), width=100)
    terminal.show(found.diagnosis, screen)
    assert isinstance(screen.file, io.StringIO)
    assert "2 of 11 readings of 127.0.0.1" in " ".join(screen.file.getvalue().split())


def test_what_was_read_but_not_understood_in_time_is_not_the_selectors_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_schedule, "RESERVE_S", 0.0)
    monkeypatch.setattr(pages, "DISCOVERY_S", 0.001)
    lines = "".join(f'nv_inference_request_success{{model="m{i}"}} {i}\n' for i in range(30_000))
    with stranger(lambda asked: asked.reply(lines.encode(), kind=TEXT)) as server:
        reader = PageMetrics([MetricsPage(server.url)], 2, 0.4, 5.0)
        at_s = reader.record(DIALECTS, lambda _ratio, _text: None)
        time.sleep(4.0)
        with pytest.raises(CannotTell) as failed:
            reader.discover(DIALECTS, Selection(""), at_s)
    assert "the time was up" in failed.value.message
    assert "--deadline" in failed.value.hint
    assert "--selector" not in failed.value.hint


def test_config_check_waits_for_a_page_no_longer_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_DEADLINE_S", 0.5)
    began_s = time.monotonic()
    with stranger(drip_head) as server:
        (tmp_path / "latencydoctor.yaml").write_text(f"sources:\n  nvml: false\n  metrics: ['{server.url}']\n")
        (probed,) = probing.probe(DiagnoseRequest(config=tmp_path / "latencydoctor.yaml")).sources
    assert probed.state == "unreachable"
    assert probed.detail.endswith(" does not answer: deadline passed: no page within 0.5 s")
    assert time.monotonic() - began_s < 10
