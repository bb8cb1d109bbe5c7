"""Scores of the log exam: what was found of what a file holds, file by file, and the tables made of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.log_corpus.compose import Expected
from benchmarks.log_corpus.records import Signature

START_WITHIN_S = 1.0
NOT_CLASSES = frozenset({"unclassified"})
"""What a reader may say beside the classes: loud lines that it does not know."""


@dataclass(frozen=True, slots=True)
class Found:
    """One class that the program found in a file."""

    rule: str
    severity: str
    count: int
    first_s: float | None
    line: str


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a file, and what it was made of."""

    expected: tuple[Expected, ...]
    traps: tuple[Signature, ...]
    benign_lines: int
    programs: tuple[str, ...]
    stack: tuple[str, ...]
    damage: str
    packing: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One signature in one file: `rule` is what it was taken for, empty when it was missed."""

    signature: str
    wanted: str
    rule: str
    exact: bool
    start_off_s: float | None
    counted: int
    count: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Judged:
    """One file: its signatures' outcomes and what was raised without reason."""

    truth: Truth
    outcomes: tuple[Outcome, ...]
    false: tuple[Found, ...]
    unclassified: int


def judge(truth: Truth, found: Sequence[Found]) -> Judged:
    """Compare what was found in a file with what is in it; INFO is no alarm."""
    loud = {one.rule: one for one in found if one.severity != "INFO" and one.rule not in NOT_CLASSES}
    outcomes = tuple(_outcome(expected, loud) for expected in truth.expected)
    excused = {name for one in truth.expected for name in (*one.signature.classes, *one.signature.also)}
    excused |= {name for trap in truth.traps for name in trap.also}
    any_other = any(trap.any_other for trap in truth.traps) or any(one.signature.any_other for one in truth.expected)
    never = {name for trap in truth.traps for name in trap.never}
    false = [one for rule, one in loud.items() if rule not in excused and (not any_other or rule in never)]
    return Judged(truth, outcomes, tuple(false), sum(one.rule in NOT_CLASSES for one in found))


def _outcome(expected: Expected, loud: dict[str, Found]) -> Outcome:
    signature = expected.signature
    found = next((loud[name] for name in signature.classes if name in loud), None)
    if found is None:
        return Outcome(signature.id, signature.classes[0], "", False, None, 0, expected.count)
    low, high = expected.count
    off_s = None
    if expected.starts_s:
        told_s = found.first_s
        off_s = float("inf") if told_s is None else min((told_s - at_s for at_s in expected.starts_s), key=abs)
    exact = low <= found.count <= high
    return Outcome(signature.id, signature.classes[0], found.rule, exact, off_s, found.count, expected.count)


@dataclass(slots=True)
class ClassScore:
    """Files in which a class was there and found, there and missed, or raised without reason."""

    right: int = 0
    missed: int = 0
    false: int = 0

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.false) if self.right + self.false else 0.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 0.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def class_scores(judged: Iterable[Judged]) -> dict[str, ClassScore]:
    """Scores by class: every class that was expected or raised, so a class that only raises falsely counts as 0."""
    scores: dict[str, ClassScore] = defaultdict(ClassScore)
    for file in judged:
        for outcome in file.outcomes:
            if outcome.rule:
                scores[outcome.wanted].right += 1
            else:
                scores[outcome.wanted].missed += 1
        for found in file.false:
            scores[found.rule].false += 1
    return dict(scores)


def figures(judged: Sequence[Judged]) -> dict[str, float]:
    """The three figures of the exam, and the share of starts that are right within a second."""
    scores = class_scores(judged)
    outcomes = [outcome for file in judged for outcome in file.outcomes]
    starts = [outcome.start_off_s for outcome in outcomes if outcome.start_off_s is not None]
    benign = sum(file.truth.benign_lines for file in judged)
    critical = sum(found.count for file in judged for found in file.false if found.severity == "CRITICAL")
    return {
        "macro_f1": sum(one.f1 for one in scores.values()) / len(scores) if scores else 0.0,
        "false_critical_per_million": critical / benign * 1e6 if benign else 0.0,
        "event_count_exact": _share(outcome.exact for outcome in outcomes),
        "start_within_1s": _share(abs(off_s) <= START_WITHIN_S for off_s in starts),
    }


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 1.0


