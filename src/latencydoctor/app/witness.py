"""Asks the queue model about a suspicion: would undoing the cause, and nothing else, bring the latency back?

The one place where a diagnosis and a forecast meet: both are pure and know nothing of each other.
"""

from __future__ import annotations

from latencydoctor.forecast.queue import Batching
from latencydoctor.forecast.situation import instances_of
from latencydoctor.forecast.witness import Knob, Seen, bear_witness
from latencydoctor.model.cause import CauseRule
from latencydoctor.model.diagnosis import Forecasted
from latencydoctor.model.evidence import Evidence

_OFF_BELOW = 0.5


def ask_queue(rule: CauseRule, evidence: Evidence, slo_p99_ms: float) -> Forecasted | None:
    """What the queue says of this cause; None where the cause turned nothing that a queue knows, or has no queue."""
    if rule.undo is None:
        return None
    now = {measure.signal: measure.value for measure in evidence.measures}
    batching = _batching(now)
    if batching is None:
        return None
    baseline = {one.signal: one.baseline for one in evidence.measures if one.baseline is not None}
    said = bear_witness(
        Seen(
            now,
            baseline,
            batching,
            slo_p99_ms,
            instances=instances_of(now),
            replicas=max(1, round(now.get("replica_count", 1))),
        ),
        Knob(rule.undo.value),
    )
    return Forecasted(said.answer, said.reason, said.measured_p99_ms, said.undone_p99_ms, said.limit_ms)


def _batching(now: dict[str, float]) -> Batching | None:
    """The batcher's settings in effect; None where no source tells the largest batch."""
    maximum = now.get("config_max_batch_size")
    if maximum is None or maximum < 1:
        return None
    return Batching(
        enabled=now.get("config_dynamic_batching", 1.0) >= _OFF_BELOW,
        preferred=round(now.get("config_preferred_batch_size", 0)),
        maximum=round(maximum),
        wait_ms=now.get("config_queue_delay_ms", 0.0),
    )
