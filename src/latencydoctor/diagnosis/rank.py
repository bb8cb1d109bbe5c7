"""From the evidence to one diagnosis: the cause, how far it may be trusted, what was ruled out, what is missing.

The cause rules decide; the playbook's tree is walked beside them. Where they name different causes the rules' answer
stands, because they look at more, and the disagreement is shown and lowers the confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from latencydoctor.diagnosis.candidates import candidates, most_asked_for
from latencydoctor.diagnosis.confidence import confidence_in
from latencydoctor.diagnosis.examine import Examined, Standing, by_id, examine
from latencydoctor.diagnosis.findings import found
from latencydoctor.diagnosis.ledger import LEDGER_SIGNALS, split_time
from latencydoctor.diagnosis.suspects import (
    NOTHING,
    Ranked,
    as_not_evaluable,
    as_ruled_out,
    as_suspect,
    deciding_gap,
    explained_by,
    families,
    rank,
)
from latencydoctor.diagnosis.timeline import timeline
from latencydoctor.diagnosis.walk import Walked, walk
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.diagnosis import (
    Answer,
    Cause,
    Confidence,
    Diagnosis,
    Finding,
    Forecasted,
    Step,
    TreeAnswer,
)
from latencydoctor.model.evidence import INCIDENT_SIGNALS, SOURCE_GAPS, Evidence, Gap, IncidentState, Measure
from latencydoctor.model.playbook import Playbook, Verdict, signals_of

NO_CAUSE_HOLDS = "no known cause fits what can be seen"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a diagnosis goes by: the tree, the cause rules, and a deployment's own thresholds."""

    playbook: Playbook
    causes: Sequence[CauseRule] = ()
    overrides: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class _Reasoned:
    """Everything that was concluded on the way to a diagnosis."""

    walked: Walked
    examined: tuple[Examined, ...] = ()
    ranked: Ranked = NOTHING
    top: Examined | None = None
    tree: TreeAnswer | None = None
    forecast: Forecasted | None = None


Forecast = Callable[[CauseRule, Evidence], Forecasted | None]
"""Asks a queue model whether undoing a cause would be enough; None where it has nothing to say of such a cause."""


def diagnose(evidence: Evidence, knowledge: Knowledge, forecast: Forecast | None = None) -> Diagnosis:
    """Look for a cause when there is an incident; a healthy or unknown state has none to look for."""
    if evidence.incident.state is not IncidentState.INCIDENT:
        return _build(evidence, knowledge, _Reasoned(Walked((), Verdict("", None))))
    walked = walk(knowledge.playbook, evidence, knowledge.overrides)
    examined = examine(knowledge.causes, evidence, knowledge.overrides)
    ranked = rank(examined)
    top = ranked.roots[0] if ranked.roots else _only_the_tree(walked, examined)
    tree = _tree(walked, top, examined)
    testimony = forecast(top.rule, evidence) if forecast is not None and top is not None else None
    return _build(evidence, knowledge, _Reasoned(walked, examined, ranked, top, tree, testimony))


def _only_the_tree(walked: Walked, examined: Sequence[Examined]) -> Examined | None:
    """The tree's cause where no rule holds, unless its own rule refutes it."""
    one = by_id(examined).get(walked.verdict.cause or "")
    return one if one is not None and one.standing is Standing.NOT_EVALUABLE else None


def _tree(walked: Walked, top: Examined | None, examined: Sequence[Examined]) -> TreeAnswer:
    says = walked.verdict.cause
    if says is None:
        return TreeAnswer(None, Answer.UNKNOWN, "the tree names no cause")
    if top is None:
        return TreeAnswer(says, Answer.NO, f"the tree names {says}, which its rule does not confirm")
    if says == top.rule.id:
        return TreeAnswer(says, Answer.YES, "the tree names the same cause")
    if says in explained_by(top.rule.id, examined):
        return TreeAnswer(says, Answer.YES, f"the tree names {says}, which this cause explains")
    refuted = by_id(examined)[says].standing is Standing.RULED_OUT if says in by_id(examined) else False
    if not refuted and top.rule.id in explained_by(says, examined):
        return TreeAnswer(says, Answer.YES, f"the tree names {says}, of which this is a special case or an effect")
    return TreeAnswer(says, Answer.NO, f"the tree names {says} instead")


