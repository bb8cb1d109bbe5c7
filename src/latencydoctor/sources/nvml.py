"""Reads the GPUs of this machine through NVML; each value that the driver, the card or MIG does not give is a gap.

Only meaningful where the service runs on this machine: a laptop's own GPU says nothing about a server's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from latencydoctor.model.evidence import Fact, Gap, GapReason, Proof, QueryRecord, Selection
from latencydoctor.model.readings import Readings
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.transport import Deadline

SOURCE = "nvml"
DEADLINE_S = 3.0
"""For all of it: a driver that works takes milliseconds, and GPM_PAUSE_S for each GPU. One whose GPU has fallen off the
bus holds whoever asks it, for minutes or for ever."""

GPM_PAUSE_S = 0.12
"""Two samples must be more than 100 ms apart (NVML's documentation)."""

THERMAL_REASONS = 0x20 | 0x40
POWER_CAP_REASONS = 0x04
HARDWARE_REASONS = 0x08 | 0x80
"""Why clocks are low: heat (software, hardware); the power cap, where a busy GPU often runs and is well; and the board
pulling the brake (overheating, power supply), which halves the clock or worse."""

LINK_ERRORS = (
    pynvml.NVML_NVLINK_ERROR_DL_REPLAY,
    pynvml.NVML_NVLINK_ERROR_DL_RECOVERY,
    pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA,
)

_Device = Any
"""NVML's opaque handle."""


@dataclass(frozen=True, slots=True)
class _Value:
    """One value: how to read it from a device, and how several devices become one.

    `of_whole_gpu` values do not exist, or mean nothing, while a GPU is split by MIG.
    """

    signal: str
    unit: str
    call: str
    read: Callable[[_Device], float]
    combine: Callable[[Sequence[float]], float]
    of_whole_gpu: bool = False


@dataclass(frozen=True, slots=True)
class NvmlDevices:
    """A `FactSource` over the NVIDIA driver's library."""

    deadline_s: float = DEADLINE_S

    def read(self, selection: Selection) -> Readings:
        """One fact for each value, over all GPUs of the machine; a gap for each where the driver stays silent."""
        del selection
        gap = Gap("", GapReason.DEADLINE, f"the driver did not answer within {self.deadline_s:g} s", _NEEDS_DRIVER)
        # In a thread, because nothing interrupts a call into a driver that hangs.
        (found,) = run_side_by_side(lambda ask: ask(), [_read], Deadline.after(self.deadline_s), _nothing(gap))
        return found


_NEEDS_DRIVER = "a driver that answers: does `nvidia-smi` hang as well, and is there an Xid in the kernel's log?"


def _read() -> Readings:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _no_gpu(f"NVML is not available: {error}")
    try:
        devices = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        if not devices:
            return _no_gpu("the driver sees no GPU")
        return _joined([_fact_of(value, devices) for value in _VALUES])
    except pynvml.NVMLError as error:
        return _no_gpu(f"the GPUs cannot be listed: {error}")
    finally:
        pynvml.nvmlShutdown()


def _fact_of(value: _Value, devices: Sequence[_Device]) -> Readings:
    query = f"{value.call} of {len(devices)} GPU{'s' if len(devices) > 1 else ''}"
    try:
        if value.of_whole_gpu and any(_split(device) for device in devices):
            needs = "a DCGM exporter, which measures each MIG instance"
            return _absent(query, Gap(value.signal, GapReason.NOT_SUPPORTED, "not available under MIG", needs))
        number = value.combine([value.read(device) for device in devices])
    except pynvml.NVMLError as error:
        return _absent(query, Gap(value.signal, _reason(error), f"{value.call}: {error}"))
    fact = Fact(value.signal, value.unit, number, Proof(SOURCE, query))
    return Readings(facts=(fact,), queries=(QueryRecord(SOURCE, query, "ok", len(devices)),))


def _absent(query: str, gap: Gap) -> Readings:
    return Readings(gaps=(gap,), queries=(QueryRecord(SOURCE, query, gap.reason.value, 0),))


def _reason(error: pynvml.NVMLError) -> GapReason:
    unsupported = (
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
    )
    return GapReason.NOT_SUPPORTED if error.value in unsupported else GapReason.BAD_ANSWER


def _busy(device: _Device) -> float:
    return float(pynvml.nvmlDeviceGetUtilizationRates(device).gpu) / 100


def _sm_activity(device: _Device) -> float:
    if not pynvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    first, second = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
    try:
        pynvml.nvmlGpmSampleGet(device, first)
        time.sleep(GPM_PAUSE_S)
        pynvml.nvmlGpmSampleGet(device, second)
        return _gpm(first, second)
    finally:
        pynvml.nvmlGpmSampleFree(first)
        pynvml.nvmlGpmSampleFree(second)


def _gpm(first: object, second: object) -> float:
    asked = pynvml.c_nvmlGpmMetricsGet_t()
    asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    asked.numMetrics = 1
    asked.sample1, asked.sample2 = first, second
    asked.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
    answer = pynvml.nvmlGpmMetricsGet(asked).metrics[0]
    if answer.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(answer.nvmlReturn)
    return float(answer.value) / 100


def _memory_used(device: _Device) -> float:
    return float(pynvml.nvmlDeviceGetMemoryInfo(device).used)


def _memory_total(device: _Device) -> float:
    return float(pynvml.nvmlDeviceGetMemoryInfo(device).total)


def _clock_ratio(device: _Device) -> float:
    highest = pynvml.nvmlDeviceGetMaxClockInfo(device, pynvml.NVML_CLOCK_SM)
    if not highest:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return float(pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM)) / float(highest)


