"""Where the time goes: the mean end-to-end time split into its parts, beside the baseline.

Means only: percentiles do not add, so a p99 of parts would be a fiction (cause signatures, section 8).
"""

from __future__ import annotations

from latencydoctor.model.diagnosis import LedgerRow
from latencydoctor.model.evidence import Evidence, Measure

_WHOLE = "e2e_mean_ms"
_PARTS = (
    ("network", "network_time_ms"),
    ("cache", "cache_time_ms"),
    ("preprocess", "preprocess_time_ms"),
    ("queue", "queue_time_ms"),
    ("compute input", "compute_input_time_ms"),
    ("compute", "compute_time_ms"),
    ("compute output", "compute_output_time_ms"),
    ("response", "response_time_ms"),
)

LEDGER_SIGNALS = frozenset({_WHOLE, *(signal for _, signal in _PARTS)})
"""The signals a full ledger needs."""


def split_time(evidence: Evidence) -> tuple[LedgerRow, ...]:
    """Rows in the order a request meets them, then the unexplained rest, then the whole; empty without a whole.

    Server-side parts are means over requests that reached the server, so with cache hits the parts may sum to more
    than the whole; the rest is then shown negative rather than hidden.
    """
    whole = evidence.find(_WHOLE)
    if not isinstance(whole, Measure) or whole.value <= 0:
        return ()
    rows = tuple(_row(part, evidence.find(signal), whole.value) for part, signal in _PARTS)
    known = sum(row.mean_ms for row in rows if row.mean_ms is not None)
    known_before = [row.baseline_ms for row in rows if row.baseline_ms is not None]
    rest = whole.value - known
    rest_before = whole.baseline - sum(known_before) if whole.baseline is not None and known_before else None
    unexplained = LedgerRow("unexplained", rest, rest_before, rest / whole.value)
    return (*rows, unexplained, LedgerRow("end to end", whole.value, whole.baseline, 1.0))


def _row(part: str, seen: object, whole_ms: float) -> LedgerRow:
    if not isinstance(seen, Measure):
        return LedgerRow(part, None, None, None)
    return LedgerRow(part, seen.value, seen.baseline, seen.value / whole_ms)
