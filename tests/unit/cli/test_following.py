"""The next command, complete enough to be pasted."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from latencydoctor.cli.following import after_diagnosis, of_change
from latencydoctor.cli.sources_wiring import DiagnoseRequest

PLAN = "latencydoctor plan batch-floor -o plan.json"
CHECK = "latencydoctor config check"
SAVE = "latencydoctor diagnose --save incident.json.gz"
BUNDLE = Path("a b/incident.json.gz")


@pytest.mark.parametrize(
    ("command", "request_", "saved", "verbose", "expected"),
    [
        ("", DiagnoseRequest(prometheus="http://p"), None, False, ""),
        (PLAN, DiagnoseRequest(), None, False, PLAN),
        (
            PLAN,
            DiagnoseRequest(config=Path("x.yaml"), prometheus="http://p:9090", selector='ns="a"', model="m"),
            None,
            False,
            f"{PLAN} --config x.yaml --prometheus http://p:9090 --selector 'ns=\"a\"' --model m",
        ),
        (PLAN, DiagnoseRequest(bundle=BUNDLE), None, False, f"{PLAN} --bundle 'a b/incident.json.gz'"),
        (
            CHECK,
            DiagnoseRequest(metrics_urls=("http://t/metrics",), triton="t:8001", logs=("my logs",)),
            None,
            False,
            f"{CHECK} --metrics-url http://t/metrics --triton t:8001 --log 'my logs'",
        ),
        (CHECK, DiagnoseRequest(bundle=BUNDLE), None, False, f"latencydoctor diagnose --bundle '{BUNDLE}' --verbose"),
        (CHECK, DiagnoseRequest(bundle=BUNDLE), None, True, ""),
        (
            SAVE,
            DiagnoseRequest(prometheus="http://p"),
            BUNDLE,
            True,
            f"latencydoctor diagnose --bundle '{BUNDLE}' --verbose",
        ),
        (
            SAVE,
            DiagnoseRequest(prometheus="http://p", at="17", since="10m", model="m", redact_prompts=True),
            None,
            False,
            f"{SAVE} --prometheus http://p --model m --at 17 --since 10m --redact-prompts",
        ),
    ],
)
def test_the_options_that_named_the_sources_are_named_again(
    command: str, request_: DiagnoseRequest, saved: Path | None, verbose: bool, expected: str
) -> None:
    found = after_diagnosis(command, request_, saved=saved, verbose=verbose)
    assert found == expected
    assert shlex.split(found) == shlex.split(expected)


def test_credentials_in_an_address_are_not_shown_again() -> None:
    request = DiagnoseRequest(prometheus="http://me:secret@p:9090")
    for command in (PLAN, CHECK, SAVE):
        shown = after_diagnosis(command, request, saved=None, verbose=False)
        assert "secret" not in shown
        assert "http://p:9090" in shown


def test_apply_and_rollback_are_told_configuration_target_and_where_to_verify() -> None:
    request = DiagnoseRequest(config=Path("x.yaml"), prometheus="http://p", bundle=BUNDLE)
    assert (
        of_change(request, "triton:/m@t:8001/a b")
        == " --config x.yaml --target 'triton:/m@t:8001/a b' --prometheus http://p"
    )
    assert of_change(DiagnoseRequest(), "") == ""
