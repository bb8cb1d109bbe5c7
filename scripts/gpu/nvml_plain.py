"""The most important NVML readings through ctypes, for a machine without the package nvidia-ml-py.

They have the names and units of `latencydoctor.sources.nvml`, so that both are compared with nvidia-smi alike.
"""

from __future__ import annotations

import ctypes

from scripts.gpu.outcome import Failed, Skipped

SM_CLOCK = 1
THERMAL_REASONS = 0x20 | 0x40
POWER_CAP_REASONS = 0x04
HARDWARE_REASONS = 0x08 | 0x80


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Library:
    def __init__(self) -> None:
        try:
            self._calls = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise Skipped(f"no NVML: {error}") from None

    def call(self, name: str, *arguments: object) -> bool:
        """Whether the call answered; a card or driver that does not know it is no failure."""
        function = getattr(self._calls, name, None)
        return function is not None and function(*arguments) == 0


def read() -> dict[str, float]:
    """What NVML answers, over all GPUs; a value that one of them does not give is left out."""
    library = _Library()
    if not library.call("nvmlInitWithFlags", 0):
        raise Skipped("NVML cannot be used")
    try:
        count = ctypes.c_uint()
        if not library.call("nvmlDeviceGetCount_v2", ctypes.byref(count)) or not count.value:
            raise Skipped("NVML sees no GPU")
        devices = [_device(library, index) for index in range(count.value)]
        return _combined([_values(library, device) for device in devices])
    finally:
        library.call("nvmlShutdown")


def _device(library: _Library, index: int) -> ctypes.c_void_p:
    device = ctypes.c_void_p()
    if not library.call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device)):
        raise Failed(f"NVML gives no handle of GPU {index}")
    return device


def _values(library: _Library, device: ctypes.c_void_p) -> dict[str, float]:
    found: dict[str, float] = {}
    rates, memory = _Utilization(), _Memory()
    if library.call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(rates)):
        found["accelerator_busy_ratio"] = rates.gpu / 100
    if library.call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)):
        found["accelerator_memory_used_bytes"] = float(memory.used)
        found["accelerator_memory_total_bytes"] = float(memory.total)
    clock, highest = ctypes.c_uint(), ctypes.c_uint()
    known = library.call("nvmlDeviceGetClockInfo", device, SM_CLOCK, ctypes.byref(clock))
    if known and library.call("nvmlDeviceGetMaxClockInfo", device, SM_CLOCK, ctypes.byref(highest)) and highest.value:
        found["accelerator_clock_ratio"] = clock.value / highest.value
    number, reasons = ctypes.c_uint(), ctypes.c_ulonglong()
    if library.call("nvmlDeviceGetTemperature", device, 0, ctypes.byref(number)):
        found["nvml_temperature_c"] = float(number.value)
    if library.call("nvmlDeviceGetPowerUsage", device, ctypes.byref(number)):
        found["nvml_power_w"] = number.value / 1000
    asked = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    if any(library.call(name, device, ctypes.byref(reasons)) for name in asked):
        found["accelerator_throttled_ratio"] = float(bool(reasons.value & THERMAL_REASONS))
        found["accelerator_power_capped_ratio"] = float(bool(reasons.value & POWER_CAP_REASONS))
        found["accelerator_hw_slowdown_ratio"] = float(bool(reasons.value & HARDWARE_REASONS))
    return found


def _combined(each: list[dict[str, float]]) -> dict[str, float]:
    names = set.intersection(*(set(found) for found in each))
    return {name: _over([found[name] for found in each], name) for name in sorted(names)}


def _over(values: list[float], name: str) -> float:
    if name == "accelerator_busy_ratio":
        return sum(values) / len(values)
    if name == "accelerator_clock_ratio":
        return min(values)
    return sum(values) if name.endswith(("_bytes", "_w")) else max(values)
