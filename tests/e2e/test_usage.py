"""What is typed wrongly, and configuration and content that are broken: exit code, one line each, nothing written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from latencydoctor.cli.main import app
from latencydoctor.content.locate import locate
from tests.e2e.program import clean, digest, here, refused, run


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and group; typed Any because typer carries its own click."""
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


COMMANDS = tuple(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = here(*words, "--help", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: {' '.join(('latencydoctor', *words))}" in ran.out
    clean(ran)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_that_does_not_exist(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = here(*words, "--no-such-option", cwd=tmp_path)
    refused(ran, 2, "No such option: --no-such-option", f"See `{' '.join(('latencydoctor', *words))} -h`.")
    clean(ran)


def test_the_installed_program_has_a_name_and_a_version(tmp_path: Path) -> None:
    ran = run("--version", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(r"latencydoctor \d+\.\d+\.\d+\n", ran.out)
    refused(run("diagnos", cwd=tmp_path), 2, "Did you mean 'diagnose'?", "latencydoctor -h")


URL = ("--prometheus", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("diagnose", *URL, "--at", "soon"), "--at is 'soon', not a time", "2026-11-30T07:20:24Z"),
        (("diagnose", *URL, "--at", "nan"), "--at is 'nan', not a time", "2026-11-30T07:20:24Z"),
        (("diagnose", *URL, "--at", "1e300"), "--at is '1e300', not a time", "2026-11-30T07:20:24Z"),
        (("diagnose", *URL, "--at=-5"), "--at is '-5', not a time", "2026-11-30T07:20:24Z"),
        (("diagnose", *URL, "--since", "yesterday"), "--since is 'yesterday', not a length", "1h30m"),
        (("diagnose", *URL, "--since", "999999999999d"), "--since is too long", "1h30m"),
        (("diagnose", *URL, "--baseline", "earlier"), "--baseline is 'earlier', not a span of time", "30m@24h"),
        (
            ("diagnose", *URL, "--baseline", "2026-11-30T08:00Z/2026-11-30T07:00Z"),
            "--baseline must end after it starts",
            "30m@24h",
        ),
        (
            ("diagnose", "--metrics-url", "http://127.0.0.1:1/metrics", "--baseline", "30m@1d"),
            "--baseline needs a past",
            "--prometheus URL",
        ),
        (
            ("diagnose", "--metrics-url", "http://127.0.0.1:1/metrics", "--since", "5m"),
            "--since needs a past",
            "--prometheus URL",
        ),
        (("diagnose", *URL, "--scrapes", "3"), "--scrapes is for metrics pages", "--metrics-url URL"),
        (("diagnose", *URL, "--every", "1s"), "--every is for metrics pages", "--metrics-url URL"),
        (("diagnose", *URL, "--at", "2200-01-01"), "--at is '2200-01-01', which is yet to come", "Leave it out"),
        (("diagnose", *URL, "--deadline", "20"), "--deadline is '20', not a length", "90s"),
        (("diagnose", *URL, "--deadline", "0s"), "--deadline must be longer than nothing", "90s"),
        (("diagnose", *URL, "--playbook", "[/INST]"), "there is no playbook '[/INST]'", "latency-spike"),
        (
            ("diagnose", "--format", "html"),
            "'html' is not one of 'text', 'json', 'markdown'",
            "latencydoctor diagnose -h",
        ),
        (("apply",), "Missing argument 'PLAN'", "latencydoctor apply -h"),
        (("plan", "reboot"), "there is no fix 'reboot'", "batch-floor"),
        (("plan", "batch-floor"), "no target to change is configured", "--target DIR"),
        (("rollback", "--yes"), "no target to change is configured", "--target DIR"),
        (("runs",), "no target to change is configured", "--target DIR"),
        (("runs", "show", "x"), "no target to change is configured", "--target DIR"),
        (("runs", "recover"), "no target to change is configured", "--target DIR"),
        (("rules", "show", "[/INST]"), "[/INST]", "rules list"),
    ],
)
def test_what_cannot_be_meant(arguments: tuple[str, ...], message: str, hint: str, tmp_path: Path) -> None:
    refused(here(*arguments, cwd=tmp_path), 2, message, hint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [(), ("rules",), ("config",), ("stack",), ("drill",)], ids=" ".join)
def test_a_group_without_a_command_shows_its_help(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = here(*words, cwd=tmp_path)
    assert (ran.code, ran.err) == (2, "")
    assert f"Usage: {' '.join(('latencydoctor', *words))}" in ran.out


BROKEN_CONFIG = """\
sources:
  prometheus:
    url: http://localhost:9090
    password: hunter2-hunter2
  triton: {grpc: nowhere}
slo: {p99_ms: -1, error_ratio: 5}
colour: red
"""


def test_every_problem_of_the_configuration_at_once(tmp_path: Path) -> None:
    (tmp_path / "latencydoctor.yaml").write_text(BROKEN_CONFIG)
    before = digest(tmp_path)
    ran = run("diagnose", cwd=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    lines = {int(match[1]) for match in map(re.compile(r"latencydoctor\.yaml:(\d+):\d+: ").match, ran.errors) if match}
    assert len(ran.errors) == 5
    assert lines == {4, 5, 6, 7}
    assert "hunter2" not in ran.err
    clean(ran)
    assert digest(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"sources: [", "latencydoctor.yaml:"),
        (b"\xff\xfe\x00", "latencydoctor.yaml"),
        (b"a: &a [*a]\n", "latencydoctor.yaml:1"),
        (b"- a\n- b\n", "latencydoctor.yaml:1"),
        (b"selector: !!python/object/apply:os.system ['true']\n", "latencydoctor.yaml:1"),
        (b"thresholds: {queue_time_high_ms: [/INST]}\n", "latencydoctor.yaml:1"),
        (b"{" * 5000, "latencydoctor.yaml"),
    ],
    ids=["cut off", "binary", "alias", "list", "tag", "markup", "deep"],
)
def test_a_configuration_that_is_none(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "latencydoctor.yaml").write_bytes(text)
    ran = here("diagnose", cwd=tmp_path)
    assert (ran.code, ran.out) == (1, ""), ran
    assert ran.errors[0].startswith(message), ran
    clean(ran)


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    refused(here("diagnose", "--config", "none.yaml", cwd=tmp_path), 1, "none.yaml", "--config")
    refused(run("diagnose", cwd=tmp_path, LATENCYDOCTOR_CONFIG="gone.yaml"), 1, "gone.yaml", "$LATENCYDOCTOR_CONFIG")
    (tmp_path / "folder.yaml").mkdir()
    refused(here("diagnose", "--config", "folder.yaml", cwd=tmp_path), 1, "folder.yaml", "--config")


def test_a_threshold_that_no_playbook_knows(tmp_path: Path) -> None:
    (tmp_path / "latencydoctor.yaml").write_text("thresholds: {queue_time_hihg_ms: 5}\n")
    ran = here("diagnose", *URL, cwd=tmp_path)
    assert (ran.code, ran.out) == (1, ""), ran
    assert "queue_time_hihg_ms" in ran.errors[0]


@pytest.fixture
def content(tmp_path: Path) -> Path:
    origin = locate()
    folder = tmp_path / "content"
    shutil.copytree(origin.rules, folder / "rules")
    shutil.copytree(origin.playbooks, folder / "playbooks")
    return folder


def test_broken_content_is_told_at_once_with_its_lines(content: Path) -> None:
    rule = content / "rules" / "logs" / "memory" / "gpu_oom.yaml"
    rule.write_text(rule.read_text().replace("level: CRITICAL", "level: '[/INST]'"))
    playbook = content / "playbooks" / "latency-spike.yaml"
    playbook.write_text(playbook.read_text().replace("start: settings_broken", "start: nowhere"))
    before = digest(content)
    for arguments in (("diagnose", *URL), ("rules", "check")):
        ran = run(*arguments, "--content", content, cwd=content)
        assert (ran.code, ran.out) == (1, ""), ran
        assert any(re.match(r".*gpu_oom\.yaml:\d+:\d+: .*\[/INST\]", error) for error in ran.errors), ran
        assert any(re.match(r".*latency-spike\.yaml:\d+", error) for error in ran.errors), ran
        clean(ran)
    assert digest(content) == before


def test_content_that_is_not_there(tmp_path: Path) -> None:
    refused(here("diagnose", *URL, "--content", tmp_path, cwd=tmp_path), 1, "there is no folder rules/", "--content")
