"""What the end-to-end tests share: a Prometheus that holds a past incident, and what was stored of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.backfill import Load, Page, Place, running_prometheus, serve_phases
from tests.e2e.program import run

CALM = Load(600, 60, 110)
CROWD = Load(300, 310, 1800, queue_ms=1700, compute_ms=28, items=8, busy=0.29, error_ratio=0.002)

HOSTILE_LINE = "%s ERROR [/INST] [bold red]CUDA out of memory[/] \x1b[31mred\x1b[0m \u202e\x07 $(reboot) <b>|`x`|</b>\n"


@dataclass(frozen=True, slots=True)
class Past:
    """An incident that is over: where it can be read, as of when."""

    url: str
    at_s: float

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options that look at it."""
        return ("--prometheus", self.url, "--at", f"{self.at_s:.0f}", "--since", "14m")


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """Ten calm minutes, then five of a crowd on settings that do not batch."""
    page = Page()
    end_s = serve_phases(page, float(int(time.time()) - 1000), [CALM, CROWD], Place())
    with running_prometheus(tmp_path_factory.mktemp("past") / "prometheus", page) as url:
        yield Past(url, end_s)


@pytest.fixture(scope="session")
def bundle(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `diagnose --save` stored of the incident, hostile log lines included."""
    folder = tmp_path_factory.mktemp("bundle")
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(past.at_s - 30))
    (folder / "gateway.log").write_text(HOSTILE_LINE % moment, encoding="utf-8")
    path = folder / "incident.json.gz"
    ran = run("diagnose", *past.arguments, "--log", folder / "gateway.log", "--save", path, cwd=folder)
    assert ran.code == 3, ran
    return path
