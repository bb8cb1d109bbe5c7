"""`latencydoctor forecast` as a user meets it: quick answers, exit codes, and what is missing by name."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

from tests.e2e.conftest import Past
from tests.e2e.program import command, environment, here

GOOD = (
    "--set=inference.batching.max_batch_size=32",
    "--set=inference.batching.preferred_batch_size=16",
    "--set=inference.batching.timeout_micros=100000",
)
SESSIONS = ("--sessions=120000", "--requests-per-session-per-minute=0.5", "--times=5", "--slo=1s")


def test_a_capacity_question_is_answered_in_under_two_seconds(tmp_path: Path) -> None:
    """Of processor time, start-up included: the wall clock also counts what else this machine does."""
    asked = command("forecast", "--service-time", "20ms+1ms", *GOOD, *SESSIONS, "--format", "json")
    untraced = {key: value for key, value in environment({}).items() if not key.startswith("COV")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(asked, cwd=tmp_path, env=untraced, capture_output=True, text=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["sizing"][0]["replicas"] == 10
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0


def test_a_past_incident_is_forecast_with_other_settings(past: Past, tmp_path: Path) -> None:
    """From rates alone: this Prometheus knows no executions by batch size."""
    ran = here("forecast", *past.arguments, *GOOD, "--rate", "310", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "SIMULATED ACCELERATOR" in ran.out
    assert "calibrated from the incident's own metrics" in ran.out
    assert "Times come from rates" in ran.out


def test_without_the_settings_in_effect_all_of_them_are_asked_for(past: Past, tmp_path: Path) -> None:
    ran = here("forecast", *past.arguments, "--rate", "310", cwd=tmp_path)
    assert ran.code == 4
    assert "config_max_batch_size" in ran.errors[0]
    assert "--triton" in ran.hint


def test_without_a_source_there_is_nothing_to_forecast_from(tmp_path: Path) -> None:
    ran = here("forecast", *GOOD, "--rate", "310", cwd=tmp_path)
    assert ran.code == 4
    assert ran.hint


def test_a_setting_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    assert here("forecast", "--service-time=20ms+1ms", "--set=inference.modle=x", "--rate=1", cwd=tmp_path).code == 2
