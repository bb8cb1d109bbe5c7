"""The race's score: what each answer is worth, and the tables."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.faults import Case
from benchmarks.race_tools import NO_CAUSE, Answer
from benchmarks.race_words import INFERPILOT, OURS, VLLM_DOCTOR, has_a_word, meant

TOOLS = (OURS, VLLM_DOCTOR, INFERPILOT)
MARKS = {"right": "+", "wrong": "x", "silent": ".", "failed": "!"}


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer on one case."""

    case: Case
    answer: Answer

    @property
    def accepted(self) -> frozenset[str]:
        """The causes that are right; a symptom is none."""
        return frozenset({self.case.cause or "", *self.case.also_right})

    @property
    def words(self) -> tuple[str, ...]:
        """The answer's findings."""
        return self.answer.said.words if self.answer.said else ()

    @property
    def outcome(self) -> str:
        """`right`: the first finding names the cause, or there is none on a healthy case. `silent`: none on a fault.

        An incident that is reported without a cause is silent, too: it names nothing that could be wrong.
        """
        if self.answer.said is None:
            return "failed"
        if not self.words:
            return "right" if self.case.healthy else "silent"
        if self.words[0] == NO_CAUSE and not self.case.healthy:
            return "silent"
        return "right" if self._names(self.words[0]) else "wrong"

    @property
    def right(self) -> bool:
        """Whether it counts."""
        return self.outcome == "right"

    @property
    def right_somewhere(self) -> bool:
        """Whether any finding names the cause: what somebody might find who reads on and knows what to look for."""
        return self.right or any(self._names(word) for word in self.words)

    @property
    def advises_replicas(self) -> bool:
        """Whether the first finding advises more of them."""
        return self.answer.said is not None and self.answer.said.advises_replicas

    def _names(self, word: str) -> bool:
        return not self.case.healthy and bool(self.accepted & meant(self.answer.tool, word))


def share(judged: Sequence[Judged]) -> float:
    """The share of answers that are right; 0 of none."""
    return sum(one.right for one in judged) / len(judged) if judged else 0.0


def by_case(judged: Sequence[Judged]) -> list[str]:
    """A line for each case: the truth, and the first word of each tool with what it is worth."""
    lines = [f"{'case':<32}{'truth':<24}" + "".join(f"{tool:<32}" for tool in TOOLS).rstrip()]
    for case_id in dict.fromkeys(one.case.id for one in judged):
        mine = {one.answer.tool: one for one in judged if one.case.id == case_id}
        truth = next(iter(mine.values())).case.cause or "healthy"
        cells = (f"{MARKS[mine[tool].outcome]} {', '.join(mine[tool].words[:1]) or '-':<30}" for tool in TOOLS)
        lines.append(f"{case_id:<32}{truth:<24}{''.join(cells)}".rstrip())
    return [*lines, "+ right  x wrong  . names no cause of a fault  ! failed"]


def by_tool(judged: Sequence[Judged], versions: dict[str, str]) -> list[str]:
    """A row for each figure, a column for each tool."""
    columns = [_figures([one for one in judged if one.answer.tool == tool]) for tool in TOOLS]
    lines = [f"{'':<44}" + "".join(f"{f'{tool} {versions[tool]}':>22}" for tool in TOOLS)]
    lines += [f"{name:<44}" + "".join(f"{column[name]:>22}" for column in columns) for name in columns[0]]
    return lines


def _figures(mine: Sequence[Judged]) -> dict[str, str]:
    faults = [one for one in mine if not one.case.healthy]
    healthy = [one for one in mine if one.case.healthy]
    known = [one for one in faults if has_a_word(one.answer.tool, one.accepted)]
    fixed = [one for one in mine if one.case.do_not_scale]
    outcomes = Counter(one.outcome for one in faults)
    took_s = [one.answer.took_s for one in mine]
    codes = Counter(str(one.answer.exit_code) for one in faults)
    return {
        "right": f"{_of([one.right for one in mine])} = {share(mine):.2f}",
        "faults: cause named first": _of([one.right for one in faults]),
        "faults: named in any finding": _of([one.right_somewhere for one in faults]),
        "faults it has a word for: named first": _of([one.right for one in known]),
        "faults: something else named first": str(outcomes["wrong"]),
        "faults: no cause named": str(outcomes["silent"]),
        "healthy: nothing found": _of([one.right for one in healthy]),
        "do not scale: advises replicas": _of([one.advises_replicas for one in fixed]),
        "could not be run or read": str(sum(one.outcome == "failed" for one in mine)),
        "wall time, median": f"{statistics.median(took_s):.2f} s" if took_s else "-",
        "wall time, longest": f"{max(took_s):.2f} s" if took_s else "-",
        "exit codes on faults": ", ".join(f"{code} x{count}" for code, count in sorted(codes.items())),
        "exit codes on healthy cases": ", ".join(
            f"{code} x{count}" for code, count in sorted(Counter(str(one.answer.exit_code) for one in healthy).items())
        ),
    }


def _of(held: Sequence[bool]) -> str:
    return f"{sum(held)}/{len(held)}"


def misses(judged: Sequence[Judged], tool: str) -> list[str]:
    """What a tool got wrong, and where it said nothing, with all its findings."""
    mine = [one for one in judged if one.answer.tool == tool and not one.right]
    return [
        f"  {one.outcome:<8}{one.case.id:<32}{one.case.cause or 'healthy':<24}{', '.join(one.words) or '-'}"
        for one in mine
    ]


def replicas(judged: Sequence[Judged], tool: str) -> list[str]:
    """The cases where more replicas are the wrong reflex and a tool advises them."""
    mine = [one for one in judged if one.answer.tool == tool and one.case.do_not_scale and one.advises_replicas]
    return [one.case.id for one in mine]
