"""What `latencydoctor stack` refuses, and what it shows where nothing runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latencydoctor.cli.stack import app
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.stack import lifecycle
from latencydoctor.stack.layout import Layout

pytestmark = pytest.mark.stack

cli = CliRunner()


@pytest.mark.parametrize(
    "arguments",
    [
        ["up", "--format", "yaml"],
        ["up", "--cache-server", "memcached"],
        ["status", "--format", "xml"],
        ["render", "--format", "x"],
        ["logs", "-n", "-1"],
        ["up", "--state", __file__],
        ["status", "--state", __file__],
    ],
)
def test_an_impossible_option_is_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    assert cli.invoke(app, [arguments[0], "--state", str(tmp_path), *arguments[1:]]).exit_code == 2


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = cli.invoke(app, ["logs", "triton", "--state", str(tmp_path)])
    assert isinstance(result.exception, UsageError)
    assert "has no log of 'triton'" in str(result.exception)


@pytest.mark.parametrize("deadline", ["-1", "nan", "60", "0s"])
def test_a_deadline_is_a_length_of_time_here_as_well(deadline: str, tmp_path: Path) -> None:
    result = cli.invoke(app, ["up", "--deadline", deadline, "--state", str(tmp_path / "state")])
    assert isinstance(result.exception, UsageError)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("command", ["status", "logs"])
def test_without_a_stack_it_says_so(command: str, tmp_path: Path) -> None:
    result = cli.invoke(app, [command, "--state", str(tmp_path)])
    assert isinstance(result.exception, KnownError)
    assert "no stack in" in str(result.exception)


def test_down_without_a_stack_is_nothing(tmp_path: Path) -> None:
    result = cli.invoke(app, ["down", "--state", str(tmp_path / "absent")])
    assert result.exit_code == 0
    assert result.stdout.startswith("nothing was running")
    assert not (tmp_path / "absent").exists()


def test_settings_are_rendered_without_a_stack_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("LATENCYDOCTOR_TOOLS", raising=False)
    settings = tmp_path / "mine.yaml"
    settings.write_text("inference: {batching: {max_batch_size: 64}}\n", encoding="utf-8")
    state = tmp_path / "state"
    result = cli.invoke(app, ["render", "--state", str(state), "--settings", str(settings), "--format", "json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert "max_batch_size: 64" in shown["config_pbtxt"]
    assert "127.0.0.1:0" in shown["prometheus"]
    assert not state.exists()


def test_rendered_settings_that_fight_each_other_are_remarked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("LATENCYDOCTOR_TOOLS", raising=False)
    settings = tmp_path / "mine.yaml"
    settings.write_text(
        "inference: {batching: {preferred_batch_size: 8, max_batch_size: 32, timeout_micros: 0},"
        " priority_levels: true}\n"
    )
    named = ["render", "--state", str(tmp_path / "state"), "--settings", str(settings)]
    result = cli.invoke(app, named)
    assert "remark: the preferred size is 8 of 32 and there is no wait: a backlog leaves in batches of" in result.stderr
    told = json.loads(cli.invoke(app, [*named, "--format", "json"]).stdout)
    assert [one["id"] for one in told["remarks"]] == ["preferred-size-ceiling"]


def test_two_at_once_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(tmp_path / "state")
    layout.create()
    told: list[str] = []
    monkeypatch.setattr(lifecycle, "LOCK_S", 0.05)
    with (
        lifecycle._locked(layout, lifecycle.silent),
        pytest.raises(KnownError, match="another `stack up` or `down` holds"),
    ):
        lifecycle.down(layout, lambda part, line: told.append(f"{part} {line}"))
    assert told == ["stack waiting for another `stack up` or `down` on this state folder"]


def test_a_state_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KnownError, match=r"cannot use .*: Not a directory|cannot use .*: File exists"):
        lifecycle.up(Layout(tmp_path / "file" / "state"))
