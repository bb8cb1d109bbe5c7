"""`--save` and `--bundle`: the same bytes anywhere, and files that are no bundles or cannot be written."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.e2e.conftest import Past
from tests.e2e.program import Ran, clean, digest, finish, here, refused, run, start

CHILDREN, ALTOGETHER = 8, 20
SURROUNDINGS = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "de_DE.UTF-8"},
    {"PYTHONHASHSEED": "random", "TZ": "Pacific/Apia", "LC_ALL": "tr_TR.UTF-8", "COLUMNS": "20"},
)


@pytest.fixture(scope="module")
def solved(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same incident with Triton's settings, which decide its cause and which the made history lacks."""
    data = json.loads(gzip.decompress(bundle.read_bytes()))
    proof = {"source": "triton", "query": "model configuration of faq-encoder"}
    for signal, value in (("config_max_batch_size", 8.0), ("config_dynamic_batching", 1.0)):
        data["collected"]["facts"].append(
            {"signal": signal, "unit": "", "value": value, "proof": proof, "simulated": False}
        )
    path = tmp_path_factory.mktemp("solved") / "incident.json"
    path.write_text(json.dumps(data))
    return path


def test_a_replay_is_the_same_byte_for_byte_everywhere(solved: Path, tmp_path: Path) -> None:
    answers: set[str] = set()
    for number in range(0, CHILDREN, 2):
        pair = []
        for each in (number, number + 1):
            folder = tmp_path / str(each)
            folder.mkdir()
            surroundings = SURROUNDINGS[each % len(SURROUNDINGS)]
            pair.append(start("diagnose", "--bundle", solved, "--format", "json", cwd=folder, **surroundings))
        for ran in map(finish, pair):
            assert (ran.code, ran.err) == (3, ""), ran
            answers.add(ran.out)
    for _ in range(CHILDREN, ALTOGETHER):
        answers.add(here("diagnose", "--bundle", solved, "--format", "json", cwd=tmp_path).out)
    assert len(answers) == 1
    told = json.loads(answers.pop())
    assert told["cause"]["id"] == "batching-failed"
    assert str(solved.parent) not in json.dumps(told)


def test_the_live_diagnosis_is_the_one_that_is_replayed(past: Past, bundle: Path, tmp_path: Path) -> None:
    log = bundle.parent / "gateway.log"
    live = here("diagnose", *past.arguments, "--log", log, "--format", "json", cwd=tmp_path)
    replay = here("diagnose", "--bundle", bundle, "--format", "json", cwd=tmp_path)
    assert live == replay


def test_saving_a_replay_gives_the_same_file(bundle: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json.gz"
    ran = here("diagnose", "--bundle", bundle, "--save", again, cwd=tmp_path)
    assert (ran.code, ran.err) == (3, f"saved what was collected to {again}\n")
    assert again.read_bytes() == bundle.read_bytes()


def test_a_named_baseline_is_stored_and_replayed(past: Past, tmp_path: Path) -> None:
    stored = tmp_path / "it.json.gz"
    url, at = ("--prometheus", past.url), ("--at", f"{past.at_s:.0f}")
    # Four minutes back there is nothing but the crowd; the calm ended a minute before that.
    asked = (*url, *at, "--since", "4m", "--baseline", "4m@6m", "--format", "json")
    live = here("diagnose", *asked, "--save", stored, cwd=tmp_path)
    assert live.code == 3
    told = json.loads(live.out)
    assert told["baseline_window"] == {"start_s": past.at_s - 600, "end_s": past.at_s - 360}
    assert here("diagnose", "--bundle", stored, "--format", "json", cwd=tmp_path).out == live.out
    without = here("diagnose", *url, *at, "--since", "4m", "--format", "json", cwd=tmp_path)
    assert json.loads(without.out)["baseline_window"] is None
    refused(
        here("diagnose", "--bundle", stored, "--baseline", "4m@6m", cwd=tmp_path),
        2,
        "--baseline needs a source",
        "bundle",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--prometheus", "http://127.0.0.1:1"),
        ("--metrics-url", "http://127.0.0.1:1/metrics"),
        ("--triton", "127.0.0.1:1"),
        ("--torchserve", "http://127.0.0.1:1"),
        ("--log", "x.log"),
        ("--selector", 'a="b"'),
        ("--model", "another"),
        ("--at", "2026-11-30T07:20:24Z"),
        ("--since", "5m"),
        ("--scrapes", "3"),
        ("--every", "1s"),
        ("--redact-prompts",),
    ],
    ids=lambda words: words[0],
)
def test_an_option_that_a_bundle_cannot_heed_is_not_passed_over(
    arguments: tuple[str, ...], bundle: Path, tmp_path: Path
) -> None:
    ran = here("diagnose", "--bundle", bundle, *arguments, cwd=tmp_path)
    refused(ran, 2, f"{arguments[0]} needs a source to ask", "leave out the one or the other")


def bomb() -> bytes:
    return gzip.compress(b" " * (300 * 1024 * 1024), 1)


