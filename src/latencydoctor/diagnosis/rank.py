"""From a walked tree to one diagnosis: the cause, how far it may be trusted, what was ruled out, what is missing."""

from __future__ import annotations

from latencydoctor.diagnosis.ledger import LEDGER_SIGNALS, split_time
from latencydoctor.diagnosis.walk import Walked, walk
from latencydoctor.model.diagnosis import Answer, Cause, Confidence, Diagnosis, Finding, Step
from latencydoctor.model.evidence import INCIDENT_SIGNALS, SOURCE_GAPS, Evidence, Gap, IncidentState, Measure
from latencydoctor.model.playbook import Playbook, Verdict, signals_of


def diagnose(evidence: Evidence, playbook: Playbook, overrides: tuple[tuple[str, float], ...] = ()) -> Diagnosis:
    """Walk the playbook when there is an incident; a healthy or unknown state has no cause to look for."""
    if evidence.incident.state is not IncidentState.INCIDENT:
        return _build(evidence, playbook, None, Walked((), _nothing()))
    walked = walk(playbook, evidence, overrides)
    cause = _cause(walked, evidence) if walked.verdict.cause else None
    return _build(evidence, playbook, cause, walked)


def _nothing() -> Verdict:
    return Verdict("", None, "", "", "", "", "", ())


def _build(evidence: Evidence, playbook: Playbook, cause: Cause | None, walked: Walked) -> Diagnosis:
    ruled_out = tuple(step for step in walked.steps if step.answer is Answer.NO)
    return Diagnosis(
        selection=evidence.selection,
        now_s=evidence.now_s,
        window=evidence.window,
        baseline_window=evidence.baseline_window,
        incident=evidence.incident,
        cause=cause,
        path=walked.steps,
        ruled_out=ruled_out,
        missing=_missing(walked.steps, evidence, playbook),
        ledger=split_time(evidence),
        log_events=evidence.log_events,
        queries=evidence.queries,
        dialects=evidence.dialects,
        playbook=playbook.id,
        next_command=_next_command(evidence, cause),
        simulated=evidence.simulated,
        inconclusive="" if cause else (walked.verdict.advice or walked.verdict.title),
    )


def _cause(walked: Walked, evidence: Evidence) -> Cause:
    verdict = walked.verdict
    deciding = next((step for step in reversed(walked.steps) if step.answer is Answer.YES), None)
    return Cause(
        id=verdict.cause or "",
        title=verdict.title,
        meaning=verdict.meaning,
        advice=verdict.advice,
        not_this=verdict.not_this,
        fix=verdict.fix,
        confidence=_confidence(deciding, walked.steps),
        evidence=_witnesses(deciding),
        symptoms=tuple(_symptom(name, evidence) for name in verdict.symptoms if _moved(name, evidence)),
    )


def _witnesses(deciding: Step | None) -> tuple[Finding, ...]:
    """The comparisons that say yes, one a signal; those that say no belong to the path, not to the proof.

    A signal that is compared more than once is shown by its last comparison: guards stand first in a playbook.
    """
    agreeing = (finding for finding in (deciding.findings if deciding else ()) if finding.answer is Answer.YES)
    return tuple({finding.signal: finding for finding in agreeing}.values())


def _confidence(deciding: Step | None, steps: tuple[Step, ...]) -> Confidence:
    """High: at least two different signals agree and no earlier question went unanswered.

    Medium: one of the two holds. Low: neither, or the cause is the tree's last resort rather than a question's yes.
    """
    if deciding is None:
        return Confidence.LOW
    agreeing = {finding.signal for finding in deciding.findings if finding.answer is Answer.YES}
    earlier_known = all(step.answer is not Answer.UNKNOWN for step in steps)
    score = (len(agreeing) >= 2) + earlier_known
    return (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)[score]


def _moved(signal: str, evidence: Evidence) -> bool:
    seen = evidence.find(signal)
    return isinstance(seen, Measure) and seen.baseline is not None and seen.value != seen.baseline


def _symptom(signal: str, evidence: Evidence) -> Finding:
    seen = evidence.find(signal)
    assert isinstance(seen, Measure), "only signals that moved are symptoms"
    return Finding(
        signal=signal,
        answer=Answer.YES,
        comparison="moved from",
        value=seen.value,
        threshold=None,
        baseline=seen.baseline,
        unit=seen.unit,
        window=seen.window,
        proof=seen.proof,
        simulated=seen.simulated,
    )


def _missing(steps: tuple[Step, ...], evidence: Evidence, playbook: Playbook) -> tuple[Gap, ...]:
    """Gaps that kept a question of the path from an answer come first, then those that this playbook could ask for.

    A server that has no tokens is not missing tokens: signals that nothing here looks at are left out.
    """
    asked = {
        finding.gap.signal: finding.gap
        for step in steps
        if step.answer is Answer.UNKNOWN
        for finding in step.findings
        if finding.gap is not None
    }
    asked_for = (signals_of(question.condition) for question in playbook.questions)
    wanted = SOURCE_GAPS.union(INCIDENT_SIGNALS, LEDGER_SIGNALS, *asked_for)
    other = {gap.signal: gap for gap in evidence.gaps if gap.signal not in asked and gap.signal in wanted}
    return (*asked.values(), *other.values())


def _next_command(evidence: Evidence, cause: Cause | None) -> str:
    if evidence.incident.state is IncidentState.HEALTHY:
        return ""
    if cause and cause.fix:
        return f"latencydoctor plan {cause.fix} -o plan.json"
    if evidence.incident.state is IncidentState.CANNOT_TELL:
        return "latencydoctor config check"
    return "latencydoctor diagnose --save incident.json.gz"
