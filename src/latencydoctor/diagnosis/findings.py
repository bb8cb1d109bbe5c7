"""A measure as a finding: the same proof, window and baseline, with an answer."""

from __future__ import annotations

from latencydoctor.model.diagnosis import Answer, Finding
from latencydoctor.model.evidence import Measure


def found(
    seen: Measure, answer: Answer, comparison: str, threshold: float | None = None, value: float | None = None
) -> Finding:
    """What was seen of a signal, and what it answers; `value` where another number than the measure's was compared."""
    return Finding(
        signal=seen.signal,
        answer=answer,
        comparison=comparison,
        value=seen.value if value is None else value,
        threshold=threshold,
        baseline=seen.baseline,
        unit=seen.unit,
        window=seen.window,
        proof=seen.proof,
        simulated=seen.simulated,
        family=seen.family,
    )
