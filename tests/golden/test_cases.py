"""Incidents from public records of real operators, each with the answer that its evidence allows.

Every file in `cases/` has one record's shape and ratios in numbers of our own, and no more than its reporter could see:
`signals` are `[during, before]` (before is null where the record has no history) or one value for a setting, `logs` are
counts by log rule (left out where no log was read). `expected` says the cause, null for "cannot tell", what else would
be right, and the missing signal that decides. `out_of_reach` says why no answer but "cannot tell" is possible.
`known_wrong` and `abstains` say why the tool does not give the expected answer; a case fails as soon as that changes.

`cases/README.md` is the table of all records and answers: `python -m tests.golden.test_cases` writes it anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from latencydoctor.content.everything import Content, read_everything
from latencydoctor.content.locate import locate
from latencydoctor.diagnosis.rank import Knowledge, diagnose
from latencydoctor.model.diagnosis import Confidence, Diagnosis
from latencydoctor.model.evidence import Evidence
from tests.unit.builders import event, evidence, gap, history

FOLDER = Path(__file__).with_name("cases")
TABLE = FOLDER / "README.md"
WITHOUT_FIGURES = Path(__file__).with_name("records_without_figures.yaml")
RECORDS = tuple(f"O-{number:02}" for number in range(1, 78))
CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Case:
    """One file; `right` holds every cause that would be a right answer, None for "cannot tell"."""

    id: str
    source: str
    server: str
    signals: dict[str, Any]
    logs: dict[str, int] | None
    cause: str | None
    right: frozenset[str | None]
    deciding: str
    out_of_reach: str
    known_wrong: str
    abstains: str

    @property
    def expected_outcome(self) -> str:
        if self.known_wrong:
            return "wrong"
        return "abstains" if self.abstains else "right"

    @property
    def why(self) -> str:
        return self.out_of_reach or self.known_wrong or self.abstains


def _case(path: Path) -> Case:
    top: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    expected: dict[str, Any] = top.pop("expected")
    return Case(
        id=top.pop("id"),
        source=top.pop("source"),
        server=top.pop("server"),
        signals=top.pop("signals"),
        logs=top.pop("logs", None),
        cause=expected["cause"],
        right=frozenset((expected["cause"], *expected.get("also_right", ()))),
        deciding=expected.get("deciding", ""),
        out_of_reach=top.pop("out_of_reach", ""),
        known_wrong=top.pop("known_wrong", ""),
        abstains=top.pop("abstains", ""),
        **top,
    )


PATHS = sorted(FOLDER.glob("*.yaml"))
CASES = [_case(path) for path in PATHS]


@cache
def content() -> Content:
    return read_everything(locate())


def seen(case: Case) -> Evidence:
    """The record's evidence as a diagnosis gets it: with the witness of each signal, without what was never read."""
    families = {name.id: name.family.value for name in content().signals}
    measures = [replace(one, family=families[one.signal]) for one in history(case.signals)]
    logs = () if case.logs is None else tuple(event(rule, count) for rule, count in case.logs.items())
    held = evidence(*measures, gaps=() if case.logs is not None else (gap("logs"),), events=logs)
    has_history = any(one.baseline is not None for one in measures)
    return held if has_history else replace(held, baseline_window=None)


@cache
def answers() -> dict[str, Diagnosis]:
    """Every case's diagnosis by the shipped rules and playbook."""
    (playbook,) = content().playbooks
    knowledge = Knowledge(playbook, content().causes)
    return {case.id: diagnose(seen(case), knowledge) for case in CASES}


def answer(case: Case) -> Diagnosis:
    return answers()[case.id]


def outcome(case: Case, found: Diagnosis) -> str:
    """Right, wrong, or abstains: "cannot tell" where the evidence would allow an answer."""
    cause = found.cause.id if found.cause else None
    if cause in case.right:
        return "right"
    return "abstains" if cause is None else "wrong"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_answer_is_as_the_case_says(case: Case) -> None:
    found = answer(case)
    said = f"{found.cause.id} ({found.cause.confidence})" if found.cause else CANNOT_TELL
    assert outcome(case, found) == case.expected_outcome, said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_names_only_what_exists(case: Case) -> None:
    assert case.source == f"O-{case.id[:2]}"
    signals = {name.id for name in content().signals}
    assert set(case.signals) <= signals
    assert {case.deciding} - {""} <= signals - set(case.signals)
    assert set(case.logs or ()) <= {rule.id for rule in content().log_rules}
    assert case.right - {None} <= {rule.id for rule in content().causes}
    assert not (case.known_wrong and case.abstains)
    assert not case.out_of_reach or case.cause is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_wrong_answer_is_given_with_confidence(case: Case) -> None:
    found = answer(case)
    if outcome(case, found) == "wrong":
        assert found.cause is not None
        assert found.cause.confidence is Confidence.LOW


def test_each_file_is_called_as_its_case() -> None:
    assert [case.id for case in CASES] == [path.stem for path in PATHS]


def test_every_record_is_a_case_or_has_no_figures() -> None:
    without = set(_without_figures())
    with_figures = {case.source for case in CASES}
    assert not without & with_figures
    assert without | with_figures == set(RECORDS)


def test_the_table_is_up_to_date() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "python -m tests.golden.test_cases writes it"


def _without_figures() -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(WITHOUT_FIGURES.read_text(encoding="utf-8"))
    return found


def _row(case: Case, found: Diagnosis) -> str:
    says = found.cause.id if found.cause else CANNOT_TELL
    confidence = found.cause.confidence.value if found.cause else ""
    judged = outcome(case, found) + (", out of reach" if case.out_of_reach else "")
    asks = found.deciding.signal if found.deciding and not case.out_of_reach else ""
    expected = case.cause or CANNOT_TELL
    others = sorted(one for one in case.right - {case.cause} if one)
    may = f" (or {', '.join(others)})" if others else ""
    file = f"[{case.source}]({case.id}.yaml)"
    cells = (file, case.server, says, confidence, judged, expected + may, asks, case.deciding, case.why)
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def table() -> str:
    """The page: the counts, then one line a record."""
    answered = [(case, answer(case)) for case in CASES]
    outcomes = [outcome(case, found) for case, found in answered]
    reach = sum(bool(case.out_of_reach) for case in CASES)
    rows = [(case.source, case.id, _row(case, found)) for case, found in answered]
    rows += [(source, "", f"| {source} | | | | | | | | {why} |") for source, why in _without_figures().items()]
    counts = ", ".join(f"{outcomes.count(name)} {name}" for name in ("right", "abstains", "wrong"))
    named = sum(found.cause is not None and outcome(case, found) == "right" for case, found in answered)
    records = len({case.source for case in CASES})
    return "\n".join(
        (
            "# What the tool answers on public records",
            "",
            "Written by `python -m tests.golden.test_cases` from the files beside it; do not edit. Each file has the",
            "shape and the ratios of one record of a real operator in other numbers, and no more than was seen there.",
            "*abstains*: the tool cannot tell, though the record settles it. *out of reach*: no metric could tell, so",
            '"cannot tell" is right. *asks for* is the missing signal that the tool says would decide most,',
            "*would decide* the one that would by the record.",
            "",
            f"{len(CASES)} incidents from {records} records: {counts}. Of the right ones {named} name a cause",
            f"and the others rightly say that it cannot be told; {reach} incidents are out of reach.",
            f"{len(_without_figures())} records have no figures.",
            "",
            "| record | server | the tool says | confidence | judged | right is | asks for | would decide | why |",
            "|---|---|---|---|---|---|---|---|---|",
            *(row for *_, row in sorted(rows)),
            "",
        )
    )


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
