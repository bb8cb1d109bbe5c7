"""`scripts/gpu_check.py` without a GPU, and its pieces over small driver libraries that are compiled here.

The kernels' source is compiled for the processor and its answers are checked; that their PTX is well formed, NVIDIA's
assembler says where it is installed. What only a card can show stays open here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latencydoctor.stack import profile as profiles

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "gpu_check.py"
COMPILED = (("cc", "fake_nvml.c", "libnvidia-ml.so.1"), ("c++", "fake_cuda.cpp", "libcuda.so.1"))

# One piece as the script runs it, over a model that a processor can keep up with.
SMALL = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/src"]
{missing}
from scripts import gpu_check
from scripts.gpu import curve, int8, pieces, workloads
curve.BATCHES, curve.EXECUTIONS, curve.WARM_UPS = (1, 2, 4), 3, 1
int8.PLAIN_SHAPE, int8.REPEATS = (40, 24, 64), 2
pieces.LOAD_S, pieces.LOAD_BATCH = 0.2, 1
workloads.LAYERS = 1
workloads.DriverEncoder.__init__.__defaults__ = (None, 1)
from pathlib import Path
print(gpu_check.one({piece!r}, Path({out!r})))
"""
NO_BINDING = "sys.modules['pynvml'] = None"
SMI = """#!/bin/sh
# The card of the fake libraries; $FAKE_SMI is put before, so that a field can say something else.
IFS=,
row=
for field in ${1#--query-gpu=}; do
    case "$FAKE_SMI" in "$field="*) value=${FAKE_SMI#*=} ;; *)
        case $field in
        driver_version) value=580.1 ;; clocks.max.sm) value=1800 ;; utilization.gpu) value=95 ;; memory.used) value=0 ;;
        memory.reserved) value=0 ;; memory.total) value=0 ;; temperature.gpu) value=61 ;; power.draw) value=250.1 ;;
        clocks_event_reasons.active) value=0x0000000000000004 ;; *) exit 2 ;;
        esac ;;
    esac
    row="$row${row:+, }$value"
done
echo "$row"
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a driver's libraries and nvidia-smi."""
    folder = tmp_path_factory.mktemp("machine")
    for compiler, source, library in COMPILED:
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler} to build the stand-in for NVIDIA's libraries with")
        flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-I", str(ROOT / "scripts" / "gpu")]
        source_file = Path(__file__).with_name(source)
        subprocess.run([compiler, *flags, "-o", folder / library, source_file], check=True, timeout=60)
    smi = folder / "nvidia-smi"
    smi.write_text(SMI)
    smi.chmod(0o755)
    return folder


def environment(machine: Path, settings: dict[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(machine), os.environ["PATH"]])
    return {**os.environ, "FAKE_BUSY": "97", **settings, "LD_LIBRARY_PATH": str(machine), "PATH": path}


def piece(name: str, machine: Path, out: Path, missing: str = NO_BINDING, **settings: str) -> dict[str, object]:
    """What a piece printed, without PyTorch whatever is installed here."""
    absent = f"sys.modules['torch'] = None; {missing}"
    program = SMALL.format(root=str(ROOT), piece=name, out=str(out), missing=absent)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(machine, settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def figures(found: dict[str, object]) -> dict[str, float]:
    assert isinstance(found["figures"], dict)
    return found["figures"]


def test_without_a_gpu_every_piece_is_skipped_at_once(tmp_path: Path) -> None:
    # A file that is no library, so that this is true on a machine with a driver as well; and nothing of ours installed.
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (tmp_path / library).write_bytes(b"no library")
    bare = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(tmp_path)}
    started = time.monotonic()

    done = subprocess.run([sys.executable, "-S", SCRIPT], env=bare, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 5
    lines = done.stdout.splitlines()
    told = json.loads(lines[-1])
    assert told["ok"] is True
    assert {found["state"] for found in told["pieces"].values()} == {"skipped"}
    assert list(told["pieces"]) == ["card", "nvml", "memory", "throttle", "batches", "int8"]
    assert "no GPU to check: no NVIDIA driver" in lines[-2]
    assert not any(name.suffix == ".yaml" for name in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"FAKE_FAIL": "cuInit=100"}, "CUDA_ERROR_100"), ({"FAKE_FAIL": "none=1"}, "the driver sees no GPU")],
)
def test_a_driver_without_a_card_is_skipped(machine: Path, tmp_path: Path, settings: dict[str, str], why: str) -> None:
    found = piece("card", machine, tmp_path, **settings)

    assert found["state"] == "skipped"
    assert why in str(found["detail"])


