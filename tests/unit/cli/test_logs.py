"""`latencydoctor logs`: exit codes, forms, times."""

from __future__ import annotations

import io
import json
import os
import shlex
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from latencydoctor.cli import progress
from latencydoctor.cli.logs import logs
from latencydoctor.errors import KnownError, UsageError

APP = typer.Typer()
APP.command()(logs)
WAIT = '{"time": "2026-11-30T07:20:26Z", "level": "WARNING", "event": "queue_delay", "message": "m", "queue_ms": 900}\n'
LATE = (
    '{"time": "2026-11-30T07:21:26Z", "level": "CRITICAL", "event": "inference_timeout", "message": "m", "count": 3}\n'
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text("fine\n" + WAIT + LATE, encoding="utf-8")
    return path


def run(*arguments: str | Path, stdin: str = "") -> Result:
    return CliRunner().invoke(APP, [str(one) for one in arguments], input=stdin)


def test_worst_first_and_exit_3(log: Path) -> None:
    result = run(log)
    assert result.exit_code == 3
    told = [line for line in result.stdout.splitlines() if line.startswith(("CRITICAL", "WARNING"))]
    assert told[0].startswith("CRITICAL inference_timeout x3")
    assert told[1].startswith("WARNING  queue_delay x1")


@pytest.mark.parametrize(("fail_on", "code"), [("CRITICAL", 0), ("ERROR", 0), ("warning", 3), ("INFO", 3)])
def test_fail_on_decides_the_exit_code(fail_on: str, code: int) -> None:
    assert run("-", "--fail-on", fail_on, stdin=WAIT).exit_code == code


def test_exit_zero_and_no_input(tmp_path: Path, log: Path) -> None:
    assert run(log, "--exit-zero").exit_code == 0
    result = run(tmp_path / "none.log")
    assert result.exit_code == 4
    assert "No such file" in result.stdout
    assert run("-").exit_code == 4
    assert run("-", stdin="fine\n").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        (["--since", "2026-11-30T07:21:00Z"], ["inference_timeout"]),
        (["--until", "1796023260"], ["queue_delay"]),
        (["--until", "9999d"], []),
    ],
)
def test_since_and_until(log: Path, arguments: list[str], rules: list[str]) -> None:
    result = run(log, "--format", "json", *arguments)
    assert [event["rule"] for event in json.loads(result.stdout)["events"]] == rules


def test_output_goes_to_the_file(log: Path, tmp_path: Path) -> None:
    for form in ("text", "json"):
        assert run(log, "--format", form, "-o", tmp_path / form).stdout == ""
        assert "inference_timeout" in (tmp_path / form).read_text(encoding="utf-8")


def test_file_that_cannot_be_written(log: Path, tmp_path: Path) -> None:
    assert isinstance(run(log, "-o", tmp_path / "no" / "file").exception, KnownError)


@pytest.mark.parametrize("arguments", [["--since", "soon"], ["--since", "2026-11-30", "--until", "2026-11-29"]])
def test_times_that_cannot_be_meant(log: Path, arguments: list[str]) -> None:
    assert isinstance(run(log, *arguments).exception, UsageError)


def test_a_length_without_its_unit_is_not_taken_for_a_moment_of_1970(log: Path) -> None:
    found = run(log, "--since", "30").exception
    assert isinstance(found, UsageError)
    assert found.hint == "Write 30m for 30 minutes ago."


def test_the_next_command_names_the_files(log: Path) -> None:
    assert run(log).stdout.rstrip().endswith(f"latencydoctor diagnose --prometheus URL --log {shlex.quote(str(log))}")


def test_levels_in_both_forms(log: Path) -> None:
    found = json.loads(run(log, "--levels", "--format", "json").stdout)["levels"]
    assert {level: count for level, count in found.items() if count} == {"CRITICAL": 1, "WARNING": 1, "none": 1}
    assert "1 CRITICAL" in run(log, "--levels").stdout
    assert "levels" not in json.loads(run(log, "--format", "json").stdout)


def test_words_of_users_are_blanked_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    line = "Received request x: prompt: 'my secret garden', params: SamplingParams(n=1)"
    path.write_text(f"ERROR 11-30 07:20:26 [a.py:1] CUDA out of memory while: {line}\n" * 9, encoding="utf-8")
    assert "secret garden" not in run(path, "--redact-prompts").stdout


def test_progress_is_for_a_terminal_and_long_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, highlight=False)
    monkeypatch.setattr("latencydoctor.cli.streams.stderr", lambda: console)
    clock = iter([0.0, 0.0, 0.5, 1.5, 1.6, 2.0, 9.0, 9.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with progress.Meter() as meter:
        for _ in range(4):
            meter.add(100_000_000)
    assert shown.getvalue().count("MB/s") == 2
    assert "read 200 MB, 133 MB/s" in shown.getvalue()
    shown.truncate(0)
    monkeypatch.setattr("latencydoctor.cli.streams.stderr", lambda: Console(file=shown))
    with progress.Meter() as meter:
        meter.add(1)
    assert "MB" not in shown.getvalue()


@pytest.mark.parametrize(
    ("zone", "first_s"), [("", 1796023226.0), ("+02:00", 1796016026.0), ("Europe/Berlin", 1796019626.0)]
)
def test_a_stamp_without_a_zone_is_read_in_the_one_that_is_named(tmp_path: Path, zone: str, first_s: float) -> None:
    local = tmp_path / "vllm.log"
    local.write_text(
        "ERROR 11-30 07:20:26 [core.py:1] CUDA out of memory. Tried to allocate 2.00 GiB.\n", encoding="utf-8"
    )
    os.utime(local, (1796100000, 1796100000))
    result = run(local, "--format", "json", *(["--zone", zone] if zone else []))
    assert [one["first_s"] for one in json.loads(result.stdout)["events"]] == [first_s]
