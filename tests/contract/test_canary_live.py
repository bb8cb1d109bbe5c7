"""A canary on a real stack of two replicas under load: promoted, rolled back by the judge, held without traffic."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from latencydoctor.app import treat
from latencydoctor.app.treat import Asked
from latencydoctor.app.verify import Schedule
from latencydoctor.cli import wiring
from latencydoctor.load.runner import LocustRunner
from latencydoctor.model.load import LoadPlan, Mix, Phase
from latencydoctor.model.remedy import Decision, Plan, RunEvent, RunState
from latencydoctor.remedy.batch_floor import BatchFloor
from latencydoctor.remedy.plan_file import plan_to_json
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.stack import lifecycle
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.encoder import corpus
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.status import status
from tests.contract.gateway_client import admin, eventually
from tests.e2e.program import finish, here, start

pytestmark = [pytest.mark.stack, pytest.mark.slow]

TIGHT = BatchingSettings(preferred_batch_size=0, max_batch_size=4, timeout_micros=0)
"""At 20 ms a launch and 1 ms an item one replica does 166 requests/s so."""

OVERLOAD_RPS = 400.0
EASY_RPS = 200.0

QUICK = Schedule(settle_s=6.0, window_s=5.0, lag_s=2.0)


@dataclass(frozen=True, slots=True)
class Two:
    """A running stack of two replicas, and what it says on the way."""

    layout: Layout
    endpoints: Endpoints
    said: list[str]

    def put(self, batching: BatchingSettings) -> None:
        """These settings on both replicas, in effect."""
        target = wiring.treatment(wiring.DiagnoseRequest(), str(self.layout.state), wiring.silent)
        text = target.target.edited(
            target.tools.target.read().settings_text,
            [
                ("inference.batching.preferred_batch_size", str(batching.preferred_batch_size)),
                ("inference.batching.max_batch_size", str(batching.max_batch_size)),
                ("inference.batching.timeout_micros", str(batching.timeout_micros)),
            ],
        )
        found = target.tools.target.read().digest
        target.tools.changer.write(text, expected=frozenset({found}), cancelled=treat.never)

    def treatment(self) -> wiring.Treatment:
        request = wiring.DiagnoseRequest(prometheus=self.endpoints.prometheus)
        found = wiring.treatment(request, str(self.layout.state), lambda step: self.said.append(step.text))
        return replace(found, tools=replace(found.tools, schedule=QUICK))

    @property
    def arguments(self) -> tuple[str, ...]:
        """What tells `apply` where to act and where to look."""
        return ("--target", str(self.layout.state), "--prometheus", self.endpoints.prometheus)

    def plan(self, wanted: BatchFloor) -> Plan:
        plan = treat.make_plan("batch-floor", self.treatment().target, wiring.SystemClock(), asked=Asked(wanted))
        assert isinstance(plan, Plan)
        return plan

    def events(self, run_id: str) -> list[str]:
        return [entry.event for entry in self.treatment().tools.history.entries(run_id)]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    layout = Layout(tmp_path_factory.mktemp("two") / "stack")
    layout.create()
    stack_settings.save(layout.settings, Settings(inference=InferenceSettings(replicas=2, batching=TIGHT)))
    try:
        yield Two(layout, lifecycle.up(layout), [])
    finally:
        lifecycle.down(layout)


@contextmanager
def load(two: Two, folder: Path, rate_rps: float) -> Iterator[None]:
    """Open-loop traffic of many sessions for as long as the block lasts."""
    questions = tuple(corpus.faq_corpus().index)
    running = LocustRunner(folder).start(
        LoadPlan(two.endpoints.gateway, (Phase("steady", rate_rps, None),), questions, bound_s=280, mix=Mix())
    )
    try:
        yield
    finally:
        running.stop(drain=False)


def test_a_change_that_ends_an_overload_is_promoted_and_verified_on_all_traffic(two: Two, tmp_path: Path) -> None:
    two.put(TIGHT)
    with load(two, tmp_path, OVERLOAD_RPS):
        outcome = treat.apply(two.plan(BatchFloor()), two.treatment().tools)
    assert (outcome.state, outcome.error) == (RunState.KEPT, None), two.said
    trial = outcome.trial
    assert trial is not None
    assert trial.decision is Decision.KEEP
    assert len(trial.checks) >= 5
    last = trial.checks[-1]
    assert last.canary.p99_ms is not None
    assert last.baseline.p99_ms is not None
    # The peers are still in the incident while the canary is well, at about the same number of requests.
    assert last.canary.p99_ms < 500 < last.baseline.p99_ms
    assert last.canary.requests == pytest.approx(last.baseline.requests, rel=0.25)
    settings = stack_settings.load(two.layout.settings)
    assert (settings.canary, settings.inference.batching.max_batch_size) == (None, 32)
    assert admin(two.endpoints.admin_socket, "GET", "/state").json["canary"]["share_ratio"] == 0


def test_a_wait_that_is_too_long_is_rolled_back_by_the_judge_with_its_figures(two: Two, tmp_path: Path) -> None:
    two.put(BatchingSettings(preferred_batch_size=4, max_batch_size=32, timeout_micros=20_000))
    before = two.treatment().target.read()
    plan = two.plan(BatchFloor(preferred_batch_size=100, max_batch_size=128, max_wait_ms=400.0))
    (tmp_path / "plan.json").write_text(plan_to_json(plan))
    with load(two, tmp_path, EASY_RPS):
        ran = here("apply", "plan.json", *two.arguments, "--yes", "--format", "json", cwd=tmp_path)
    assert ran.code == 6, ran
    told = json.loads(ran.out)["run"]
    assert (told["state"], told["trial"]["decision"], told["verification"]) == ("rolled back", "roll back", None)
    assert "times the baseline's" in told["trial"]["reason"]
    for check in told["trial"]["checks"]:
        assert check["canary"]["p99_ms"] > 400 > check["baseline"]["p99_ms"]
    after = two.treatment().target.read()
    assert {one.name: one.digest for one in after.objects} == {one.name: one.digest for one in before.objects}
    assert RunEvent.COMMITTED not in two.events(told["run_id"])
    assert "canary: window 1: p99" in ran.err
    assert "one of 2 replicas, which answers 50 % of the sessions" in ran.err
    assert any("the canary was rolled back: p99 is" in line for line in ran.errors)


def test_without_traffic_nothing_is_promoted_and_the_screen_says_what_was_lacking(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    two.put(TIGHT)
    before = two.layout.settings.read_text()
    (tmp_path / "plan.json").write_text(plan_to_json(two.plan(BatchFloor())))
    ran = here("apply", "plan.json", *two.arguments, "--yes", cwd=tmp_path)
    assert ran.code == 4, ran
    assert settings_digest(two.layout.settings.read_text()) == settings_digest(before)
    lines = ran.out.splitlines()
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("canary: one replica, 50 %")) :]
    assert table[1].split() == ["window", "p99", "peers", "times", "errors", "peers", "requests"]
    assert len([line for line in table if re.fullmatch(r"\d\d:\d\d:\d\d [ -]+[0-]", line)]) == 3, ran.out
    assert any(line.startswith("hold: no data in 3 windows in a row") for line in table)
    # What is longer is a path or a sentence that the terminal wraps.
    assert max(len(line) for line in table[:5]) <= 80
    assert ran.errors[0].startswith("the canary was not promoted: no data in 3 windows in a row")
    assert "--no-canary" in ran.hint


def test_an_interrupt_takes_the_canary_back(two: Two, tmp_path: Path) -> None:
    two.put(TIGHT)
    before = two.treatment().target.read()
    (tmp_path / "plan.json").write_text(plan_to_json(two.plan(BatchFloor())))
    child = start("apply", "plan.json", *two.arguments, "--yes", cwd=tmp_path)
    state = two.endpoints.admin_socket
    eventually(lambda: admin(state, "GET", "/state").json["canary"]["share_ratio"] == 0.5, "it is routed to", 30.0)
    assert "batching:\n    timeout_micros: 100000" in two.layout.settings.read_text().partition("inference:")[0]
    assert status(two.layout).canary == "replica 2 tries another batching, 50 % of the sessions"
    child.send_signal(signal.SIGINT)
    ran = finish(child)
    assert ran.code == 130, ran
    assert "undone: interrupted while" in ran.out
    after = two.treatment().target.read()
    assert {one.name: one.digest for one in after.objects} == {one.name: one.digest for one in before.objects}
    eventually(lambda: admin(state, "GET", "/state").json["canary"]["share_ratio"] == 0, "it is over")
    assert status(two.layout).canary == ""
