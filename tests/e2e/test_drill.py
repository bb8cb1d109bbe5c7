"""The whole incident with the installed program on a real stack: short, but every part is the real part."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack import host, processes
from latencydoctor.stack.layout import Layout
from tests.e2e.program import command, environment, run, start

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _needs_the_stack() -> None:
    try:
        host.refuse_unsupported(host.this_host())
    except KnownError as error:
        pytest.skip(str(error))


def nothing_left(state: Path) -> None:
    layout = Layout(state)
    assert processes.members(layout.identity) == ()
    assert processes.shared_memory(layout.shm_prefix) == ()


def test_batching_failure_from_the_page_to_the_verified_fix(tmp_path: Path) -> None:
    state, report, bundle = tmp_path / "state", tmp_path / "report.md", tmp_path / "incident.json.gz"
    drill = command("drill", "flash-crowd", "--quick", "--state", state, "--report", report, "--save", bundle)
    ran = subprocess.run(drill, capture_output=True, text=True, timeout=240, env=environment({}))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures = json.loads(ran.stdout.splitlines()[-1])
    assert figures["cause"] == "batching-failed"
    assert figures["ratio"] >= 5
    assert figures["failed_after"] == 0
    assert figures["alert_to_verified_s"] <= 120
    assert 0.08 <= figures["hit_ratio"] <= 0.17
    assert figures["accelerator"] == "sim:small"
    assert "SIMULATED ACCELERATOR" in ran.stdout
    assert "+    max_batch_size: 32" in ran.stderr, "the dry run shows the diff"
    assert "\x1b" not in ran.stdout + ran.stderr
    text = report.read_text()
    for part in ("Simulated accelerator", "Batching has failed", "## Timeline", "## Verification", "keep"):
        assert part in text, part
    nothing_left(state)
    _the_bundle_tells_the_same_elsewhere(bundle, tmp_path)


def _the_bundle_tells_the_same_elsewhere(bundle: Path, folder: Path) -> None:
    replay = ("diagnose", "--bundle", bundle, "--format", "json")
    answers = (run(*replay, cwd=folder), run(*replay, cwd=Path("/"), TZ="Asia/Tokyo", PYTHONHASHSEED="7", LC_ALL="C"))
    assert [answer.code for answer in answers] == [3, 3]
    assert answers[0].out == answers[1].out
    assert json.loads(answers[0].out)["cause"]["id"] == "batching-failed"


def test_a_device_that_lowers_its_clock_under_the_crowd_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    drill = command("drill", "flash-crowd", "--fault", "throttled", "--quick", "--state", state)
    ran = subprocess.run(drill, capture_output=True, text=True, timeout=240, env=environment({}))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "the device's clock falls from 1500 to 400 MHz" in ran.stdout
    figures = json.loads(ran.stdout.splitlines()[-1])
    assert figures["cause"] in ("accelerator-throttled", "thermal-throttling", "power-capping")
    assert figures["failed_after"] is None, "there is nothing to change, so nothing was"
    nothing_left(state)


def test_ctrl_c_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    state = tmp_path / "state"
    process = start("drill", "flash-crowd", "--quick", "--state", state, cwd=tmp_path)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("calm"):
                break
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _out, _err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    nothing_left(state)