def test_the_card_is_named(machine: Path, tmp_path: Path) -> None:
    found = piece("card", machine, tmp_path)

    assert found["state"] == "ok"
    assert found["detail"] == 'Fake "Card" 1'
    assert found["figures"]["driver"] == "580.1"  # type: ignore[index]  # read from JSON


@pytest.mark.parametrize("missing", ["", NO_BINDING], ids=["our source", "ctypes"])
def test_readings_under_load_agree_with_nvidia_smi(machine: Path, tmp_path: Path, missing: str) -> None:
    found = piece("nvml", machine, tmp_path, missing)

    assert found["state"] == "ok", found
    assert ("ctypes" in str(found["detail"])) is bool(missing)
    assert figures(found)["accelerator_busy_ratio"] == pytest.approx(0.97)
    assert figures(found)["accelerator_busy_ratio (nvidia-smi)"] == pytest.approx(0.95)
    assert figures(found)["nvml_power_w"] == pytest.approx(250.5)


@pytest.mark.parametrize("missing", ["", NO_BINDING], ids=["our source", "ctypes"])
@pytest.mark.parametrize(
    ("says", "signal"),
    [
        ("utilization.gpu=50", "accelerator_busy_ratio"),
        ("memory.used=900", "accelerator_memory_used_bytes"),
        ("memory.total=900", "accelerator_memory_total_bytes"),
        ("temperature.gpu=70", "nvml_temperature_c"),
        ("power.draw=400", "nvml_power_w"),
    ],
)
def test_a_reading_that_nvidia_smi_contradicts_fails(
    machine: Path, tmp_path: Path, missing: str, says: str, signal: str
) -> None:
    found = piece("nvml", machine, tmp_path, missing, FAKE_SMI=says)

    assert found["state"] == "failed"
    assert found["detail"] == f"not as nvidia-smi says: {signal}"
    assert signal in figures(found)


def test_a_field_that_nvidia_smi_does_not_give_contradicts_nothing(machine: Path, tmp_path: Path) -> None:
    found = piece("nvml", machine, tmp_path, FAKE_SMI="power.draw=[N/A]")

    assert found["state"] == "ok"
    assert figures(found)["nvml_power_w (nvidia-smi)"] is None


def test_a_load_that_does_not_reach_the_card_fails(machine: Path, tmp_path: Path) -> None:
    found = piece("nvml", machine, tmp_path, FAKE_BUSY="3", FAKE_SMI="utilization.gpu=2")

    assert found["state"] == "failed"
    assert "busy 3% under a load of" in str(found["detail"])


def test_a_load_that_breaks_is_a_failure(machine: Path, tmp_path: Path) -> None:
    found = piece("nvml", machine, tmp_path, FAKE_FAIL="cuCtxSynchronize=700")

    assert found["state"] == "failed"
    assert found["detail"] == "cuCtxSynchronize: CUDA_ERROR_700"


def test_memory_that_is_taken_is_seen(machine: Path, tmp_path: Path) -> None:
    found = piece("memory", machine, tmp_path)

    assert found["state"] == "ok"
    assert figures(found) == {
        "allocated_bytes": 1 << 30,
        "seen_bytes": 1 << 30,
        "seen_after_free_bytes": 0,
    }


def test_memory_that_is_not_seen_fails(machine: Path, tmp_path: Path) -> None:
    found = piece("memory", machine, tmp_path, FAKE_FAIL="hidden=1")

    assert found["state"] == "failed"
    assert figures(found)["seen_bytes"] == 0


def test_reasons_for_low_clocks_agree(machine: Path, tmp_path: Path) -> None:
    found = piece("throttle", machine, tmp_path)

    assert found["state"] == "ok", found
    assert figures(found)["accelerator_power_capped_ratio"] == 1
    assert figures(found)["accelerator_clock_ratio"] == pytest.approx(1500 / 1800)


