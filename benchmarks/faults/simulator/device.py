"""A GPU: how long work takes at its clock, what that does to heat and power, and what heat and power do to the clock.

Made-up but plausible constants; clocks are shares of the maximum. The loop is closed: slower clocks make the device
busier, which is what it then reports.
"""

from __future__ import annotations

import math
from random import Random

from benchmarks.faults.simulator.knobs import Knobs

MAX_CLOCK_MHZ = 1980
TOTAL_MB = 81_000
LOWEST_CLOCK = 0.12
IDLE_W, ENGINE_W, CORES_W = 80.0, 120.0, 380.0
AMBIENT_C, C_PER_W, HEAT_TIME_S = 32.0, 0.088, 40.0
SLOWDOWN_C, RECOVER_C = 87.0, 84.0
BRAKED = 0.35
STALL_S = 1.5
"""How long an uncorrectable memory error keeps the device from working."""

IDLE, LOCKED, POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, HW_BRAKE = 0x1, 0x2, 0x4, 0x8, 0x20, 0x40, 0x80


class Device:
    """One GPU, moved on by `tick` once a second and loaded by `run`."""

    def __init__(self, knobs: Knobs, random: Random) -> None:
        self.knobs, self._random = knobs, random
        self.clock, self._thermal = 1.0, 1.0
        self.temperature_c, self.power_w = 55.0, 200.0
        self.engine_ratio = self.cores_ratio = 0.0
        self.thermal_ns = self.power_ns = self.replays = self.memory_errors = self.energy_j = 0.0
        self.leaked_mb = 0.0
        # So little memory is left that the framework frees and tries again on every execution.
        self.starved = False
        self.reasons = 0
        self._engine_s = self._cores_s = 0.0
        self._last = (0.0, 0.0)
        self._engine_sum = self._cores_sum = self._seconds = 0.0
        self._running: list[tuple[float, float]] = []
        self._idle_since_s = -1000.0
        self.stalled_until_s = -math.inf

    def run(self, time_s: float, work_ms: float, fill: float) -> float:
        """Seconds that work of `work_ms` at full clock takes from `time_s` on; it keeps `fill` of the SMs busy."""
        crowd = 1.0
        if self._running:
            self._running = [held for held in self._running if held[0] > time_s]
            crowd = max(1.0, sum(held[1] for held in self._running) + fill)
        speed = self.clock * (1 - min(self.knobs.gpu_neighbour, 0.95)) / crowd
        seconds = self._ramped(time_s, work_ms / 1000 / speed)
        wait_s = max(0.0, self.stalled_until_s - time_s)
        # Kernels that share the device are resident together: each counts its share of the time.
        self._last = (seconds / max(1, len(self._running) + 1), seconds * fill / crowd)
        self._engine_s += self._last[0]
        self._cores_s += self._last[1]
        end_s = time_s + wait_s + seconds
        self._running.append((end_s, fill))
        self._idle_since_s = max(self._idle_since_s, end_s)
        return wait_s + seconds

    def give_back(self, share: float) -> None:
        """The last work was cut short: this share of it is not done after all."""
        self._engine_s -= self._last[0] * share
        self._cores_s -= self._last[1] * share

    def _ramped(self, time_s: float, seconds: float) -> float:
        """From an idle device's lowest clock, work goes on slowly until the clock has come up."""
        if not self.knobs.gpu_idle_drop or time_s - self._idle_since_s < 0.15:
            return seconds
        ramp_s = self.knobs.gpu_ramp_ms / 1000
        done = ramp_s * LOWEST_CLOCK
        return seconds / LOWEST_CLOCK if seconds <= done else ramp_s + seconds - done

    def tick(self, time_s: float) -> None:
        """Take in the second that ended at `time_s` and set the clock for the next."""
        knobs = self.knobs
        self.engine_ratio = max(0.0, min(1.0, self._engine_s))
        self.cores_ratio = max(0.0, min(1.0, self._cores_s))
        # An execution may reach into the next second.
        self._engine_s = min(1.0, max(0.0, self._engine_s - 1))
        self._cores_s = min(1.0, max(0.0, self._cores_s - 1))
        self.engine_ratio = min(1.0, self.engine_ratio + knobs.gpu_neighbour * (1 - 0.5 * self.engine_ratio))
        self.cores_ratio = min(0.99, self.cores_ratio * (1 - knobs.gpu_neighbour) + 0.92 * knobs.gpu_neighbour)
        load_w = ENGINE_W * self.engine_ratio + CORES_W * self.cores_ratio
        self._engine_sum += self.engine_ratio
        self._cores_sum += self.cores_ratio
        self._seconds += 1
        self._set_clock(load_w)
        self.power_w = IDLE_W + load_w * self.clock**2
        self.energy_j += self.power_w
        target_c = AMBIENT_C + C_PER_W / max(knobs.gpu_cooling, 0.05) * self.power_w
        self.temperature_c += (target_c - self.temperature_c) / HEAT_TIME_S
        self.leaked_mb += knobs.gpu_leak_mb_s
        self.starved = self.used_mb() > TOTAL_MB - 900
        self._link_and_memory(time_s)

    def _set_clock(self, load_w: float) -> None:
        knobs = self.knobs
        self.reasons = IDLE if self.engine_ratio < 0.01 and not knobs.gpu_spin else 0
        if self.temperature_c > SLOWDOWN_C:
            self._thermal = max(0.2, self._thermal * 0.95)
        elif self.temperature_c < RECOVER_C:
            self._thermal = min(1.0, self._thermal * 1.03)
        if self._thermal < 0.99:
            self.reasons |= SW_THERMAL | (HW_THERMAL if self.temperature_c > SLOWDOWN_C + 3 else 0)
            self.thermal_ns += 1e9
        limit = math.sqrt(max(knobs.gpu_power_limit_w - IDLE_W, 5) / max(load_w, 1))
        if limit < min(knobs.gpu_clock_lock, self._thermal):
            self.reasons |= POWER_CAP
            self.power_ns += 1e9
        if knobs.gpu_clock_lock < 1:
            self.reasons |= LOCKED
        self.clock = max(LOWEST_CLOCK, min(knobs.gpu_clock_lock, self._thermal, limit))
        if knobs.gpu_brake:
            self.reasons |= HW_SLOWDOWN | HW_BRAKE
            self.clock = min(self.clock, BRAKED)

    def _link_and_memory(self, time_s: float) -> None:
        rate = self.knobs.gpu_replays_s
        if rate:
            self.replays += math.floor(rate * self._random.uniform(0.6, 1.4) + self._random.random())
        if self._random.random() < self.knobs.gpu_ecc_per_min / 60:
            self.memory_errors += 1
            self.stalled_until_s = time_s + STALL_S

    def copy_factor(self) -> float:
        """How much longer copies take than over the usual link."""
        return (1 + 0.04 * self.knobs.gpu_replays_s) / max(self.knobs.gpu_link_ratio, 0.01)

    def shown_clock(self, time_s: float) -> float:
        """The clock an exporter would read at `time_s`."""
        # A resident kernel keeps the clock up.
        idle_s = 0.0 if self.knobs.gpu_spin else time_s - self._idle_since_s
        return LOWEST_CLOCK if idle_s > (0.15 if self.knobs.gpu_idle_drop else 20) else self.clock

    def engine_mean(self) -> float:
        """Share of time with a kernel resident, since `cores_mean` was last asked for."""
        return self._engine_sum / max(1.0, self._seconds)

    def cores_mean(self) -> float:
        """Share of the SMs at work over the same time; both start anew."""
        mean = self._cores_sum / max(1.0, self._seconds)
        self._engine_sum = self._cores_sum = self._seconds = 0.0
        return mean

    def used_mb(self) -> float:
        """Device memory in use, all processes together."""
        return min(TOTAL_MB - 600.0, self.knobs.gpu_memory_mb + self.leaked_mb + self.knobs.gpu_neighbour_mb)