def class_table(judged: Sequence[Judged]) -> list[str]:
    """A line a class, worst first."""
    rows = [f"{'class':24} {'there':>6} {'found':>6} {'false':>6} {'precision':>10} {'recall':>7} {'F1':>6}"]
    scores = class_scores(judged)
    for name, one in sorted(scores.items(), key=lambda item: (item[1].f1, item[0])):
        there = one.right + one.missed
        rows.append(
            f"{name:24} {there:6} {one.right:6} {one.false:6} {one.precision:10.3f} {one.recall:7.3f} {one.f1:6.3f}"
        )
    return rows


def group_table(judged: Sequence[Judged], title: str, groups_of: Callable[[Judged], Iterable[str]]) -> list[str]:
    """What went wrong by program, wrapper, damage or packing, worst first."""
    there: Counter[str] = Counter()
    wrong: dict[str, Counter[str]] = defaultdict(Counter)
    for file in judged:
        for name in groups_of(file):
            there[name] += len(file.outcomes)
            wrong[name]["missed"] += sum(not outcome.rule for outcome in file.outcomes)
            wrong[name]["count"] += sum(bool(outcome.rule) and not outcome.exact for outcome in file.outcomes)
            wrong[name]["start"] += sum(_late(outcome) for outcome in file.outcomes)
            wrong[name]["false"] += len(file.false)
    rows = [f"{title:24} {'there':>6} {'missed':>7} {'count':>6} {'start':>6} {'false':>6}"]
    worst = sorted(wrong, key=lambda name: (-sum(wrong[name].values()) / max(there[name], 1), name))
    for name in worst:
        one = wrong[name]
        cells = f"{one['missed']:7} {one['count']:6} {one['start']:6} {one['false']:6}"
        rows.append(f"{name:24} {there[name]:6} {cells}")
    return rows


def _late(outcome: Outcome) -> bool:
    return outcome.start_off_s is not None and abs(outcome.start_off_s) > START_WITHIN_S


def signature_table(judged: Sequence[Judged]) -> list[str]:
    """The signatures with a fault of any kind, worst first: how often which, and where the first few were."""
    faults: dict[str, Counter[str]] = defaultdict(Counter)
    shown: Counter[str] = Counter()
    places: dict[str, list[str]] = defaultdict(list)
    for file in judged:
        for outcome in file.outcomes:
            shown[outcome.signature] += 1
            wrong = _faults(outcome)
            faults[outcome.signature].update(wrong)
            if wrong and len(places[outcome.signature]) < 3:
                where = "+".join((*file.truth.stack, file.truth.damage, file.truth.packing))
                off_s = "" if outcome.start_off_s is None else f" {outcome.start_off_s:+.1f} s"
                places[outcome.signature].append(f"{where} {outcome.counted} of {outcome.count}{off_s}")
    worst = sorted(places, key=lambda name: (-sum(faults[name].values()) / shown[name], name))
    rows = []
    for name in worst:
        kinds = ", ".join(f"{kind} {count}" for kind, count in faults[name].most_common())
        rows.append(f"{name:34} {shown[name]:4} times: {kinds}")
        rows.extend(f"    {place}" for place in places[name])
    return rows


def _faults(outcome: Outcome) -> list[str]:
    if not outcome.rule:
        return ["missed"]
    found = [] if outcome.exact else ["too few" if outcome.counted < outcome.count[0] else "too many"]
    return [*found, "start"] if _late(outcome) else found


def false_table(judged: Sequence[Judged], *, lines: bool) -> list[str]:
    """What was raised without reason: class, level, how often, after which trap (one a file in the sweep)."""
    seen: Counter[tuple[str, str, str]] = Counter()
    example: dict[tuple[str, str, str], str] = {}
    for file in judged:
        beside = " ".join(trap.id for trap in file.truth.traps) if len(file.truth.traps) == 1 else ""
        cause = beside or ("beside " + "/".join(file.truth.programs) + " " + "+".join(
            outcome.signature for outcome in file.outcomes
        ))  # fmt: skip
        for found in file.false:
            key = (found.rule, found.severity, cause)
            seen[key] += 1
            example[key] = found.line
    return [
        f"{rule:24} {severity:8} {count:5}  {cause}"
        + (f"\n    {example[rule, severity, cause][:200]}" if lines else "")
        for (rule, severity, cause), count in seen.most_common(60)
    ]
