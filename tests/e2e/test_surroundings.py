"""What the program meets around it: readers that leave, full disks, closed streams, bugs of its own."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from latencydoctor.cli import wiring
from tests.contract.strangers import Answer, Asked, marked, names_json, prometheus_json, stranger
from tests.e2e.program import Ran, clean, command, environment, finish, here, run, start

SECRET = "s3cr3t-t0ken-value"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_leaves_changes_neither_exit_code_nor_stderr(form: str, bundle: Path, tmp_path: Path) -> None:
    process = start("diagnose", "--bundle", bundle, "--format", form, "--verbose", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (3, "")


def test_head(bundle: Path, tmp_path: Path) -> None:
    with start("diagnose", "--bundle", bundle, cwd=tmp_path) as process:
        head = subprocess.run(["head", "-n", "1"], stdin=process.stdout, capture_output=True, text=True, timeout=60)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert head.stdout.startswith("INCIDENT  p99 is ")
    assert process.returncode == 3


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("rules", "list")], ids=" ".join)
def test_a_full_disk_behind_stdout(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*arguments), cwd=tmp_path, env=environment({}), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert re.fullmatch(r"error: .*(No space left on device|no room).*\nhint: Make room.*\n", done.stderr)


def test_closed_streams(tmp_path: Path) -> None:
    """As under a careless cron: nothing to write to, nothing to read from, and still the right exit code."""
    closing = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command("runs", "--target", str(tmp_path))]
    assert subprocess.run(closing, cwd=tmp_path, env=environment({}), timeout=60).returncode == 0
    wrong = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command("runs", "--target", str(tmp_path / "none"))]
    assert subprocess.run(wrong, cwd=tmp_path, env=environment({}), timeout=60).returncode == 1


def boom(request: wiring.DiagnoseRequest, *_: object, **__: object) -> wiring.Diagnosed:
    raise RuntimeError(f"cannot [/INST] {request.prometheus} password={SECRET}")


def test_a_bug_ends_in_one_line_and_a_file_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "diagnose", boom)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("API_TOKEN", SECRET)
    ran = here("diagnose", "--prometheus", f"http://ann:{SECRET}@localhost", cwd=tmp_path)
    assert (ran.code, ran.out) == (70, "")
    told = re.fullmatch(
        r"error: unexpected RuntimeError; this is a bug in latencydoctor\n"
        r"hint: details are in (\S+); nothing of them was sent anywhere\n",
        ran.err,
    )
    assert told, ran
    (file,) = tmp_path.iterdir()
    assert told[1] == str(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    details = file.read_text()
    assert "Traceback (most recent call last)" in details
    assert "RuntimeError: cannot [/INST] http://[redacted]@localhost" in details
    assert SECRET not in details


def test_a_bug_where_nothing_can_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "diagnose", boom)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    ran = here("diagnose", cwd=tmp_path)
    assert (ran.code, ran.out) == (70, "")
    assert ran.err.startswith("error: unexpected RuntimeError; this is a bug in latencydoctor\nhint: ")
    assert str(tmp_path / "none") in ran.err
    clean(ran)


HOSTILE = "[/INST][bold red]m`|<b>\x1b[31m\x07\u202e"
SHOWN = "[/INST][bold red]m`|<b>"


def speaking(asked: Asked) -> None:
    """A Prometheus whose one service has a hostile name and nothing to tell."""
    if "/label/" in asked.path:
        asked.reply(names_json("nv_inference_request_success"))
    elif "query_range" in asked.path:
        asked.reply(prometheus_json([], "matrix"))
    else:
        asked.reply(prometheus_json(marked(asked, [{"metric": {"model": HOSTILE}, "value": [time.time(), "1"]}])))


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_hostile_model_name(form: str, tmp_path: Path) -> None:
    answer: Answer = speaking
    with stranger(answer) as server:
        ran = here("diagnose", "--prometheus", server.url, "--format", form, "--verbose", cwd=tmp_path)
    assert ran.code == 4, ran
    if form == "json":
        # Data keeps the name as it is, so that it can be asked for again; JSON has its own escapes.
        assert json.loads(ran.out)["selection"]["model"] == HOSTILE
        return
    clean(ran)
    assert (SHOWN if form == "text" else r"# Diagnosis of \[/INST\]\[bold red\]m\`\|\<b\>") in ran.out


def planted(folder: Path) -> None:
    """Secrets where people leave them: in the configuration's URL and in log lines."""
    (folder / "app.log").write_text(
        f"2026-11-30T07:20:24Z ERROR CUDA out of memory password={SECRET} Authorization: Bearer {SECRET}\n"
        f"2026-11-30T07:20:25Z ERROR CUDA out of memory https://ann:{SECRET}@registry/x\n"
    )


def echoing(asked: Asked) -> None:
    """A server that repeats what it was sent."""
    authorization = asked.header("authorization")
    assert authorization
    asked.reply(json.dumps({"error": f"refused: Authorization: {authorization}"}).encode(), "403 Forbidden")


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose",),
        ("diagnose", "--format", "json", "--log", "app.log"),
        ("config", "check"),
        ("config", "check", "--format", "json"),
        ("logs", "app.log"),
        ("logs", "app.log", "--format", "json"),
    ],
    ids=" ".join,
)
def test_planted_secrets_are_nowhere(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(tmp_path)
    monkeypatch.setenv("PROM_TOKEN", SECRET)
    with stranger(echoing) as server:
        url = server.url.replace("http://", f"http://ann:{SECRET}@")
        for source in (
            f"{{url: {server.url}, bearer_env: PROM_TOKEN}}",
            f"{{url: '{url}'}}",
            f"{{url: '{url}/?token={SECRET}'}}",
            f"{{url: 'ann:{SECRET}@localhost'}}",
        ):
            (tmp_path / "latencydoctor.yaml").write_text(f"sources: {{prometheus: {source}}}\n")
            ran = here(*words, cwd=tmp_path)
            assert ran.out + ran.err
            assert without_secret(ran.out + ran.err)


def test_a_stored_diagnosis_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(tmp_path)
    monkeypatch.setenv("API_TOKEN", SECRET)
    with stranger(speaking) as server:
        url = server.url.replace("http://", f"http://ann:{SECRET}@")
        for name in ("it.json", "report.md"):
            arguments = ("--save", name) if name == "it.json" else ("--format", "markdown", "-o", name)
            ran = here("diagnose", "--prometheus", url, "--log", "app.log", *arguments, cwd=tmp_path)
            assert ran.code == 4, ran
            assert without_secret((tmp_path / name).read_text() + ran.out + ran.err)


def without_secret(text: str) -> bool:
    import base64

    encoded = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    return SECRET not in text and encoded not in text


def test_a_run_that_is_told_to_end_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    process = start("diagnose", "--prometheus", "http://127.0.0.1:1", cwd=tmp_path)
    process.terminate()
    ran: Ran = finish(process)
    assert ran.code in (-15, 143, 4)
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []
    assert run("--version", cwd=tmp_path).code == 0
