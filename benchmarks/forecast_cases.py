"""The settings and rates that forecasts are tried on."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.forecast.batcher import Batching


@dataclass(frozen=True, slots=True)
class Case:
    """One setting at one rate; `overloaded` says that it cannot be served."""

    accelerator: str
    batching: Batching
    rate_rps: float
    overloaded: bool = False
    group: float = 1.0
    vip_ratio: float = 0.0
    instances: int = 1

    def __str__(self) -> str:
        batching = self.batching
        told = f"max {batching.maximum}, preferred {batching.preferred}, wait {batching.wait_ms:g} ms"
        extra = f" in groups of {self.group:g}" if self.group > 1 else ""
        extra += f", {self.vip_ratio:.0%} VIP" if self.vip_ratio else ""
        extra += f", {self.instances} instances" if self.instances > 1 else ""
        return f"{self.accelerator} {told if batching.enabled else 'no batcher'} at {self.rate_rps:g}/s{extra}"


def _batching(preferred: int, maximum: int, wait_ms: float) -> Batching:
    return Batching(True, preferred, maximum, wait_ms)


SMALL, COMPUTE, LAUNCH = "sim:small", "sim:compute-bound", "sim:launch-bound"
NO_BATCHER = Batching(False, 0, 32, 0.0)

CALIBRATIONS = (
    Case(SMALL, _batching(16, 32, 15.0), 380),
    Case(COMPUTE, _batching(8, 32, 10.0), 150),
    Case(LAUNCH, _batching(8, 32, 30.0), 130),
)
"""Batches of many sizes; none of these settings is among the cases."""

CASES = (
    # The scene's good settings and bad ones. Capacities: 615/s and 286/s.
    Case(SMALL, _batching(16, 32, 100.0), 310),
    Case(SMALL, _batching(16, 32, 100.0), 460),
    Case(SMALL, _batching(16, 32, 100.0), 550),
    Case(SMALL, _batching(0, 8, 0.0), 180),
    Case(SMALL, _batching(0, 8, 0.0), 225),
    Case(SMALL, _batching(0, 8, 0.0), 255),
    Case(SMALL, _batching(0, 8, 0.0), 340, overloaded=True),
    # A delay that runs out while the instance is busy.
    Case(SMALL, _batching(16, 32, 20.0), 300),
    Case(SMALL, _batching(16, 32, 20.0), 400),
    Case(SMALL, _batching(16, 32, 20.0), 500),
    Case(SMALL, _batching(8, 32, 5.0), 350),
    Case(SMALL, _batching(8, 32, 5.0), 450),
    # A preferred size without a delay: a ceiling at 444/s.
    Case(SMALL, _batching(16, 32, 0.0), 330),
    Case(SMALL, _batching(16, 32, 0.0), 400),
    Case(SMALL, _batching(16, 32, 0.0), 520, overloaded=True),
    Case(SMALL, _batching(0, 32, 0.0), 440),
    Case(SMALL, _batching(0, 32, 0.0), 540),
    Case(SMALL, _batching(0, 16, 10.0), 390),
    Case(SMALL, _batching(8, 16, 50.0), 350),
    Case(SMALL, _batching(16, 32, 100.0), 740, overloaded=True),
    # Groups, and priority levels.
    Case(SMALL, _batching(16, 32, 20.0), 380, group=3.0),
    Case(SMALL, _batching(0, 16, 0.0), 330, vip_ratio=0.2),
    # Mostly arithmetic. Capacities: 32 in 120 ms are 266/s, 8 in 34 ms are 237/s, one in 8.6 ms is 116/s.
    Case(COMPUTE, _batching(0, 8, 0.0), 185),
    Case(COMPUTE, _batching(0, 32, 0.0), 215),
    Case(COMPUTE, _batching(16, 32, 20.0), 230),
    Case(COMPUTE, _batching(16, 32, 100.0), 120),
    Case(COMPUTE, _batching(4, 8, 5.0), 200),
    Case(COMPUTE, NO_BATCHER, 85),
    Case(COMPUTE, _batching(0, 8, 0.0), 290, overloaded=True),
    Case(COMPUTE, _batching(0, 8, 0.0), 370, instances=2),
    # Mostly launching. Capacities: 32 in 140 ms are 229/s, 16 in 100 ms are 160/s.
    Case(LAUNCH, _batching(0, 32, 0.0), 165),
    Case(LAUNCH, _batching(16, 32, 50.0), 195),
    Case(LAUNCH, _batching(0, 16, 0.0), 130),
    Case(LAUNCH, _batching(16, 32, 200.0), 90),
    Case(LAUNCH, _batching(0, 16, 20.0), 145),
    Case(LAUNCH, _batching(0, 16, 0.0), 200, overloaded=True),
    Case(LAUNCH, _batching(16, 32, 50.0), 350, instances=2),
    Case(LAUNCH, _batching(0, 32, 0.0), 290, overloaded=True),
)
