"""The page reader: what it takes, what it refuses, and where it says the fault lies."""

from __future__ import annotations

import contextlib
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.promql.page import PageError, Reading, is_openmetrics, read_page
from latencydoctor.evidence.promql.values import Labels


def read(page: str) -> list[Reading]:
    return list(read_page(page, {}))


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("a 1", (("__name__", "a"),), 1.0),
        ("vllm:running{} 2.5e3", (("__name__", "vllm:running"),), 2500.0),
        ('a{b="c",} +Inf', (("__name__", "a"), ("b", "c")), math.inf),
        ('a{ z = "1" , b="} 2 {" } -0.5', (("__name__", "a"), ("b", "} 2 {"), ("z", "1")), -0.5),
        ('a{b=""} 1', (("__name__", "a"),), 1.0),
        ('a{b="\\"\\\\\\n"} 1', (("__name__", "a"), ("b", '"\\\n')), 1.0),
        ("a\t1", (("__name__", "a"),), 1.0),
        ('a{b="ü\u2028x"} 1', (("__name__", "a"), ("b", "ü\u2028x")), 1.0),
    ],
)
def test_samples(line: str, labels: Labels, value: float) -> None:
    assert read(line + "\n") == [Reading(labels, value)]


def test_a_value_that_is_no_number_is_nan() -> None:
    assert math.isnan(read("a NaN\n")[0].value)


def test_times_are_milliseconds_in_text_and_seconds_in_openmetrics() -> None:
    assert read("a 1 1500\n")[0].own_time_ms == 1500
    assert read("a 1 1.5\n# EOF\n")[0].own_time_ms == 1500


def test_exemplars_are_not_taken_for_values() -> None:
    (reading,) = read('a_bucket{le="1"} 7 # {trace="x y"} 4 1.5\n# EOF\n')
    assert (reading.value, reading.own_time_ms) == (7.0, None)


@pytest.mark.parametrize(
    ("page", "line", "told"),
    [
        ("", 0, "empty"),
        ("\n\n", 0, "empty"),
        ("a 1\nb 2", 2, "breaks off"),
        ("a 1\n<!doctype html>\n", 2, "web page"),
        ("a 1_000\n", 1, "no number"),
        ("a \u0661\n", 1, "no number"),
        ("a 1\r\n", 1, "no number"),
        ("a\n", 1, "no sample"),
        (" a 1\n", 1, "no sample"),
        ("1a 1\n", 1, "no sample"),
        ('a{b="1} 1\n', 1, "no number"),
        ('a{b="1" c="2"} 1\n', 1, "unreadable labels"),
        ('a{b="1",b="2"} 1\n', 1, "twice"),
        ('a{__name__="b"} 1\n', 1, "twice"),
        ("a 1 2 3\n", 1, "unexpected"),
        ('a 1 # {x="1"} 2\n', 1, "unexpected"),
        ("a 1 soon\n", 1, "no time"),
        ("a 1 1_0\n", 1, "no time"),
        ("a 1 inf\n# EOF\n", 1, "no time"),
    ],
)
def test_refused(page: str, line: int, told: str) -> None:
    with pytest.raises(PageError) as error:
        read(page)
    assert error.value.line == line
    assert told in str(error.value)


def test_messages_are_short_and_show_no_control_characters() -> None:
    with pytest.raises(PageError) as error:
        read("a \x1b[31m" + "x" * 1000 + "\n")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 120


def test_a_line_of_a_hundred_thousand_labels_is_quick() -> None:
    labels = ",".join(f'l{number}="v"' for number in range(100_000))
    started_s = time.process_time()
    (reading,) = read(f"a{{{labels}}} 1\n")
    assert time.process_time() - started_s < 10
    assert len(reading.labels) == 100_001


def test_known_heads_are_read_alike_the_second_time() -> None:
    heads: dict[str, Labels] = {}
    page = 'a{b="1"} 1\na{b="2"} 2 99\nc 3\n# EOF was no end\n'
    assert list(read_page(page, heads)) == list(read_page(page, heads))


def test_unwanted_lines_carry_their_name_alone() -> None:
    heads: dict[str, Labels] = {}
    for _ in range(2):
        told = [reading.labels for reading in read_page('a{b="1"} 1\nz{b="1"} 2\nz{b="2"} 3\nz 4\n', heads, ("a",))]
        assert told == [(("__name__", "a"), ("b", "1")), *[(("__name__", "z"),)] * 3]
    with pytest.raises(PageError, match="line 1"):
        list(read_page('z{b="1"} x\n', heads, ("a",)))


def test_openmetrics_is_known_by_its_end() -> None:
    assert is_openmetrics("# EOF")
    assert is_openmetrics("a 1\n# EOF\n")
    assert not is_openmetrics("a 1\n")


@given(
    st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), st.text(min_size=1, max_size=8), max_size=4)
)
def test_any_label_value_comes_back(labels: dict[str, str]) -> None:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    labels.pop("__name__", None)
    text = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    (reading,) = read(f"a{{{text}}} 1\n")
    assert dict(reading.labels) == {"__name__": "a", **labels}


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PageError):
        assert isinstance(read(text), list)