def _slowed_by(reasons: int) -> Callable[[_Device], float]:
    return lambda device: float(bool(pynvml.nvmlDeviceGetCurrentClocksEventReasons(device) & reasons))


def _split(device: _Device) -> float:
    """Whether MIG is on; cards and drivers that do not know the question have no MIG."""
    try:
        return float(pynvml.nvmlDeviceGetMigMode(device)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except pynvml.NVMLError as error:
        if _reason(error) is GapReason.NOT_SUPPORTED:
            return 0.0
        raise


def _ecc_errors(device: _Device) -> float:
    kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    return float(pynvml.nvmlDeviceGetTotalEccErrors(device, kind, since))


def _processes(device: _Device) -> float:
    return float(len(pynvml.nvmlDeviceGetComputeRunningProcesses(device)))


def _links(device: _Device) -> dict[int, bool]:
    """Each NVLink that the card has, and whether it is up; one that has none of them up is not connected at all."""
    links: dict[int, bool] = {}
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            links[link] = pynvml.nvmlDeviceGetNvLinkState(device, link) == pynvml.NVML_FEATURE_ENABLED
        except pynvml.NVMLError as error:
            # Numbers beyond the last link are an invalid argument.
            if error.value != pynvml.NVML_ERROR_INVALID_ARGUMENT:
                raise
            break
    if not any(links.values()):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return links


def _links_down(device: _Device) -> float:
    return float(sum(not up for up in _links(device).values()))


def _link_errors(device: _Device) -> float:
    up = [link for link, is_up in _links(device).items() if is_up]
    return float(sum(pynvml.nvmlDeviceGetNvLinkErrorCounter(device, link, kind) for link in up for kind in LINK_ERRORS))


def _temperature(device: _Device) -> float:
    return float(pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU))


def _power(device: _Device) -> float:
    return float(pynvml.nvmlDeviceGetPowerUsage(device)) / 1000


def _power_limit(device: _Device) -> float:
    return float(pynvml.nvmlDeviceGetEnforcedPowerLimit(device)) / 1000


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
_VALUES = (
    _Value("accelerator_busy_ratio", "ratio", "nvmlDeviceGetUtilizationRates", _busy, _mean, of_whole_gpu=True),
    _Value("sm_activity_ratio", "ratio", "nvmlGpmMetricsGet(SM_UTIL)", _sm_activity, _mean, of_whole_gpu=True),
    _Value("accelerator_memory_used_bytes", "bytes", "nvmlDeviceGetMemoryInfo", _memory_used, sum),
    _Value("accelerator_memory_total_bytes", "bytes", "nvmlDeviceGetMemoryInfo", _memory_total, sum),
    _Value("accelerator_clock_ratio", "ratio", "nvmlDeviceGetClockInfo(SM)", _clock_ratio, min),
    _Value("accelerator_throttled_ratio", "ratio", f"{_REASONS}(thermal)", _slowed_by(THERMAL_REASONS), max),
    _Value("accelerator_power_capped_ratio", "ratio", f"{_REASONS}(power cap)", _slowed_by(POWER_CAP_REASONS), max),
    _Value("accelerator_hw_slowdown_ratio", "ratio", f"{_REASONS}(hardware)", _slowed_by(HARDWARE_REASONS), max),
    _Value("nvml_temperature_c", "C", "nvmlDeviceGetTemperature", _temperature, max),
    _Value("nvml_power_w", "W", "nvmlDeviceGetPowerUsage", _power, sum),
    _Value("nvml_power_limit_w", "W", "nvmlDeviceGetEnforcedPowerLimit", _power_limit, sum),
    _Value("nvml_ecc_uncorrected_errors", "errors", "nvmlDeviceGetTotalEccErrors(volatile)", _ecc_errors, sum),
    _Value("nvml_processes", "processes", "nvmlDeviceGetComputeRunningProcesses", _processes, sum),
    _Value("nvml_nvlinks_down", "links", "nvmlDeviceGetNvLinkState", _links_down, sum),
    _Value("nvml_nvlink_errors", "errors", "nvmlDeviceGetNvLinkErrorCounter", _link_errors, sum),
    _Value("nvml_mig_gpus", "GPUs", "nvmlDeviceGetMigMode", _split, sum),
)


def _no_gpu(detail: str) -> Readings:
    return _nothing(Gap("", GapReason.NOT_SUPPORTED, detail))


def _nothing(gap: Gap) -> Readings:
    """The same gap for every value."""
    gaps = tuple(Gap(value.signal, gap.reason, gap.detail, gap.needs) for value in _VALUES)
    return Readings(gaps=gaps, queries=(QueryRecord(SOURCE, "nvmlInit", gap.reason.value, 0),))


def _joined(parts: Sequence[Readings]) -> Readings:
    return Readings(
        facts=tuple(fact for part in parts for fact in part.facts),
        gaps=tuple(gap for part in parts for gap in part.gaps),
        queries=tuple(query for part in parts for query in part.queries),
    )
