"""What verification measured of the effects that a plan predicted, so that both can stand beside each other."""

from __future__ import annotations

from statistics import median

from latencydoctor.model.remedy import Verification

_MEASURED = {"e2e_p99_ms": "p99_ms", "cache_hit_ratio": "hit_ratio"}


def reached(signal: str, verification: Verification | None) -> float | None:
    """The middle of what the conclusive checks measured; None for what no check measures."""
    if verification is None or signal not in _MEASURED:
        return None
    found = [getattr(check, _MEASURED[signal]) for check in verification.checks if check.conclusive]
    values = [value for value in found if value is not None]
    return median(values) if values else None
