"""The variants of the flash crowd: the same crowd on broken settings, on healthy ones, and on too small a device.

Capacity of a simulated device with `a` ms host overhead and `c` ms an item at batch B is B / (a + B c): on `small`
(20 + 1) batches of 8 carry 286 requests/s and batches of 32 carry 615; on `compute-bound` (5 + 3.6) batches of 32
carry 266. The crowd sends 340 requests/s of which the cache answers about 12 %, so 299/s reach the model.
"""

from __future__ import annotations

from latencydoctor.errors import UsageError
from latencydoctor.model.drill import Scenario

CALM_RPS = 65.0
CROWD_RPS = 340.0

_BROKEN_BATCHING = (
    ("inference.batching.preferred_batch_size", "0"),
    ("inference.batching.max_batch_size", "8"),
    ("inference.batching.timeout_micros", "0"),
)

FLASH_CROWD: dict[str, Scenario] = {
    scenario.fault: scenario
    for scenario in (
        Scenario(
            fault="batching",
            title="Flash crowd on a batching limit of 8 without a wait",
            expected_cause="batching-failed",
            expected_fix="batch-floor",
            accelerator="sim:small",
            settings=_BROKEN_BATCHING,
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
        ),
        Scenario(
            fault="none",
            title="The same crowd on healthy settings",
            expected_cause=None,
            expected_fix="",
            accelerator="sim:small",
            settings=(),
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
        ),
        Scenario(
            fault="saturation",
            title="Flash crowd on healthy batching and too small a device",
            expected_cause="saturation",
            expected_fix="",
            accelerator="sim:compute-bound",
            settings=(),
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
        ),
    )
}


def find(fault: str) -> Scenario:
    """The variant of that name; `UsageError` naming those there are."""
    if fault not in FLASH_CROWD:
        raise UsageError(f"there is no fault {fault!r}", hint=f"Known: {', '.join(FLASH_CROWD)}.")
    return FLASH_CROWD[fault]
