"""The NVML source through the real binding, over a small driver library compiled here, and without any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
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
    "accelerator_power_capped_ratio",
    "accelerator_hw_slowdown_ratio",
    "nvml_ecc_uncorrected_errors",
    "nvml_processes",
    "nvml_nvlinks_down",
    "nvml_nvlink_errors",
    "nvml_mig_gpus",
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
        "accelerator_power_capped_ratio": 1.0,
        "accelerator_hw_slowdown_ratio": 0.0,
        "nvml_temperature_c": 61.0,
        "nvml_power_w": 250.5,
        "nvml_power_limit_w": 700.0,
        "nvml_ecc_uncorrected_errors": 2.0,
        "nvml_processes": 3.0,
        "nvml_nvlinks_down": 0.0,
        # Four links with four kinds of error each.
        "nvml_nvlink_errors": 16.0,
        "nvml_mig_gpus": 0.0,
    }
    assert outcomes == ["ok"] * 16


def test_several_gpus_become_one_value(driver: Path) -> None:
    facts, _, _ = read(driver, FAKE_GPUS="2")
    assert facts["accelerator_busy_ratio"] == pytest.approx(0.3)
    assert facts["accelerator_memory_used_bytes"] == 800.0
    # The slowest and the hottest count.
    assert facts["accelerator_clock_ratio"] == pytest.approx(0.5)
    assert facts["accelerator_throttled_ratio"] == 1.0

    assert facts["nvml_ecc_uncorrected_errors"] == 6.0
    assert facts["nvml_processes"] == 6.0


@pytest.mark.parametrize(
    ("reasons", "hot", "capped", "braked"),
    [("0x1", 0, 0, 0), ("0x20", 1, 0, 0), ("0x44", 1, 1, 0), ("0x8", 0, 0, 1), ("0x80", 0, 0, 1), ("0x48", 1, 0, 1)],
)
def test_reasons_for_low_clocks_are_told_apart(driver: Path, reasons: str, hot: int, capped: int, braked: int) -> None:
    facts, _, _ = read(driver, FAKE_REASONS=reasons)
    found = [facts[f"accelerator_{name}_ratio"] for name in ("throttled", "power_capped", "hw_slowdown")]
    assert found == [hot, capped, braked]


def test_under_mig_the_whole_gpus_use_is_not_known(driver: Path) -> None:
    facts, gaps, _ = read(driver, FAKE_MIG="1", FAKE_GPUS="2")
    assert facts["nvml_mig_gpus"] == 1.0
    assert set(gaps) == {"accelerator_busy_ratio", "sm_activity_ratio"}
    assert gaps["accelerator_busy_ratio"][0] == "not supported"
    assert "not available under MIG" in gaps["accelerator_busy_ratio"][1]


def test_a_card_that_does_not_know_mig_is_whole(driver: Path) -> None:
    facts, gaps, _ = read(driver, FAKE_FAIL="mig=3")
    assert gaps == {}
    assert facts["nvml_mig_gpus"] == 0.0
    assert facts["accelerator_busy_ratio"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("failure", "absent"),
    [
        ("reasons=4", {f"accelerator_{name}_ratio" for name in ("throttled", "power_capped", "hw_slowdown")}),
        ("mig=15", {"accelerator_busy_ratio", "sm_activity_ratio", "nvml_mig_gpus"}),
        ("memory=999", {"accelerator_memory_used_bytes", "accelerator_memory_total_bytes"}),
        ("links=999", {"nvml_nvlinks_down", "nvml_nvlink_errors"}),
    ],
)
def test_a_call_that_fails_takes_only_its_own_values_with_it(driver: Path, failure: str, absent: set[str]) -> None:
    facts, gaps, _ = read(driver, FAKE_FAIL=failure)
    assert set(gaps) == absent
    assert set(facts) == SIGNALS - absent


@pytest.mark.parametrize(("links", "down", "errors"), [("1111", 0, 16), ("1101", 1, 12), ("1", 0, 4)])
def test_links_that_are_down_are_counted(driver: Path, links: str, down: int, errors: int) -> None:
    facts, _, _ = read(driver, FAKE_LINKS=links)
    assert (facts["nvml_nvlinks_down"], facts["nvml_nvlink_errors"]) == (down, errors)


@pytest.mark.parametrize("links", ["", "0000"])
def test_a_card_without_links_has_none_that_are_down(driver: Path, links: str) -> None:
    _, gaps, _ = read(driver, FAKE_LINKS=links)
    assert set(gaps) == {"nvml_nvlinks_down", "nvml_nvlink_errors"}
    assert {reason for reason, _ in gaps.values()} == {"not supported"}


@pytest.mark.parametrize(
    ("call", "code", "signal", "reason"),
    [
        ("utilization", 3, "accelerator_busy_ratio", "not supported"),
        ("ecc", 3, "nvml_ecc_uncorrected_errors", "not supported"),
        ("processes", 4, "nvml_processes", "not supported"),
        ("link_errors", 3, "nvml_nvlink_errors", "not supported"),
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


@pytest.mark.parametrize("call", ["init", "utilization"])
def test_a_driver_that_hangs_is_a_gap_for_each_value_and_holds_nobody(driver: Path, call: str) -> None:
    """As one does whose GPU has fallen off the bus; neither the answer nor the program's end waits for it."""
    began_s = time.monotonic()
    facts, gaps, outcomes = read(driver, FAKE_HANG=call)
    assert time.monotonic() - began_s < 30
    assert facts == {}
    assert set(gaps) == SIGNALS
    assert set(outcomes) == {"deadline passed"}
    assert all("the driver did not answer within 3 s" in detail for _, detail in gaps.values())
