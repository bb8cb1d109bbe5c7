"""Log rule files: the fields, and every mistake at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.locate import ContentRoot, locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.errors import ContentErrors
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import Burst, NumberGate, Sequel

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
        ("above: 500", "above: 500, at_least_number: wait_ms", 9, "exactly one of"),
        ("unless: ['benign']", "unless: []", 7, "leave it out"),
        ("unless: ['benign']", "or: []", 7, "leave it out"),
        ("unless: ['benign']", "or: [{unless: [x]}]", 7, "match.or[0].any is missing"),
        ("unless: ['benign']", "level_at_least: LOUD", 7, "'LOUD', not one of"),
        ("unless: ['benign']", "programs: [tritn]", 7, "'tritn', not one of"),
        ("unless: ['benign']", "statuses: [500]", 7, "the first and the last"),
        ("unless: ['benign']", "statuses: [599, 500]", 7, "the first and the last"),
        ("unless: ['benign']", "statuses: [500, many]", 7, "must be a whole number, not 'many'"),
        ("unless: ['benign']", "burst: {count: 1, within_s: 60}", 7, "at least 2"),
        ("unless: ['benign']", "burst: {count: 2, within_s: 0}", 7, "above 0"),
        ("unless: ['benign']", "burst: {count: 2}", 7, "within_s is missing"),
        ("unless: ['benign']", "climbs: other", 7, "no number pattern has a group 'other'"),
        ("unless: ['benign']", "only_after: ['(']", 7, "'('"),
        ("unless: ['benign']", "echoes: []", 7, "leave it out"),
        ("unless: ['benign']", "recovered_by: {any: ['('], within_s: 60}", 7, "'('"),
        ("unless: ['benign']", "real_when: {any: [], within_s: 60}", 7, "matches nothing"),
        ("unless: ['benign']", "real_when: {any: [x], within: 60}", 7, "real_when.within_s is missing"),
        ("title: Slow", "title: Slow\nbenign: true", 5, "benign rule raises nothing"),
        ("title: Slow", "title: Slow\nbenign: true\necho_of: [other]", 4, "cannot be an echo"),
        ("title: Slow", "title: Slow\necho_of: [other]", 3, "'other', which is no log rule"),
        ("title: Slow", "title: Slow\necho_of: [slow]", 3, "echoes of each other"),
        ("remedy: hurry", "remdy: hurry", 12, "unknown key 'remdy'"),
    ],
)
def test_mistake_is_named_at_its_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in RULE
    found = problems(tmp_path, RULE.replace(old, new))
    assert any(error.startswith(f"rules/logs/area/slow.yaml:{line}:") and message in error for error in found), found


def test_what_makes_events_of_lines_is_read(tmp_path: Path) -> None:
    text = RULE.replace(
        "  unless: ['benign']\n",
        """\
  level_at_least: WARNING
  level_at_most: ERROR
  programs: [triton]
  statuses: [500, 599]
  burst: {count: 5, within_s: 60}
  climbs: wait_ms
  only_after: [ready]
  echoes: [again]
  not_after: {any: [start], within_s: 90}
  recovered_by: {any: [done], within_s: 30}
  real_when: {any: [lost], within_s: 10}
""",
    )
    original = RULE.replace("slow", "first")
    _, rule = load_log_rules(root(tmp_path, first=original, slow=text + "echo_of: [first]\n"), compiled=True)
    assert (rule.level_at_least, rule.level_at_most) == (Severity.WARNING, Severity.ERROR)
    assert (rule.programs, rule.statuses, rule.burst) == (("triton",), (500, 599), Burst(5, 60.0))
    assert (rule.climbs, rule.only_after, rule.echoes) == ("wait_ms", ("ready",), ("again",))
    assert rule.not_after == Sequel(("start",), 90.0)
    assert (rule.recovered_by, rule.real_when) == (Sequel(("done",), 30.0), Sequel(("lost",), 10.0))
    assert (rule.echo_of, rule.benign) == (("first",), False)


def test_gate_with_both_bounds(tmp_path: Path) -> None:
    (rule,) = load_log_rules(root(tmp_path, slow=RULE.replace("above: 500", "above: 500, below: 900")))
    assert rule.gate == NumberGate("wait_ms", above=500.0, below=900.0)


def test_ways_in_which_a_class_shows_have_conditions_of_their_own(tmp_path: Path) -> None:
    ways = """\
match:
  unless: [unused]
  or:
    - any: [waited]
      numbers: ['waited (?P<wait_ms>\\d{1,9})', 'of (?P<limit_ms>\\d{1,9})']
      gate: {number: wait_ms, above_number: limit_ms}
    - any: [stuck]
      burst: {count: 5, within_s: 60}
"""
    head, tail = RULE.index("match:"), RULE.index("meaning:")
    text = RULE[:head] + ways.replace("  unless: [unused]\n", "") + RULE[tail:]
    (rule,) = load_log_rules(root(tmp_path / "a", slow=text), compiled=True)
    assert (rule.patterns, rule.gate) == (("waited",), NumberGate("wait_ms", above_group="limit_ms"))
    (other,) = rule.variants
    assert (other.id, other.patterns, other.burst, other.gate) == ("slow", ("stuck",), Burst(5, 60.0), None)
    # Beside `or` alone, conditions would hold for nothing.
    found = problems(tmp_path / "b", RULE[:head] + ways + RULE[tail:])
    assert len(found) == 1
    assert "unknown key 'match.unless'" in found[0]


BENIGN = """\
id: dump
title: A dump of arguments
status: stable
level: INFO
benign: true
match:
  any: ['ServerArgs']
meaning: a server prints its settings
falsepositives: [none]
references: [none]
"""


def test_benign_rule_needs_no_remedy(tmp_path: Path) -> None:
    rule, _ = load_log_rules(root(tmp_path, dump=BENIGN, slow=RULE), compiled=True)
    assert (rule.benign, rule.patterns, rule.remedy) == (True, ("ServerArgs",), "")


def test_benign_rule_cannot_ask_about_events_nor_be_echoed(tmp_path: Path) -> None:
    bursting = BENIGN.replace("['ServerArgs']", "['ServerArgs']\n  burst: {count: 2, within_s: 60}")
    with pytest.raises(ContentErrors) as caught:
        load_log_rules(root(tmp_path, dump=bursting, slow=RULE + "echo_of: [dump]\n"), compiled=True)
    messages = [str(error) for error in caught.value.errors]
    assert any(":8:" in one and "burst has no meaning" in one for one in messages), messages
    assert any("benign and never raised" in one for one in messages), messages


def test_rules_that_echo_each_other_through_a_third(tmp_path: Path) -> None:
    files = {
        name: RULE.replace("slow", name) + f"echo_of: [{of}]\n" for name, of in (("a", "b"), ("b", "c"), ("c", "a"))
    }
    with pytest.raises(ContentErrors, match="echoes of each other"):
        load_log_rules(root(tmp_path, **files), compiled=True)


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
    mission = {
        "inference_timeout": "CRITICAL",
        "gpu_oom": "CRITICAL",
        "data_preprocess_fail": "ERROR",
        "model_load_error": "ERROR",
        "queue_delay": "WARNING",
        "batch_size_mismatch": "WARNING",
    }
    assert {rule_id: levels.get(rule_id) for rule_id in mission} == mission
