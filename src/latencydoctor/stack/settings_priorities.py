"""The settings' section `inference.priorities`: who is served first, and how long the others may wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.stack.settings_batching import out_of_range
from latencydoctor.stack.yaml_nodes import Fields

MAX_PRIORITY_LEVEL = 2
MAX_STANDARD_TIMEOUT_MS = 600_000


@dataclass(frozen=True, slots=True)
class PrioritySettings:
    """Triton's level for each priority a request can name; 1 is served first.

    A standard request that has waited `standard_timeout_ms` in Triton's queue is turned away; 0: it waits to its
    deadline. Only a level behind another one can be given up: a timeout takes `priority_levels`.
    """

    vip: int = 1
    standard: int = 2
    standard_timeout_ms: int = 0


def read_priorities(fields: Fields) -> PrioritySettings:
    """The section; what it does not name has its default."""
    default = PrioritySettings()
    return PrioritySettings(
        vip=fields.whole("vip", default.vip),
        standard=fields.whole("standard", default.standard),
        standard_timeout_ms=fields.whole("standard_timeout_ms", default.standard_timeout_ms),
    )


def priority_violations(priorities: PrioritySettings, *, has_levels: bool) -> list[tuple[str, str, str]]:
    """(key, what is wrong, hint) for each rule they break; `has_levels`: VIP requests do go before standard ones."""
    section = "inference.priorities"
    found = out_of_range(
        (f"{section}.vip", priorities.vip, 1, MAX_PRIORITY_LEVEL),
        (f"{section}.standard", priorities.standard, 1, MAX_PRIORITY_LEVEL),
        (f"{section}.standard_timeout_ms", priorities.standard_timeout_ms, 0, MAX_STANDARD_TIMEOUT_MS),
    )
    if priorities.standard_timeout_ms and not has_levels:
        message = "needs two priority levels in effect: VIP requests would be turned away as well"
        hint = "Set priority_levels and batching.enabled to true, and the priorities to 1 and 2."
        found.append((f"{section}.standard_timeout_ms", message, hint))
    return found
