"""The level of every line, in every format that has levels."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.levels import LEVELS, NONE, LevelCounter, LevelCounts, pattern_of, words_of

ENGINES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            find_spec(name) is None, reason=f"{name} is not installed: one of the two engines serves each platform"
        ),
    )
    for name in ("hyperscan", "re2")
]
COUNTERS = {name: LevelCounter(name) for name in ("hyperscan", "re2") if find_spec(name) is not None}
LINES = {
    "I1130 07:20:26.000000 1 a.cc:1] an ERROR in a text": "INFO",
    "2026-11-30T07:20:26Z W 1 a.cc:1] x": "WARNING",
    "WARNING 11-30 07:20:26 [a.py:1] x": "WARNING",
    "CRITICAL 11-30 07:20:26 [a.py:1] x": "CRITICAL",
    "INFO:     10.0.0.1:1 - GET / 200": "INFO",
    "2026-11-30T07:20:26,000 [WARN ] main org.x - x": "WARNING",
    "2026-11-30T07:20:26,000 [INFO ] W-9000-m-stdout MODEL_LOG - ERROR: x": "ERROR",
    "2026-11-30T07:20:26,000 [WARN ] W-9000-m-stderr MODEL_LOG - INFO: x": "INFO",
    "2026-11-30T07:20:26,000 [WARN ] W-9000-m-stderr MODEL_LOG - 10it/s": "WARNING",
    "INFO 2026-11-30T07:20:26.000Z [resource.labels.containerName: c] ERROR 11-30 07:20:26 [a.py:1] x": "ERROR",
    "2026-11-30T07:20:26.000000Z  INFO router: x": "INFO",
    '{"timestamp":"2026-11-30T07:20:26Z","level":"ERROR","fields":{"message":"x"}}': "ERROR",
    '{"severity":"warning","message":"an ERROR in a text"}': "WARNING",
    '{"message":"an ERROR in a text","level":"debug"}': "DEBUG",
    '{"log":"{\\"level\\":\\"info\\",\\"msg\\":\\"x\\"}\\n","stream":"stderr"}': "INFO",
    '{"PRIORITY":"3","MESSAGE":"x"}': "ERROR",
    '{"PRIORITY":"6","MESSAGE":"E1130 07:20:26.000000 1 a.cc:1] x"}': "ERROR",
    "[2026-11-30 07:20:26,000 E 1 2] (raylet) a.cc:1: x": "ERROR",
    "2026-11-30 07:20:26.000000001 [W:onnxruntime:, a.cc:1 f] x": "WARNING",
    "2026-11-30 07:20:26.000000: I tensorflow/a.cc:1] x": "INFO",
    "[11/30/2026-07:20:26] [TRT] [V] x": "DEBUG",
    "[F] [TRT] x": "CRITICAL",
    "2026/11/30 07:20:26 [warn] 7#7: *1 x": "WARNING",
    "7:M 30 Nov 2026 07:20:26.000 * x": "INFO",
    "7:M 30 Nov 2026 07:20:26.000 # x": "WARNING",
    'time="x" level=error msg="x"': "ERROR",
    "[2026-11-30 07:20:26 TP0] Decode batch. #running-req: 1": NONE,
    "\tat org.x.Y.z(Y.java:1)": NONE,
    "+-----+": NONE,
    "": NONE,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("line", LINES)
def test_one_line(engine: str, line: str) -> None:
    found = COUNTERS[engine].count(line.encode() + b"\n").histogram()
    assert {level for level, count in found.items() if count} == {LINES[line]}


@pytest.mark.parametrize("engine", ENGINES)
def test_many_lines_at_once_and_a_word_far_behind(engine: str) -> None:
    text = "\n".join([*LINES, "x" * 600 + " ERROR", "INFO without an end"])
    found = COUNTERS[engine].count(text.encode()).histogram()
    expected = {level: list(LINES.values()).count(level) for level in (*LEVELS, NONE)}
    expected["INFO"] += 1
    expected[NONE] += 1
    assert found == expected


def test_counts_add_up_and_nothing_is_no_line() -> None:
    total = LevelCounts()
    for data in (b"ERROR x\n", b"", b"x\nINFO\n"):
        total.add(COUNTERS["hyperscan"].count(data))
    assert {level: count for level, count in total.histogram().items() if count} == {"ERROR": 1, "INFO": 1, NONE: 1}


@given(st.lists(st.sampled_from([*LINES, "\x00\xff", "MODEL_LOG - ", "\r"])), st.integers(1, 5))
def test_any_cut_at_line_ends_gives_the_same(lines: list[str], size: int) -> None:
    counter = COUNTERS["hyperscan"]
    whole = counter.count("".join(f"{line}\n" for line in lines).encode())
    parts = LevelCounts()
    for start in range(0, len(lines), size):
        parts.add(counter.count("".join(f"{line}\n" for line in lines[start : start + size]).encode()))
    assert parts == whole


def test_a_level_has_one_pattern_and_its_words() -> None:
    assert "ERROR" in words_of("ERROR")
    assert "ERROR" in pattern_of("ERROR")
