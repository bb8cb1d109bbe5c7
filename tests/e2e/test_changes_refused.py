"""`plan`, `apply`, `rollback` and `runs` where nothing can be changed: no plan in the file, no stack in the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from latencydoctor.app.planning import make_plan
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import Plan, RunEvent
from latencydoctor.remedy.plan_file import plan_to_json
from tests.e2e.program import Ran, digest, here, refused, run
from tests.fakes.clock import FakeClock
from tests.fakes.patient import FakePatient


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder whose stack is down."""
    FakePatient(tmp_path / "stack")
    return tmp_path / "stack"


@pytest.fixture
def plan(state: Path, tmp_path: Path) -> Path:
    made = make_plan("batch-floor", FakePatient(state), FakeClock())
    assert isinstance(made, Plan)
    path = tmp_path / "plan.json"
    path.write_text(plan_to_json(made))
    return path


def edited(path: Path, edit: Callable[[dict[str, object]], object]) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def test_a_plan_edited_by_hand(plan: Path, state: Path) -> None:
    edited(plan, lambda data: data.update(title="[/INST] harmless"))
    before = digest(plan.parent)
    for arguments in (("--yes",), ("--dry-run",)):
        ran = run("apply", plan, "--target", state, *arguments, cwd=plan.parent)
        refused(ran, 5, "the plan was changed after it was made", "latencydoctor plan")
    assert digest(plan.parent) == before


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (b"", 5, "not a plan"),
        (b"[/INST]", 5, "not a plan"),
        (b"{}", 5, "not a plan"),
        (b'{"schema": NaN}', 5, "not a plan"),
        (b"[" * 100_000, 5, "not a plan"),
        (b"\xff\xfe\x00\x01", 1, "is no text"),
        (b"x" * (5 << 20), 1, "too large to be a plan"),
    ],
    ids=["empty", "markup", "no fields", "NaN", "deep", "binary", "huge"],
)
def test_what_is_no_plan(text: bytes, code: int, message: str, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(text)
    before = digest(tmp_path)
    refused(here("apply", path, "--target", state, "--yes", cwd=tmp_path), code, message)
    assert digest(tmp_path) == before


def test_a_plan_that_is_not_there(state: Path, tmp_path: Path) -> None:
    refused(here("apply", "none.json", "--target", state, cwd=tmp_path), 1, "cannot read none.json: No such file")
    refused(here("apply", tmp_path, "--target", state, cwd=tmp_path), 1, "Is a directory")


NO_TARGET = (("runs",), ("runs", "recover", "--yes"), ("rollback", "--yes"), ("plan", "batch-floor"))


@pytest.mark.parametrize("words", NO_TARGET, ids=" ".join)
def test_a_target_that_is_not_there(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = here(*words, "--target", tmp_path / "none", cwd=tmp_path)
    refused(ran, 1, f"there is no stack in {tmp_path / 'none'}", "latencydoctor stack up")
    assert list(tmp_path.iterdir()) == []


def test_a_stack_that_is_down(plan: Path, state: Path) -> None:
    before = digest(plan.parent)
    for arguments in (("plan", "batch-floor"), ("apply", plan, "--yes"), ("apply", plan, "--dry-run")):
        ran = here(*arguments, "--target", state, cwd=plan.parent)
        refused(ran, 1, "Triton at", "latencydoctor stack status")
    assert digest(plan.parent) == before


def test_no_runs_yet(state: Path, tmp_path: Path) -> None:
    before = digest(state)
    assert here("runs", "--target", state, cwd=tmp_path) == Ran(0, "no runs yet\n", "")
    assert json.loads(here("runs", "--target", state, "--format", "json", cwd=tmp_path).out) == {"runs": []}
    nothing = here("runs", "recover", "--target", state, "--yes", cwd=tmp_path)
    assert nothing == Ran(0, "no unfinished run: nothing to recover\n", "")
    refused(here("rollback", "--target", state, "--yes", cwd=tmp_path), 2, "there is no applied run", "runs")
    for run_id in ("20261130T072024Z-abcdef", "../../etc/passwd", "[/INST]"):
        refused(here("runs", "show", run_id, "--target", state, cwd=tmp_path), 2, run_id, "latencydoctor runs")
        refused(here("rollback", run_id, "--target", state, "--yes", cwd=tmp_path), 2, run_id, "latencydoctor runs")
    left = {name: held for name, held in digest(state).items() if not name.endswith(".lock")}
    assert left == before


def test_looking_warns_of_a_run_without_an_end_and_touches_nothing(state: Path, tmp_path: Path) -> None:
    log = JournalFolder(state / "journal", FakeClock().now_s).start()
    log.record(RunEvent.STARTED, kind="apply", fix="[/INST]")
    before = digest(state)
    warning = (
        f"warning: run {log.run_id} (apply [/INST]) has no end; unless it is still at work, "
        "settle it with `latencydoctor runs recover`\n"
    )
    looked = run("runs", "--target", state, cwd=tmp_path)
    assert (looked.code, looked.err) == (0, warning)
    listed = here("runs", "--target", state, "--format", "json", cwd=tmp_path)
    assert listed.err == warning
    assert json.loads(listed.out)["runs"][0]["state"] == "open"
    planned = here("plan", "batch-floor", "--target", state, cwd=tmp_path)
    assert planned.code == 1
    assert planned.err.startswith(warning + "error: ")
    assert digest(state) == before


def test_more_replicas_are_refused_with_the_proof_that_capacity_is_not_the_problem(state: Path, tmp_path: Path) -> None:
    stored = Path(__file__).parents[1] / "golden" / "incidents" / "batching.json.gz"
    before = digest(state)
    ran = run("plan", "scale-out", "--target", state, "--bundle", stored, cwd=tmp_path)
    refused(ran, 5, "capacity is not the problem: Batching has failed (batching-failed, confidence", "plan batch-floor")
    assert "queue_time_ms" in ran.err
    assert "Do not add replicas" in ran.err
    assert digest(state) == before


def test_a_run_is_recovered_without_the_credentials_of_prometheus(state: Path, tmp_path: Path) -> None:
    told = "sources: {prometheus: {url: 'http://127.0.0.1:9', bearer_env: NOT_AT_HAND}}"
    (tmp_path / "latencydoctor.yaml").write_text(f"targets: {{bundled: {{state: {state}}}}}\n{told}\n")
    log = JournalFolder(state / "journal", FakeClock().now_s).start()
    log.record(RunEvent.STARTED)
    assert here("runs", "--format", "json", cwd=tmp_path).code == 0
    assert here("runs", "show", log.run_id, cwd=tmp_path).code == 0
    page = here("runs", "show", log.run_id, "--markdown", cwd=tmp_path)
    assert page.out.startswith(f"## Run {log.run_id}\n")
    assert "It has no end" in page.out
    asked = here("runs", "recover", "--yes", cwd=tmp_path)
    refused(asked, 1, f"the first record of run {log.run_id} does not tell its change", "that wrote it")
