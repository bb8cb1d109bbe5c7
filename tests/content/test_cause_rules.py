"""Every cause rule on evidence that confirms it and evidence that must not; the cases lie beside, one file a rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from latencydoctor.content.causes import load_causes
from latencydoctor.content.locate import locate
from latencydoctor.diagnosis.examine import examine
from latencydoctor.model.cause import CauseKind
from latencydoctor.remedy.catalog import FIXES
from tests.unit.builders import event, evidence, gap, history

FOLDER = Path(__file__).parent / "causes"
RULES = {rule.id: rule for rule in load_causes(locate())}
KINDS = {"fires", "silent", "threshold", "missing"}


@dataclass(frozen=True)
class Case:
    rule: str
    name: str
    kind: str
    signals: dict[str, Any]
    logs: dict[str, int]
    standing: str


def _cases(path: Path) -> list[Case]:
    items: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Case(path.stem, one["name"], one["kind"], one["signals"], one.get("logs", {}), one["standing"]) for one in items
    ]


CASES = [case for path in sorted(FOLDER.glob("*.yaml")) for case in _cases(path)]


@pytest.mark.parametrize("rule", RULES)
def test_rule_has_every_kind_of_case(rule: str) -> None:
    assert {case.kind for case in CASES if case.rule == rule} == KINDS


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if rule.fix], ids=lambda rule: rule.id)
def test_fix_is_in_the_catalogue(rule: Any) -> None:
    assert rule.fix in FIXES


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_standing_is_as_expected(case: Case) -> None:
    seen = evidence(
        *history(case.signals),
        gaps=() if case.logs else (gap("logs"),),
        events=tuple(event(rule, count) for rule, count in case.logs.items()),
    )
    (found,) = examine([RULES[case.rule]], seen)
    assert found.standing.value == case.standing, [(one.signal, one.answer.value) for one in found.findings]


@pytest.mark.parametrize(
    "rule", [one for one in RULES.values() if one.kind is CauseKind.CAUSE], ids=lambda rule: rule.id
)
def test_nothing_known_confirms_no_cause(rule: Any) -> None:
    (found,) = examine([rule], evidence(gaps=(gap("logs"),)))
    assert found.standing.value == "not evaluable"
