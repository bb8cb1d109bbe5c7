"""The warning of runs without an end: who gives it, and that it touches nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from latencydoctor.cli import unfinished
from latencydoctor.cli.main import app
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.journal import JournalFolder

RUN = "run started"


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """A stack's folder in which one run was killed, and a configuration that names it."""
    state = tmp_path / "stack"
    state.mkdir()
    journal = JournalFolder(state / "journal", lambda: 1_800_000_000.0).start()
    journal.record(RUN, kind="apply", of="", fix="batch-floor", target="bundled:x")
    (tmp_path / "latencydoctor.yaml").write_text(
        f"targets: {{bundled: {{state: {state}}}}}\nsources: {{prometheus: {{url: 'http://127.0.0.1:9'}}}}\n"
    )
    return state


def held(state: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", [["diagnose", "--deadline", "1s"], ["forecast"], ["config", "check"]])
def test_commands_that_only_look_warn_and_touch_nothing(stack: Path, command: list[str]) -> None:
    before = held(stack)
    found = CliRunner().invoke(app, [*command, "--config", str(stack.parent / "latencydoctor.yaml")])
    assert "(apply batch-floor) has no end" in found.stderr
    assert "latencydoctor runs recover" in found.stderr
    assert held(stack) == before


def test_a_bundle_says_nothing_of_the_target(stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = stack.parent / "latencydoctor.yaml"
    unfinished.warn_of_configured(DiagnoseRequest(config=configuration, bundle=Path("incident.json.gz")))
    assert capsys.readouterr().err == ""
    unfinished.warn_of_configured(DiagnoseRequest(config=configuration))
    assert "has no end" in capsys.readouterr().err


def test_a_folder_without_runs_is_silent_and_a_broken_one_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unfinished.warn_in(tmp_path)
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "journal").exists()
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "20270115T080000Z-abcdef.jsonl").mkdir()
    unfinished.warn_in(tmp_path)
    assert "warning: " in capsys.readouterr().err