def test_a_reason_that_nvidia_smi_does_not_name_fails(machine: Path, tmp_path: Path) -> None:
    found = piece("throttle", machine, tmp_path, FAKE_REASONS="0x20")

    assert found["state"] == "failed"
    assert "accelerator_throttled_ratio" in str(found["detail"])
    assert "accelerator_power_capped_ratio" in str(found["detail"])


def test_the_curve_becomes_a_profile(machine: Path, tmp_path: Path) -> None:
    found = piece("batches", machine, tmp_path / "new")

    assert found["state"] == "ok", found
    read = profiles.parse((tmp_path / "new" / "fake-card-1.yaml").read_text())
    measured = figures(found)
    assert read.per_item_ms == pytest.approx(measured["per_item_ms"], rel=1e-3)
    assert measured["median_ms[4]"] > measured["median_ms[1]"] > 0
    assert read.memory_total_bytes == 8 << 30
    # What the FP32 weights of one layer take, and the two buffers of the largest batch.
    assert read.memory_model_bytes == 4 * 384 * (3 * 384 + 384 + 2 * 1536)
    assert read.memory_per_item_bytes == 2 * 4 * 16 * 1536
    assert "driver 580.1" in read.origin
    assert read.clock_mhz == 1800


def test_int8_and_fp32_are_compared_and_their_answers_checked(machine: Path, tmp_path: Path) -> None:
    found = piece("int8", machine, tmp_path)

    assert found["state"] == "ok", found
    assert 0 < figures(found)["int8_error_ratio[40x24x64]"] < 0.02
    assert figures(found)["fp32_ms[40x24x64]"] > 0
    assert figures(found)["int8_ms[40x24x64]"] > 0


def test_a_card_that_computes_wrongly_fails(machine: Path, tmp_path: Path) -> None:
    found = piece("int8", machine, tmp_path, FAKE_FAIL="wrong=1")

    assert found["state"] == "failed"
    assert "is right" in str(found["detail"])


def test_a_card_that_is_too_old_is_skipped(machine: Path, tmp_path: Path) -> None:
    found = piece("int8", machine, tmp_path, FAKE_CAPABILITY="61")

    assert found["state"] == "skipped"
    assert "compute capability 6.1 is below 7.5" in str(found["detail"])


def test_a_piece_that_crashes_takes_only_itself_along(machine: Path, tmp_path: Path) -> None:
    # nvidia-smi is missing: its pieces are skipped, and a call that fails everywhere fails the others.
    settings = {"FAKE_FAIL": "cuDevicePrimaryCtxRetain=2"}
    told = environment(machine, settings) | {"PATH": "/usr/bin:/bin", "PYTHONPATH": ""}

    done = subprocess.run(
        [sys.executable, SCRIPT, "--out", tmp_path], env=told, capture_output=True, text=True, timeout=120, check=False
    )

    states = {name: found["state"] for name, found in json.loads(done.stdout.splitlines()[-1])["pieces"].items()}
    assert done.returncode == 1
    assert states["card"] == "ok"
    assert states["int8"] == "failed"
    assert "cuDevicePrimaryCtxRetain: CUDA_ERROR_2" in done.stdout


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NVIDIA's assembler is not on PATH")
@pytest.mark.parametrize("card", ["sm_75", "sm_90", "sm_120"])
def test_the_kernels_can_be_assembled(card: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["ptxas", f"-arch={card}", ROOT / "scripts/gpu/kernels.ptx", "-o", tmp_path / "out"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr


def test_the_parts_of_the_ptx_are_those_of_the_source() -> None:
    # Names and numbers of parameters; what is between them the assembler and the processor's test look at.
    source = (ROOT / "scripts/gpu/kernels.cu").read_text()
    compiled = (ROOT / "scripts/gpu/kernels.ptx").read_text()
    for name in ("product_fp32", "product_int8"):
        assert f"__global__ void {name}(" in source
        assert compiled.count(f".param .u64 {name}_param_") == 3
        assert compiled.count(f".param .u32 {name}_param_") == 3
    assert "dp4a.s32.s32" in compiled
