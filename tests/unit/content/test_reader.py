"""The strict reader: typed fields, and every problem at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.reader import Mapping, Problems, load_mapping, parse_mapping
from latencydoctor.errors import ContentErrors


def parsed(text: str) -> tuple[Mapping, Problems]:
    problems = Problems()
    mapping = parse_mapping(text, "rule.yaml", problems)
    assert mapping is not None, problems.found
    return mapping, problems


def messages(problems: Problems) -> list[str]:
    return [str(error) for error in problems.found]


def test_takes_each_type() -> None:
    mapping, problems = parsed(
        "a: word\nb: 1.5\nc: 3\nd: true\ne: [x, y]\nf: {g: 1}\nh: low\ni: [{j: k}]\nl: {m: {n: o}}\n"
    )
    assert mapping.text("a") == "word"
    assert mapping.number("b") == 1.5
    assert mapping.whole("c") == 3
    assert mapping.number("c") == 3.0
    assert mapping.flag("d") is True
    assert mapping.texts("e") == ("x", "y")
    assert mapping.numbers("f") == (("g", 1.0),)
    assert mapping.choice("h", ("high", "low")) == "low"
    assert mapping.scalar("c") == 3
    assert [item.text("j") for item in mapping.mappings("i")] == ["k"]
    assert [(name, item.text("n")) for name, item in mapping.entries("l")] == [("m", "o")]
    assert mapping.names == ("a", "b", "c", "d", "e", "f", "h", "i", "l")
    assert "a" in mapping
    assert "z" not in mapping
    mapping.close()
    problems.raise_any()


def test_absent_fields_give_their_defaults_without_a_problem() -> None:
    mapping, problems = parsed("a: 1\n")
    assert mapping.text("t", "") == ""
    assert mapping.number("n", 2) == 2.0
    assert mapping.whole("w", 4) == 4
    assert mapping.flag("f", True) is True
    assert mapping.texts("l", ("d",)) == ("d",)
    assert mapping.mapping("m", None) is None
    assert mapping.mappings("ms", ()) == ()
    assert list(mapping.entries("e", None)) == []
    assert mapping.numbers("ns", None) == ()
    assert mapping.choice("c", ("x", "y"), "y") == "y"
    assert problems.found == []


def test_missing_required_fields_are_noted_at_the_mapping() -> None:
    mapping, problems = parsed("\na: 1\n")
    mapping.text("t")
    mapping.number("n")
    mapping.whole("w")
    mapping.flag("f")
    mapping.texts("l")
    mapping.mapping("m")
    mapping.mappings("ms")
    mapping.scalar("s")
    mapping.choice("c", ("x",))
    assert messages(problems) == [
        f"rule.yaml:2:1: {key} is missing" for key in ("t", "n", "w", "f", "l", "m", "ms", "s", "c")
    ]


@pytest.mark.parametrize(
    ("text", "taker", "message"),
    [
        ("k: no", "text", "rule.yaml:1:4: k must be text, not False"),
        ("k: 2026-01-01", "text", "rule.yaml:1:4: k must be text, not datetime.date(2026, 1, 1)"),
        ("k: ''", "text", "rule.yaml:1:4: k must be text, not ''"),
        ("k:", "text", "rule.yaml:1:3: k must be text, not None"),
        ("k: [1]", "text", "rule.yaml:1:4: k must be text, not a list or mapping"),
        ("k: true", "number", "rule.yaml:1:4: k must be a finite number, not True"),
        ("k: .nan", "number", "rule.yaml:1:4: k must be a finite number, not nan"),
        ("k: 1.5", "whole", "rule.yaml:1:4: k must be a whole number, not 1.5"),
        ("k: 1", "flag", "rule.yaml:1:4: k must be true or false, not 1"),
        ("k: 1", "texts", "rule.yaml:1:4: k must be a list"),
        ("k: [a, 1]", "texts", "rule.yaml:1:8: k[1] must be text, not 1"),
        ("k: [a, [b]]", "texts", "rule.yaml:1:8: k[1] must be text, not a list or mapping"),
        ("k: 1", "mapping", "rule.yaml:1:4: k must be a mapping of names to values"),
        ("k: [1]", "mappings", "rule.yaml:1:5: k[0] must be a mapping of names to values"),
        ("k: {a: b}", "numbers", "rule.yaml:1:8: k.a must be a finite number, not 'b'"),
        ("k: {a: b}", "scalar", "rule.yaml:1:4: k must be a single value, not a list or mapping"),
    ],
)
def test_wrong_types_are_noted_where_they_stand(text: str, taker: str, message: str) -> None:
    mapping, problems = parsed(text)
    getattr(mapping, taker)("k")
    assert messages(problems) == [message]


def test_a_word_outside_the_choice_is_noted() -> None:
    mapping, problems = parsed("k: middle")
    assert mapping.choice("k", ("high", "low")) == "high"
    assert messages(problems) == ["rule.yaml:1:4: k is 'middle', not one of: high, low"]


def test_unknown_keys_are_refused_and_the_known_ones_named() -> None:
    mapping, problems = parsed("a: 1\nbb: {c: 2}\n")
    mapping.whole("a")
    inner = mapping.mapping("bb")
    assert inner is not None
    inner.close()
    mapping.close()
    assert messages(problems) == ["rule.yaml:2:9: unknown key 'bb.c'"]
    mapping2, problems2 = parsed("a: 1\nz: 2\n")
    mapping2.whole("a")
    mapping2.close()
    assert messages(problems2) == ["rule.yaml:2:4: unknown key 'z'"]
    assert problems2.found[0].hint == "Known here: a."


def test_the_callers_own_problems_carry_the_place() -> None:
    mapping, problems = parsed("a: 1\nb: 2\n")
    mapping.problem("b is odd", "b", hint="Make it even.")
    with pytest.raises(ContentErrors, match=r"rule.yaml:2:4: b is odd") as caught:
        problems.raise_any()
    assert caught.value.hint == "Make it even."


def test_keys_given_twice_or_not_plain_are_refused() -> None:
    _, problems = parsed("a: 1\na: 2\n[b]: 3\n")
    assert messages(problems) == ["rule.yaml:2:1: a is given twice", "rule.yaml:3:1: a key must be a plain word"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x\n", "rule.yaml:2:4: YAML aliases are refused"),
        ("a: [", "rule.yaml:2:1: is not YAML: did not find expected node content"),
        ("", "rule.yaml: is empty"),
        ("- a", "rule.yaml:1:1: the file must be a mapping of names to values"),
        ("a: " + "[" * 40 + "]" * 40, "rule.yaml:1:33: is nested deeper than 30 levels"),
        ("a: \x07", "rule.yaml: is not YAML"),
    ],
)
def test_what_is_no_plain_yaml_mapping_is_noted(text: str, message: str) -> None:
    problems = Problems()
    assert parse_mapping(text, "rule.yaml", problems) is None
    assert messages(problems)[0].startswith(message)


def test_files_are_read_within_bounds(tmp_path: Path) -> None:
    problems = Problems()
    assert load_mapping(tmp_path / "absent.yaml", problems, "absent.yaml") is None
    (tmp_path / "big.yaml").write_text("#" * 300_000)
    assert load_mapping(tmp_path / "big.yaml", problems, "big.yaml") is None
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    assert load_mapping(tmp_path / "latin.yaml", problems, "latin.yaml") is None
    assert messages(problems) == [
        "absent.yaml: cannot be read: No such file or directory",
        "big.yaml: is larger than 256 kB",
        "latin.yaml: is not UTF-8 text",
    ]
    (tmp_path / "good.yaml").write_text("a: b")
    good = load_mapping(tmp_path / "good.yaml", Problems())
    assert good is not None
    assert str(good.location("a")) == f"{tmp_path / 'good.yaml'}:1:4"


def test_a_date_that_is_none_stays_text() -> None:
    mapping, problems = parsed("a: 2026-13-45")
    assert mapping.text("a") == "2026-13-45"
    assert problems.found == []
