from __future__ import annotations

import pytest

from latencydoctor.errors import ContentError
from latencydoctor.stack.yaml_nodes import MAX_DEPTH, compose


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x\n", "f:2:4: YAML aliases are refused"),
        ("", "f: is empty"),
        ("a: [", "f:2:1: is not YAML"),
        ("a: \x07", "f: is not YAML"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), f"nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str, message: str) -> None:
    with pytest.raises(ContentError) as caught:
        compose(text, "f")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "f:1:1: the file must be a mapping"),
        ("a: 1\na: 2\n", "f:2:1: a is given twice"),
        ("[1]: 2\n", "f:1:1: a key must be a plain word"),
    ],
)
def test_a_mapping_has_plain_keys_given_once(text: str, message: str) -> None:
    _, problems = compose(text, "f")
    with pytest.raises(ContentError) as caught:
        problems.raise_any()
    assert message in str(caught.value)


def test_values_are_read_by_kind() -> None:
    top, problems = compose("text: abc\nnumber: 2.5\nwhole: 3\nswitch: yes\ninner: {x: 1}\n", "f")
    assert top.text("text", None) == "abc"
    assert top.number("number", None) == 2.5
    assert top.number("whole", None) == 3.0
    assert top.whole("whole", None) == 3
    assert top.switch("switch", False)
    assert top.inner("inner").whole("x", None) == 1
    assert top.inner("absent").whole("x", 7) == 7
    top.refuse_rest()
    assert top.keys() == ("text", "number", "whole", "switch", "inner")
    assert problems.found == []


def test_a_required_value_that_is_missing_is_named() -> None:
    top, problems = compose("a: 1\n", "f")
    top.number("weight", None)
    assert "weight is missing" in str(problems.found[0])


def test_a_value_with_a_broken_tag_is_a_wrong_value() -> None:
    top, problems = compose("a: !!int x\nb: !!python/object:os.system x\n", "f")
    top.whole("a", 1)
    top.whole("b", 1)
    assert len(problems.found) == 2
