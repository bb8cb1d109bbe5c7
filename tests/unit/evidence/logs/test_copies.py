"""Copies of one event, and events that only look alike."""

from __future__ import annotations

import pytest

from tests.unit.log_builders import at, counts, rule, stamped

OOM = rule("oom", "no memory", numbers=(r"of (?P<asked>\d{1,9})",))
WHOLE_S = "2026-11-30T07:20:26Z "


def test_ranks_of_one_job_are_one_event_whatever_figures_they_tell() -> None:
    lines = [(n / 10, f"[rank{n}]: no memory on {n}") for n in range(8)]
    assert counts([OOM], stamped(*lines)) == {"oom": 1}
    assert counts([OOM], stamped(*lines, (20, "[rank0]: no memory on 0"))) == {"oom": 2}
    assert counts([OOM], stamped(*lines, (31, "[rank9]: no memory on 9"))) == {"oom": 2}
    assert counts([OOM], stamped((0, "[rank0]: no memory"), (0, "[rank1]: no memory left"))) == {"oom": 2}


def test_rank_may_stand_in_the_head_or_among_the_fields() -> None:
    heads = "".join(f"[2026-11-30 07:20:26 TP{n}] no memory\n" for n in range(8))
    assert counts([OOM], heads) == {"oom": 1}
    assert counts([OOM], stamped(*[(n / 100, f"no memory rank={n}") for n in range(4)])) == {"oom": 1}


def test_lines_without_a_prefix_among_those_of_ranks_are_theirs() -> None:
    lines = "".join(f"[2026-11-30 07:20:26 TP{n}] no memory\n" for n in range(3))
    assert counts([OOM], lines + "[2026-11-30 07:20:26] no memory\n") == {"oom": 1}
    assert counts([OOM], lines + "[2026-11-30 07:20:29] no memory\n") == {"oom": 2}


@pytest.mark.parametrize(("copies", "events"), [(1, 1), (2, 2), (7, 7), (8, 1), (9, 9), (16, 1)])
def test_equal_lines_are_ranks_only_in_the_number_of_a_job(copies: int, events: int) -> None:
    assert counts([OOM], f"{WHOLE_S}no memory\n" * copies) == {"oom": events}
    assert counts([OOM], "no memory\n" * copies) == {"oom": events}


def test_equal_lines_at_different_times_are_events() -> None:
    assert counts([OOM], stamped(*[(n / 100, "no memory") for n in range(8)])) == {"oom": 8}
    assert counts([OOM], "".join(f"2026-11-30T07:20:{n + 10}Z no memory\n" for n in range(0, 16, 2))) == {"oom": 8}


def test_line_that_was_written_twice_is_one_event() -> None:
    assert counts([OOM], f"{at(1.25)} no memory\n" * 3) == {"oom": 1}


def test_server_that_tells_what_its_back_end_told_is_no_further_event() -> None:
    inner = "2026-11-30 07:20:26.000001000 [E:onnxruntime:, a.cc:1 f] no memory of 512\n"
    outer = "E1130 07:20:26.001001 1 b.cc:2] onnx runtime error 6: no memory of {}\n"
    assert counts([OOM], inner + outer.format(512)) == {"oom": 1}
    assert counts([OOM], inner + outer.format(513)) == {"oom": 2}
    assert counts([OOM], inner + inner.replace("26.0", "26.1")) == {"oom": 2}


def test_dying_process_that_prints_its_exception_again_is_no_further_event() -> None:
    logged = f"{WHOLE_S}ERROR it failed\nTraceback (most recent call last):\n  frame\nValueError: no memory\n"
    again = "Process EngineCore_0:\nTraceback (most recent call last):\n  frame\nValueError: no memory\n"
    assert counts([OOM], logged + again) == {"oom": 1}
    assert counts([OOM], logged + again.removeprefix("Process EngineCore_0:\n")) == {"oom": 2}
    assert counts([OOM], again) == {"oom": 1}


def test_repeated_lines_count_as_often_as_they_say() -> None:
    line = "(Replica pid=7) no memory [repeated 12x across cluster]\n"
    assert counts([OOM], line) == {"oom": 12}
