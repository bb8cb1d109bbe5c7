"""The NVML source through the real binding, over a small driver library compiled here, and without any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

READ = """
import json
from latencydoctor.model.evidence import Selection
from latencydoctor.sources.nvml import NvmlDevices
found = NvmlDevices().read(Selection(""))
print(json.dumps([
    {fact.signal: fact.value for fact in found.facts},
    {gap.signal: [gap.reason, gap.detail] for gap in found.gaps},
    [record.outcome for record in found.queries],
]))
"""
SIGNALS = {
    "accelerator_busy_ratio",
    "sm_activity_ratio",
    "accelerator_memory_used_bytes",
    "accelerator_memory_total_bytes",
    "accelerator_clock_ratio",
    "accelerator_throttled_ratio",
    "nvml_temperature_c",
    "nvml_power_w",
    "nvml_power_limit_w",
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a libnvidia-ml.so.1."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for NVIDIA's library with")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("fake_nvml.c")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", target, source], check=True, timeout=60)
    return folder


def read(folder: Path, **settings: str) -> tuple[dict[str, float], dict[str, list[str]], list[str]]:
    """Facts, gaps and outcomes. A process of its own: the loader reads LD_LIBRARY_PATH only when it starts."""
    environment = {**os.environ, **settings, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", READ], env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    facts, gaps, outcomes = json.loads(done.stdout)
    return facts, gaps, outcomes


def test_every_value_is_read_in_its_unit(driver: Path) -> None:
    facts, gaps, outcomes = read(driver)
    assert gaps == {}
    assert facts == {
        "accelerator_busy_ratio": pytest.approx(0.2),
        "sm_activity_ratio": pytest.approx(0.35),
        "accelerator_memory_used_bytes": 400.0,
        "accelerator_memory_total_bytes": 1000.0,
        "accelerator_clock_ratio": pytest.approx(1500 / 1800),
        # It runs at its power cap, which is no fault.
        "accelerator_throttled_ratio": 0.0,
        "nvml_temperature_c": 61.0,
        "nvml_power_w": 250.5,
        "nvml_power_limit_w": 700.0,
    }
    assert outcomes == ["ok"] * 9


def test_several_gpus_become_one_value(driver: Path) -> None:
    facts, _, _ = read(driver, FAKE_GPUS="2")
    assert facts["accelerator_busy_ratio"] == pytest.approx(0.3)
    assert facts["accelerator_memory_used_bytes"] == 800.0
    # The slowest and the hottest count.
    assert facts["accelerator_clock_ratio"] == pytest.approx(0.5)
    assert facts["accelerator_throttled_ratio"] == 1.0


@pytest.mark.parametrize(
    ("call", "code", "signal", "reason"),
    [
        ("utilization", 3, "accelerator_busy_ratio", "not supported"),
        ("reasons", 4, "accelerator_throttled_ratio", "not supported"),
        ("gpm", 13, "sm_activity_ratio", "not supported"),
        ("gpm_unsupported", 1, "sm_activity_ratio", "not supported"),
        ("gpm_value", 3, "sm_activity_ratio", "not supported"),
        ("zero_clock", 1, "accelerator_clock_ratio", "not supported"),
        ("power", 15, "nvml_power_w", "bad answer"),
        ("gpm_sample", 999, "sm_activity_ratio", "bad answer"),
    ],
)
def test_one_value_that_fails_does_not_hide_the_others(
    driver: Path, call: str, code: int, signal: str, reason: str
) -> None:
    facts, gaps, outcomes = read(driver, FAKE_FAIL=f"{call}={code}")
    assert set(gaps) == {signal}
    assert gaps[signal][0] == reason
    assert set(facts) == SIGNALS - {signal}
    assert outcomes.count(reason) == 1


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({"FAKE_FAIL": "init=9"}, "NVML is not available"),
        ({"FAKE_FAIL": "count=999"}, "the GPUs cannot be listed"),
        ({"FAKE_GPUS": "0"}, "the driver sees no GPU"),
    ],
)
def test_a_driver_without_gpus_is_a_gap_for_each_value(driver: Path, settings: dict[str, str], detail: str) -> None:
    facts, gaps, _ = read(driver, **settings)
    assert facts == {}
    assert set(gaps) == SIGNALS
    assert all(found[0] == "not supported" and detail in found[1] for found in gaps.values())


def test_a_library_that_is_none_is_a_gap(tmp_path: Path) -> None:
    # Also on a machine with a real driver: the loader takes this one and fails.
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    facts, gaps, _ = read(tmp_path)
    assert facts == {}
    assert set(gaps) == SIGNALS
