"""Every log rule on lines that must raise it and lines that must not; the cases lie beside as data, one file a rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from latencydoctor.content.locate import locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.evidence.logs.blocks import whole_lines
from latencydoctor.evidence.logs.reader import LogReader, scanner_for
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.evidence import LogEvent

FOLDER = Path(__file__).parent / "logs"
RULES = load_log_rules(locate())
SCANNER = scanner_for(RULES)
REFERENCE_S = 1_796_100_000.0
KINDS = {"fires", "silent", "threshold", "missing"}


@dataclass(frozen=True)
class Case:
    rule: str
    name: str
    kind: str
    log: str
    events: dict[str, int]
    numbers: dict[str, float]


def _cases(path: Path) -> list[Case]:
    items: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Case(path.stem, one["name"], one["kind"], one["log"], one["events"], one.get("numbers", {})) for one in items
    ]


CASES = [case for path in sorted(FOLDER.glob("*.yaml")) for case in _cases(path)]


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_rule_has_every_kind_of_case(rule: str) -> None:
    assert {case.kind for case in CASES if case.rule == rule} == KINDS


def read(case: Case, scanner: Scanner) -> tuple[LogEvent, ...]:
    reader = LogReader(RULES, scanner=scanner)
    reader.read("test.log", whole_lines([case.log.encode()]), REFERENCE_S)
    return reader.events()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_pyramid_is_as_expected(case: Case) -> None:
    events = {event.rule: event for event in read(case, SCANNER)}
    assert {rule: event.count for rule, event in events.items()} == case.events
    if case.numbers:
        assert dict(events[case.rule].numbers) == pytest.approx(case.numbers)


def test_both_engines_agree() -> None:
    pytest.importorskip("re2", reason="google-re2 stands in where hyperscan has no wheel")
    fallback = scanner_for(RULES, "re2")
    for case in CASES:
        assert read(case, fallback) == read(case, SCANNER), case.name
