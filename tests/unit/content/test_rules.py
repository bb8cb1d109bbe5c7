"""Log rule files: the fields, and every mistake at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.locate import ContentRoot, locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.errors import ContentErrors
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import NumberGate

RULE = """\
id: slow
title: Slow
status: stable
level: WARNING
match:
  any: ['waited']
  unless: ['benign']
  numbers: ['waited (?P<wait_ms>\\d{1,9})']
  gate: {number: wait_ms, above: 500}
meaning: it waits
falsepositives: [none]
remedy: hurry
references: [none]
"""


def root(folder: Path, **files: str) -> ContentRoot:
    (folder / "rules" / "logs" / "area").mkdir(parents=True)
    for name, text in files.items():
        (folder / "rules" / "logs" / "area" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return ContentRoot(folder, "checkout")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ContentErrors) as caught:
        load_log_rules(root(folder, slow=text), compiled=True)
    return [str(error) for error in caught.value.errors]


def test_rule_is_read(tmp_path: Path) -> None:
    (rule,) = load_log_rules(root(tmp_path, slow=RULE), compiled=True)
    assert (rule.id, rule.level, rule.patterns, rule.unless) == ("slow", Severity.WARNING, ("waited",), ("benign",))
    assert rule.gate == NumberGate("wait_ms", above=500.0)


def test_gate_between_two_numbers(tmp_path: Path) -> None:
    text = RULE.replace("above: 500", "at_least_number: wait_ms, when_absent: counts")
    (rule,) = load_log_rules(root(tmp_path, slow=text))
    assert rule.gate == NumberGate("wait_ms", at_least_group="wait_ms", counts_when_absent=True)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("id: slow", "id: quick", 1, "the file is called 'slow'"),
        ("level: WARNING", "level: LOUD", 4, "'LOUD', not one of"),
        ("['waited']", "['wai(ted', 'fine']", 6, "'wai(ted'"),
        ("['waited']", "[]", 6, "matches nothing"),
        ("['benign']", "['x*']", 7, "'x*'"),
        ("\\d{1,9}", "\\d+", 8, "without an upper bound"),
        ("(?P<wait_ms>\\d{1,9})", "[", 8, "no regular expression"),
        ("?P<wait_ms>", "", 8, "no named group"),
        ("number: wait_ms", "number: other", 9, "no number pattern has a group 'other'"),
        (", above: 500", "", 9, "exactly one of"),
        ("remedy: hurry", "remdy: hurry", 12, "unknown key 'remdy'"),
    ],
)
def test_mistake_is_named_at_its_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in RULE
    found = problems(tmp_path, RULE.replace(old, new))
    assert any(error.startswith(f"rules/logs/area/slow.yaml:{line}:") and message in error for error in found), found


def test_all_mistakes_of_all_files_at_once(tmp_path: Path) -> None:
    broken = RULE.replace("level: WARNING", "level: LOUD").replace("remedy: hurry\n", "")
    with pytest.raises(ContentErrors) as caught:
        load_log_rules(root(tmp_path, slow=broken, other=RULE, worst="- a list"))
    assert len(caught.value.errors) >= 4


def test_two_files_with_one_id(tmp_path: Path) -> None:
    content = root(tmp_path, slow=RULE)
    (tmp_path / "rules" / "logs" / "slow.yaml").write_text(RULE, encoding="utf-8")
    with pytest.raises(ContentErrors, match="another file has the id 'slow'"):
        load_log_rules(content)


def test_no_rules_at_all(tmp_path: Path) -> None:
    with pytest.raises(ContentErrors, match="there are no log rules"):
        load_log_rules(root(tmp_path))


def test_the_missions_six_classes_are_there() -> None:
    levels = {rule.id: rule.level.value for rule in load_log_rules(locate())}
    assert levels == {
        "inference_timeout": "CRITICAL",
        "gpu_oom": "CRITICAL",
        "data_preprocess_fail": "ERROR",
        "model_load_error": "ERROR",
        "queue_delay": "WARNING",
        "batch_size_mismatch": "WARNING",
    }
