"""The settings of Triton's dynamic batcher: of all replicas, or of the one that tries another batching."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.stack.yaml_nodes import Fields

MAX_BATCH_SIZE = 128
MAX_TIMEOUT_MICROS = 10_000_000


@dataclass(frozen=True, slots=True)
class BatchingSettings:
    """Triton's dynamic batcher: wait up to `timeout_micros` for `preferred_batch_size` requests (0: none preferred)."""

    enabled: bool = True
    preferred_batch_size: int = 16
    max_batch_size: int = 32
    timeout_micros: int = 100_000


def read_batching(fields: Fields, default: BatchingSettings) -> BatchingSettings:
    """A section `batching`; what it does not name is as in `default`."""
    return BatchingSettings(
        enabled=fields.switch("enabled", default.enabled),
        preferred_batch_size=fields.whole("preferred_batch_size", default.preferred_batch_size),
        max_batch_size=fields.whole("max_batch_size", default.max_batch_size),
        timeout_micros=fields.whole("timeout_micros", default.timeout_micros),
    )


def batching_violations(section: str, batching: BatchingSettings) -> list[tuple[str, str, str]]:
    """(key, what is wrong, hint) for each rule that the section of that name breaks."""
    found = out_of_range(
        (f"{section}.max_batch_size", batching.max_batch_size, 1, MAX_BATCH_SIZE),
        (f"{section}.preferred_batch_size", batching.preferred_batch_size, 0, MAX_BATCH_SIZE),
        (f"{section}.timeout_micros", batching.timeout_micros, 0, MAX_TIMEOUT_MICROS),
    )
    if batching.preferred_batch_size > batching.max_batch_size:
        message = f"is {batching.preferred_batch_size}, above max_batch_size {batching.max_batch_size}"
        found.append((f"{section}.preferred_batch_size", message, "Lower it, or raise max_batch_size."))
    return found


def out_of_range(*bounds: tuple[str, int, int, int]) -> list[tuple[str, str, str]]:
    """A violation for each (key, value, lowest, highest) whose value is not between the two."""
    return [
        (key, f"must be between {low} and {high}, not {value}", "")
        for key, value, low, high in bounds
        if not low <= value <= high
    ]
