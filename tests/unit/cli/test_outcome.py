"""How a run ended is its exit code, whatever becomes of the words; and what can be pasted then."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from latencydoctor.app.treat import Outcome
from latencydoctor.cli import outcome
from latencydoctor.cli.options import Format
from latencydoctor.errors import Held, RollbackFailed
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


@pytest.mark.parametrize("form", list(Format))
def test_the_commands_that_undo_name_the_target_as_it_was_named(
    form: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    error = Held("held for a human", hint="It stays. `latencydoctor rollback R --force` brings the old one back.")
    held = Outcome("R", "/j.jsonl", "apply", RunState.HELD, "no data", error=error)
    with pytest.raises(Held) as caught:
        outcome.report(held, None, form, " --config x.yaml")
    assert "`latencydoctor rollback R --force --config x.yaml` brings" in caught.value.hint
    if form is Format.TEXT:
        assert "to undo it: latencydoctor rollback R --config x.yaml\n" in capsys.readouterr().out