def _build(evidence: Evidence, knowledge: Knowledge, reasoned: _Reasoned) -> Diagnosis:
    cause = _cause(reasoned, evidence) if reasoned.top else None
    steps = reasoned.walked.steps
    causes = [one for one in reasoned.examined if one.rule.kind is CauseKind.CAUSE]
    others = [one for one in reasoned.ranked.roots if one is not reasoned.top]
    near = candidates(reasoned.examined, reasoned.top, evidence, knowledge.overrides) if _is_open(cause) else ()
    return Diagnosis(
        selection=evidence.selection,
        now_s=evidence.now_s,
        window=evidence.window,
        baseline_window=evidence.baseline_window,
        incident=evidence.incident,
        cause=cause,
        path=steps,
        ruled_out=tuple(step for step in steps if step.answer is Answer.NO),
        missing=_missing(steps, evidence, knowledge.playbook),
        ledger=split_time(evidence),
        log_events=evidence.log_events,
        queries=evidence.queries,
        dialects=evidence.dialects,
        playbook=knowledge.playbook.id,
        next_command=_next_command(evidence, cause),
        simulated=evidence.simulated,
        inconclusive="" if cause else _inconclusive(reasoned),
        contributing=tuple(as_suspect(one) for one in (*others, *reasoned.ranked.lesser)),
        causes_ruled_out=tuple(as_ruled_out(one) for one in causes if one.standing is Standing.RULED_OUT),
        not_evaluable=tuple(
            as_not_evaluable(one)
            for one in causes
            if one.standing is Standing.NOT_EVALUABLE and one is not reasoned.top
        ),
        doubts=tuple(
            as_suspect(one) for one in reasoned.examined if one.holds and one.rule.kind is CauseKind.DATA_QUALITY
        ),
        tree=reasoned.tree,
        deciding=most_asked_for(near) or deciding_gap(reasoned.top, reasoned.examined),
        candidates=near,
        timeline=timeline(evidence),
    )


def _is_open(cause: Cause | None) -> bool:
    """Whether the question why is still open: nothing holds, or what holds does so with a reservation."""
    return cause is None or cause.confidence is not Confidence.HIGH


def _inconclusive(reasoned: _Reasoned) -> str:
    verdict = reasoned.walked.verdict
    return verdict.advice or verdict.title or (NO_CAUSE_HOLDS if verdict.id else "")


def _cause(reasoned: _Reasoned, evidence: Evidence) -> Cause:
    top, tree = reasoned.top, reasoned.tree
    assert top is not None
    assert tree is not None
    rule = top.rule
    return Cause(
        id=rule.id,
        title=rule.title,
        meaning=rule.meaning,
        advice=rule.advice,
        not_this=rule.not_this,
        fix=rule.fix,
        confidence=confidence_in(top, reasoned.ranked, reasoned.examined, tree, evidence, reasoned.forecast),
        evidence=top.agreeing,
        symptoms=tuple(_symptom(name, evidence) for name in rule.symptoms if _moved(name, evidence)),
        scaling=rule.scaling.value,
        witnesses=_witnesses(top, reasoned.forecast),
        against=top.against,
        folded=tuple(as_suspect(one) for one in reasoned.ranked.folded.get(rule.id, ())),
        forecast=reasoned.forecast,
    )


def _witnesses(top: Examined, forecast: Forecasted | None) -> tuple[str, ...]:
    agrees = forecast is not None and forecast.answer is Answer.YES
    return (*families(top), *(("forecast",) if agrees else ()))


def _moved(signal: str, evidence: Evidence) -> bool:
    seen = evidence.find(signal)
    return isinstance(seen, Measure) and seen.baseline is not None and seen.value != seen.baseline


def _symptom(signal: str, evidence: Evidence) -> Finding:
    seen = evidence.find(signal)
    assert isinstance(seen, Measure), "only signals that moved are symptoms"
    return found(seen, Answer.YES, "moved from")


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
