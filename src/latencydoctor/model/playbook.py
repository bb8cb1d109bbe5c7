"""Playbooks as records: a decision tree whose questions are compound, three-valued conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Comparison(StrEnum):
    """How a leaf compares a signal with its bound; MEASURED is no comparison, only that there is a value at all."""

    ABOVE = "above"
    BELOW = "below"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    MEASURED = "measured"


class Basis(StrEnum):
    """Which number of the measure is compared: its value, its baseline, the one over the other, or their difference."""

    VALUE = "value"
    BASELINE = "baseline"
    RATIO_TO_BASELINE = "ratio_to_baseline"
    RISE = "rise"


@dataclass(frozen=True, slots=True)
class Leaf:
    """`basis` of `signal`, compared with the threshold named `threshold`, or with the value of `than_signal`.

    `times`, when not empty, names the threshold by which the other signal's value is multiplied.
    """

    signal: str
    comparison: Comparison
    basis: Basis
    threshold: str | None
    than_signal: str | None
    times: str = ""


@dataclass(frozen=True, slots=True)
class LogLeaf:
    """True when the log pyramid holds at least `at_least` events of a rule inside the incident's window."""

    rule: str
    at_least: int


@dataclass(frozen=True, slots=True)
class All:
    """Yes when every part is yes; no when any part is no; else unknown."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Yes when any part is yes; no when every part is no; else unknown."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class FirstKnown:
    """The answer of the first part that has one: ways to see the same thing on different servers, the best first."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """The answer of `part` where `signal` is measured, unknown elsewhere: it only applies to such servers."""

    signal: str
    part: Condition


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    part: Condition


Condition = Leaf | LogLeaf | All | AnyOf | FirstKnown | Where | Not


def signals_of(condition: Condition) -> frozenset[str]:
    """Every signal that a condition looks at."""
    match condition:
        case Leaf(signal=signal, than_signal=than):
            return frozenset({signal, than}) if than else frozenset({signal})
        case LogLeaf():
            return frozenset()
        case Where(signal=signal, part=part):
            return signals_of(part) | {signal}
        case Not(part=part):
            return signals_of(part)
        case All(parts=parts) | AnyOf(parts=parts) | FirstKnown(parts=parts):
            return frozenset().union(*(signals_of(part) for part in parts))


@dataclass(frozen=True, slots=True)
class Question:
    """A node that asks: where to go on yes, on no, and when it cannot be told. All three are always present."""

    id: str
    text: str
    condition: Condition
    yes: str
    no: str
    unknown: str
    gate: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """A leaf of the tree: the id of a cause rule, or, where `cause` is None, the words that say why none is named."""

    id: str
    cause: str | None
    title: str = ""
    meaning: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Playbook:
    """A decision tree: named thresholds in one block, a first node, questions and verdicts by id."""

    id: str
    title: str
    symptom: str
    start: str
    thresholds: tuple[tuple[str, float], ...]
    questions: tuple[Question, ...]
    verdicts: tuple[Verdict, ...]

    def threshold(self, name: str) -> float:
        """A named threshold's value; the reader has checked that every name in use exists."""
        return dict(self.thresholds)[name]

    def node(self, node_id: str) -> Question | Verdict:
        """The node of that id; the reader has checked that every branch leads to one."""
        questions: dict[str, Question | Verdict] = {node.id: node for node in self.questions}
        return questions[node_id] if node_id in questions else {node.id: node for node in self.verdicts}[node_id]