def other(bundle: bytes, **fields: object) -> bytes:
    return json.dumps(json.loads(gzip.decompress(bundle)) | fields).encode()


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda good: good[: len(good) // 2], "is cut off or damaged", "--save"),
        (lambda good: gzip.decompress(good)[:-20], "is cut off or is no JSON", "--save"),
        (lambda _: b"", "is cut off or is no JSON", "--save"),
        (lambda _: b"[/INST]", "is cut off or is no JSON", "--save"),
        (lambda _: b'{"a": 1}', "is no bundle of latencydoctor", "--save"),
        (lambda _: b"[" * 100_000, "is cut off or is no JSON", "--save"),
        (lambda good: other(good, schema=99), "has a schema that this release does not know", "release"),
        (lambda good: other(good, collected={"[/INST]": 1}), "[/INST]", "--save"),
        (lambda _: bomb(), "unpacks to more than 256 MiB", "--save"),
    ],
    ids=["cut gzip", "cut JSON", "empty", "markup", "other JSON", "deep", "schema", "unknown field", "bomb"],
)
def test_what_is_no_bundle(make: object, message: str, hint: str, bundle: Path, tmp_path: Path) -> None:
    assert callable(make)
    path = tmp_path / "it.json.gz"
    path.write_bytes(make(bundle.read_bytes()))
    before = digest(tmp_path)
    refused(here("diagnose", "--bundle", path, cwd=tmp_path), 1, message, hint)
    assert digest(tmp_path) == before


def test_a_bundle_that_is_not_there(tmp_path: Path) -> None:
    refused(
        run("diagnose", "--bundle", "none.json.gz", cwd=tmp_path),
        1,
        "none.json.gz: the bundle cannot be read: No",
        None,
    )
    refused(here("diagnose", "--bundle", tmp_path, cwd=tmp_path), 1, "the bundle cannot be read: Is a directory", None)


FULL = Path("/dev/full")
NOWHERE = Path("/proc/nothing/here.json")


@pytest.mark.parametrize("option", ["--save", "--output", "--series"])
def test_a_file_that_cannot_be_written(option: str, bundle: Path, tmp_path: Path) -> None:
    """Said before anything is asked, which takes its time."""
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "none" / "x", tmp_path / "file" / "x", tmp_path, NOWHERE):
        ran = here("diagnose", "--bundle", bundle, option, path, cwd=tmp_path)
        refused(ran, 1, f"cannot write {path}: ", f"Name another file with {option}.")
    silent = here("diagnose", "--prometheus", "http://127.0.0.1:1", option, tmp_path / "none" / "x", cwd=tmp_path)
    refused(silent, 1, "cannot write", option)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_full_disk(bundle: Path, tmp_path: Path) -> None:
    """What cannot be stored is said, and nothing half written is left behind."""
    for arguments in (("--output", FULL), ("--format", "json", "-o", FULL)):
        ran = here("diagnose", "--bundle", bundle, *arguments, cwd=tmp_path)
        refused(ran, 1, f"cannot write {FULL}: {os.strerror(errno.ENOSPC)}")


def told(bundle: Path, tmp_path: Path, *arguments: str, **environment: str) -> Ran:
    ran = run("diagnose", "--bundle", bundle, *arguments, cwd=tmp_path, **environment)
    assert (ran.code, ran.err) == (3, ""), ran
    clean(ran)
    return ran


def test_hostile_lines_stay_what_they_are(bundle: Path, tmp_path: Path) -> None:
    """Markup is shown, not obeyed; control and direction characters are gone; Markdown sees no link in it."""
    line = "[/INST] [bold red]CUDA out of memory[/] red  $(reboot) <b>|`x`|</b>"
    assert line in told(bundle, tmp_path, COLUMNS="300").out
    markdown = here("diagnose", "--bundle", bundle, "--format", "markdown", cwd=tmp_path)
    # In a table cell and a code span, where a bar or a backtick could break out.
    rendered = MarkdownIt("commonmark").enable("table").parse(markdown.out)
    spans = [part.content for block in rendered for part in block.children or () if part.type == "code_inline"]
    assert any(span.endswith(line) for span in spans), spans
    clean(markdown)
    data = json.loads(here("diagnose", "--bundle", bundle, "--format", "json", cwd=tmp_path).out)
    assert line in data["log_events"][0]["line"]


@pytest.mark.parametrize(
    "environment",
    [{}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "10"}],
    ids=str,
)
def test_no_escape_codes_when_nobody_looks(environment: dict[str, str], bundle: Path, tmp_path: Path) -> None:
    ran = told(bundle, tmp_path, **environment)
    assert "\x1b" not in ran.out
    assert ran.out.startswith("INCIDENT")


def test_the_report_in_a_file_is_the_one_on_the_screen(bundle: Path, tmp_path: Path) -> None:
    shown = here("diagnose", "--bundle", bundle, cwd=tmp_path)
    stored = here("diagnose", "--bundle", bundle, "-o", tmp_path / "report.txt", cwd=tmp_path)
    assert (stored.code, stored.out, stored.err) == (3, "", "")
    assert (tmp_path / "report.txt").read_text() == shown.out
    assert here("diagnose", "--bundle", bundle, "--exit-zero", cwd=tmp_path) == Ran(0, shown.out, "")
