"""A Prometheus that scrapes nothing but TorchServe, and the management API beside it, diagnosed as their user would.

The history is derived from the recorded pages: every counter grows evenly as it did between two of them under load,
after a quarter of an hour at a twentieth of that.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from latencydoctor.cli import wiring
from latencydoctor.model.evidence import Gap, GapReason, Measure
from tests.contract.backfill import Page, running_prometheus
from tests.contract.recordings import samples
from tests.contract.strangers import stranger
from tests.contract.torchserve_replay import TINY, replay
from tests.e2e.program import run

FOLDER = Path(__file__).parent / "pages" / "torchserve" / "torchserve-0.12.0"
SCRAPE_S, CALM_S, LOAD_S, CALM_SHARE = 5.0, 900.0, 240.0, 0.05
COUNTERS = ("ts_", "Requests")


def history(end_s: float) -> Page:
    """Scrapes every five seconds up to that moment."""
    times = {one["file"]: one["time_s"] for one in yaml.safe_load((FOLDER / "recording.yaml").read_text())["scrapes"]}
    first, last = (samples(tidied(f"load-{turn}.prom")) for turn in (1, 2))
    seconds = times["load-2.prom"] - times["load-1.prom"]
    page = Page()
    for (name, labels, begin), (_, _, end) in zip(first, last, strict=True):
        a_second = (end - begin) / seconds if name.startswith(COUNTERS) else 0.0
        value = begin
        for turn in range(int((CALM_S + LOAD_S) / SCRAPE_S)):
            value += a_second * SCRAPE_S * (CALM_SHARE if turn * SCRAPE_S < CALM_S else 1.0)
            at_s = end_s - CALM_S - LOAD_S + (turn + 1) * SCRAPE_S
            page.observe(at_s, name, value, **labels, job="torchserve", instance="a:8082")
    return page


def tidied(name: str) -> str:
    """A page without the commas that TorchServe leaves behind the last label."""
    return (FOLDER / name).read_text(encoding="utf-8").replace(",}", "}")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    page = history(float(int(time.time())))
    with running_prometheus(tmp_path_factory.mktemp("torchserve") / "it", page) as url:
        yield url


def test_the_facts_stand_beside_the_series(prometheus: str) -> None:
    with stranger(replay("overloaded")) as server:
        found = wiring.diagnose(wiring.DiagnoseRequest(prometheus=prometheus, torchserve=server.url, since="18m"))
        # Prometheus has named the model, so TorchServe is asked about it at once.
        assert [asked.path for asked in server.asked] == ["/models/tiny"]
    assert found.collected.dialects == ("torchserve",)
    measures = {measure.signal: measure for measure in found.evidence.measures}
    told = {signal: measures[signal].value for signal in TINY}
    assert told == TINY | {"requests_waiting": 8}
    assert measures["config_max_batch_size"].proof.query == "GET /models/tiny batchSize (default version 1.0)"
    assert measures["queue_depth"].proof.source == "prometheus"


def test_why_there_are_no_facts_is_told_not_that_metrics_lack_them(prometheus: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        found = wiring.diagnose(wiring.DiagnoseRequest(prometheus=prometheus, torchserve=url, since="18m"))
    gap = found.evidence.find("config_max_batch_size")
    assert isinstance(gap, Gap)
    assert gap.reason is GapReason.UNREACHABLE
    assert isinstance(found.evidence.find("queue_depth"), Measure)


def test_the_past_is_not_given_the_settings_of_now(prometheus: str) -> None:
    with stranger(replay("idle")) as server:
        at = str(time.time() - 30)
        request = wiring.DiagnoseRequest(prometheus=prometheus, torchserve=server.url, since="15m", at=at)
        assert isinstance(wiring.diagnose(request).evidence.find("config_max_batch_size"), Gap)
        assert server.asked == []


def test_the_program_shows_them(prometheus: str, tmp_path: Path) -> None:
    with stranger(replay("overloaded")) as server:
        sources = ("--prometheus", prometheus, "--torchserve", server.url)
        ran = run("diagnose", *sources, "--since", "18m", "--format", "json", "--exit-zero", cwd=tmp_path)
        assert ran.code == 0, ran.err
        assert "GET /models/tiny" in json.dumps(json.loads(ran.out))
