"""The settings' section `canary`: what a part of the traffic tries before all of it gets it.

    canary:
      batching: {max_batch_size: 32}    # the last replica batches so; what is not named is as in `inference.batching`
    canary:
      precision: int8                   # a version of the model on every replica
      share_ratio: 0.2                  # of the sessions

How well requests batch depends on their rate. So a canary of batching is one of several equally loaded replicas, and
its share follows from their number; with one replica there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from latencydoctor.percent import percent
from latencydoctor.stack.settings_batching import BatchingSettings, read_batching
from latencydoctor.stack.yaml_nodes import Fields

SHARE_RATIO = 0.2
"""Of the sessions, where the canary is a version of the model (design/safety.md)."""

MAX_SHARE_RATIO = 0.5
"""With more than half of the sessions it is no trial any more."""


@dataclass(frozen=True, slots=True)
class CanarySettings:
    """What is tried: another batching on the last replica, or another precision for a share of the sessions."""

    batching: BatchingSettings | None = None
    precision: str | None = None
    share_ratio: float | None = None

    def share(self, replicas: int) -> float:
        """The share of the sessions that the canary answers, 0..1."""
        if self.batching is not None:
            return 1 / replicas
        return SHARE_RATIO if self.share_ratio is None else self.share_ratio

    def told(self, replicas: int) -> str:
        """One line for people who did not put it there."""
        what = f"replica {replicas} tries another batching" if self.batching else f"{self.precision} is tried"
        return f"{what}, {percent(self.share(replicas), 0)} of the sessions"


def read_canary(fields: Fields, batching: Fields, stable: BatchingSettings) -> CanarySettings | None:
    """The section, None where the file has none; `batching` are the fields of its inner one."""
    if fields.node is None:
        return None
    named = fields.keys()
    precision, share_ratio = fields.text("precision", ""), fields.number("share_ratio", SHARE_RATIO)
    return CanarySettings(
        batching=read_batching(batching, stable) if "batching" in named else None,
        precision=precision if "precision" in named else None,
        share_ratio=share_ratio if "share_ratio" in named else None,
    )


def canary_violations(canary: CanarySettings | None, replicas: int) -> Iterator[tuple[str, str, str]]:
    """(key, what is wrong, hint) for each rule of the section itself; the values' own bounds are the settings'."""
    if canary is None:
        return
    if canary.batching is None and canary.precision is None:
        yield "canary", "names nothing to try", "Give it batching or precision, or take the section out."
    if canary.batching is not None and canary.precision is not None:
        yield "canary.precision", "cannot be tried together with batching", "Try one after the other."
    if canary.batching is not None and replicas < 2:
        hint = "Batching depends on the rate: it is tried on one of several equally loaded replicas."
        yield "canary.batching", f"needs at least 2 replicas, inference.replicas is {replicas}", hint
    if canary.share_ratio is None:
        return
    if canary.batching is not None:
        hint = "A replica gets the share that all get: take share_ratio out."
        yield "canary.share_ratio", "cannot be set for batching", hint
    elif not 0 < canary.share_ratio <= MAX_SHARE_RATIO:
        yield "canary.share_ratio", f"must be above 0 and at most {MAX_SHARE_RATIO}, not {canary.share_ratio}", ""
