"""`plan`, `apply`, `rollback` and `runs` on a real stack: what is refused changes nothing, and of two one wins."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.probes import ask_controller
from latencydoctor.stack.settings import BatchingSettings, Settings
from latencydoctor.targets.state_folder import StateFolder
from tests.e2e.conftest import Past
from tests.e2e.program import Ran, clean, complained, digest, finish, here, on_terminal, refused, run, start

pytestmark = pytest.mark.stack

BROKEN = BatchingSettings(preferred_batch_size=0, max_batch_size=8, timeout_micros=0)


@dataclass(frozen=True, slots=True)
class Target:
    """A running stack whose batching is broken, and a plan to mend it."""

    layout: Layout
    endpoints: Endpoints
    plan: Path

    def put(self, settings: Settings) -> None:
        """Write settings with the next generation and wait until they are in effect."""
        generation = stack_settings.load(self.layout.settings).generation + 1
        stack_settings.save(self.layout.settings, replace(settings, generation=generation))
        end_s = time.monotonic() + 20
        while (now := ask_controller(self.endpoints)) is None or now.generation != generation:
            assert time.monotonic() < end_s, now
            time.sleep(0.05)

    def settings(self) -> Settings:
        """The settings in the file, but for their generation."""
        return replace(stack_settings.load(self.layout.settings), generation=1)

    def changeable(self) -> dict[str, str]:
        """Everything a change may touch; logs and time series go on by themselves."""
        files = digest(self.layout.state)
        return {name: held for name, held in files.items() if name.startswith(("settings.yaml", "models/", "journal/"))}

    def apply(self, *arguments: str | Path) -> tuple[str | Path, ...]:
        return ("apply", self.plan, "--target", self.layout.state, *arguments)


@pytest.fixture(scope="module")
def target(live_stack: Endpoints, live_layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("plans")
    found = Target(live_layout, live_stack, folder / "plan.json")
    before = found.settings()
    found.put(replace(before, inference=replace(before.inference, batching=BROKEN)))
    held = found.changeable()
    made = run("plan", "batch-floor", "--target", live_layout.state, "-o", found.plan, cwd=folder)
    assert made.code == 0, made
    assert (
        made.err
        == f"plan written to {found.plan}; next: latencydoctor apply {found.plan} --target {live_layout.state}\n"
    )
    assert "+    max_batch_size: 32" in made.out
    clean(made)
    assert found.changeable() == held
    yield found
    found.put(before)


def test_a_dry_run_changes_nothing(target: Target, tmp_path: Path) -> None:
    before = target.changeable()
    ran = run(*target.apply("--dry-run"), cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "dry run: nothing was changed\n")
    assert "+    max_batch_size: 32" in ran.out
    clean(ran)
    assert target.changeable() == before


def test_a_plan_for_a_file_that_cannot_be_written(target: Target, tmp_path: Path) -> None:
    before = target.changeable()
    path = tmp_path / "none" / "plan.json"
    ran = here("plan", "batch-floor", "--target", target.layout.state, "-o", path, cwd=tmp_path)
    refused(ran, 1, f"cannot write {path}: there is no folder {path.parent}", "--output")
    assert target.changeable() == before


def test_the_exit_code_says_that_there_is_something_to_change(target: Target, tmp_path: Path) -> None:
    ran = here("plan", "batch-floor", "--target", target.layout.state, "--detailed-exitcode", cwd=tmp_path)
    assert (ran.code, ran.err) == (3, "")


def test_without_a_terminal_approval_must_be_given_beforehand(target: Target, tmp_path: Path) -> None:
    before = target.changeable()
    complained(run(*target.apply(), cwd=tmp_path), 5, "not approved: there is no terminal to ask on", "--yes")
    assert target.changeable() == before


@pytest.mark.parametrize(
    ("typed", "code"), [(b"n\n", 5), (b"\n", 5), (b"yes, but\n", 5), (b"\x04", 5), (b"\x03", 130)],
    ids=["no", "nothing", "neither", "end of input", "interrupt"],
)  # fmt: skip
def test_asked_and_not_approved(typed: bytes, code: int, target: Target, tmp_path: Path) -> None:
    before = target.changeable()
    ran = on_terminal(typed, *target.apply(), cwd=tmp_path)
    assert ran.code == code, ran
    assert "Apply this plan? [y/N]" in ran.err
    assert ("error: not approved" in ran.err) == (code == 5)
    assert "Traceback" not in ran.err
    assert target.changeable() == before


def test_locked_by_another(target: Target, tmp_path: Path) -> None:
    with StateFolder(target.layout.state).locked("20261130T072024Z-abcdef"):
        before = target.changeable()
        ran = run(*target.apply("--yes"), cwd=tmp_path)
        assert target.changeable() == before
    complained(ran, 5, "is locked by run 20261130T072024Z-abcdef, user ", "Wait")
    assert re.search(r"host \S+, pid \d+, since 20\d\d-", ran.errors[0])


def test_a_stale_plan(target: Target, tmp_path: Path) -> None:
    broken = target.settings()
    target.put(replace(broken, cache=replace(broken.cache, ttl_seconds=299)))
    try:
        before = target.changeable()
        for arguments in (("--yes",), ("--dry-run",)):
            refused(here(*target.apply(*arguments), cwd=tmp_path), 5, "stale: settings.yaml has changed since", "plan")
        assert target.changeable() == before
    finally:
        target.put(broken)


def test_of_two_at_once_one_wins_and_what_it_did_can_be_undone(target: Target, tmp_path: Path) -> None:
    broken = target.settings()
    # The settings are those of the plan again, but for their generation, by which a plan is bound.
    again = tmp_path / "plan.json"
    where = ("--target", target.layout.state)
    assert here("plan", "batch-floor", *where, "-o", again, cwd=tmp_path).code == 0
    # Other tests have changed the shared stack before.
    older = {one["run_id"] for one in json.loads(here("runs", *where, "--format", "json", cwd=tmp_path).out)["runs"]}
    ran = [finish(one) for one in [start("apply", again, *where, "--yes", cwd=tmp_path) for _ in range(2)]]
    winner, loser = sorted(ran, key=lambda one: one.code)
    # Nothing was there to verify it on, so it is held for a human.
    complained(winner, 4, "held for a human: no data: no metrics source is configured", "rollback")
    assert loser.code == 5, loser
    assert re.search(r"is locked by |is stale: |unfinished", loser.errors[0]), loser
    clean(loser)
    assert target.settings().inference.batching.max_batch_size == 32

    runs = json.loads(here("runs", *where, "--format", "json", cwd=tmp_path).out)["runs"]
    listed = [one for one in runs if one["run_id"] not in older]
    assert [(one["kind"], one["state"]) for one in listed] == [("apply", "held")]
    run_id = listed[0]["run_id"]
    assert run_id in here("runs", *where, cwd=tmp_path).out
    shown = here("runs", "show", run_id, *where, cwd=tmp_path)
    assert json.loads(shown.out.splitlines()[0])["event"] == "run started"
    assert here("plan", "batch-floor", *where, cwd=tmp_path).out.startswith("nothing to do for batch-floor: ")

    before = target.changeable()
    complained(run("rollback", *where, cwd=tmp_path), 5, "not approved: there is no terminal to ask on", "--yes")
    assert target.changeable() == before
    back = run("rollback", *where, "--yes", "--force", cwd=tmp_path)
    assert back.code == 0, back
    assert f"the state before run {run_id} is back, proven by digest" in back.out
    assert target.settings() == broken
    ended = here("rollback", run_id, *where, "--yes", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, ""), ended
    assert ended.out.startswith("nothing to do for batch-floor: the settings already are as they were before run")


def test_plan_and_journal_hold_no_secret(
    target: Target, past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, again, where = "s3cr3t-t0ken-value", tmp_path / "plan.json", ("--target", target.layout.state)
    monkeypatch.setenv("API_TOKEN", secret)
    url = past.url.replace("http://", f"http://ann:{secret}@")
    assert here("plan", "batch-floor", *where, "--prometheus", url, "-o", again, cwd=tmp_path).code == 0
    assert here("apply", again, *where, "--yes", cwd=tmp_path).code == 4
    assert here("rollback", *where, "--yes", cwd=tmp_path).code == 0
    written = [again, *(target.layout.state / "journal").iterdir()]
    assert len(written) > 2
    assert [path.name for path in written if secret in path.read_text()] == []


def test_approved_on_a_terminal(target: Target, tmp_path: Path) -> None:
    again = tmp_path / "plan.json"
    where = ("--target", target.layout.state)
    assert here("plan", "batch-floor", *where, "-o", again, cwd=tmp_path).code == 0
    ran: Ran = on_terminal(b"y\n", "apply", again, *where, cwd=tmp_path)
    assert ran.code == 4, ran
    assert "is in effect" in ran.err
    assert run("rollback", *where, "--yes", cwd=tmp_path).code == 0
