"""From the first question of a playbook to a verdict, remembering every step."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.diagnosis.conditions import judge
from latencydoctor.model.diagnosis import Answer, Step
from latencydoctor.model.evidence import Evidence
from latencydoctor.model.playbook import Playbook, Question, Verdict


@dataclass(frozen=True, slots=True)
class Walked:
    """The questions asked in order, and the verdict they led to."""

    steps: tuple[Step, ...]
    verdict: Verdict


def walk(playbook: Playbook, evidence: Evidence, overrides: tuple[tuple[str, float], ...] = ()) -> Walked:
    """Follow the branches from the playbook's start. `overrides` replace thresholds by name.

    The reader has checked that branches end in verdicts without a cycle, so this ends.
    """
    thresholds = dict(playbook.thresholds) | dict(overrides)
    steps: list[Step] = []
    node = playbook.node(playbook.start)
    while isinstance(node, Question):
        judged = judge(node.condition, evidence, thresholds)
        steps.append(Step(node.id, node.text, judged.answer, judged.findings))
        node = playbook.node(_branch(node, judged.answer))
    return Walked(tuple(steps), node)


def _branch(question: Question, answer: Answer) -> str:
    match answer:
        case Answer.YES:
            return question.yes
        case Answer.NO:
            return question.no
        case Answer.UNKNOWN:
            return question.unknown
