"""How a run ended is its exit code, whatever becomes of the words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from latencydoctor.app.treat import Outcome
from latencydoctor.cli import outcome
from latencydoctor.cli.options import Format
from latencydoctor.errors import RollbackFailed
from latencydoctor.model.remedy import RunState

KEPT = Outcome("20261130T072024Z-abcdef", "/j.jsonl", "apply", RunState.KEPT, "3 checks in a row passed")
FAILED = Outcome(
    "20261130T072024Z-abcdef", "/j.jsonl", "apply", RunState.ROLLBACK_FAILED, "x", error=RollbackFailed("x")
)


@pytest.mark.parametrize("form", list(Format))
def test_the_code_is_the_runs_where_the_disk_of_stdout_is_full(
    form: Format, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 would say that nothing was changed."""
    for ended, raised in ((KEPT, typer.Exit), (FAILED, RollbackFailed)):
        with monkeypatch.context() as patch, Path("/dev/full").open("w", encoding="utf-8") as full:
            patch.setattr(sys, "stdout", full)
            with pytest.raises(raised) as caught:
                outcome.report(ended, None, form)
            assert getattr(caught.value, "exit_code", 0) == 0
        told = capsys.readouterr().err
        assert "the output cannot be written: No space left on device" in told
        assert f"run {ended.run_id} is {ended.state.value}" in told
