"""What follows from an event is folded into it; each span at its border."""

from __future__ import annotations

import pytest

from tests.unit.log_builders import echoes, rule, stamped

DEATH = rule("death", "died")
ECHO = rule("broken", "broken", echo_of=("death",))
FAR = rule("failed", "failed", echo_of=("broken",))
KILL = rule("kill", "killed", echoes=("reaped", "invoked"))
RULES = [DEATH, ECHO, FAR]


@pytest.mark.parametrize(("gap", "folds"), [(0, True), (30, True), (31, False), (-5, True), (-6, False)])
def test_other_class_is_an_echo_up_to_half_a_minute_after_and_five_seconds_before(gap: float, folds: bool) -> None:
    lines = sorted([(50.0, "died"), (50.0 + gap, "broken")])
    expected = {"death": (1, 1)} if folds else {"death": (1, 0), "broken": (1, 0)}
    assert echoes(RULES, stamped(*lines)) == expected


def test_one_line_of_both_classes_is_the_original() -> None:
    assert echoes(RULES, stamped((0, "broken: it died"))) == {"death": (1, 1)}


def test_echoes_keep_an_event_alive_and_echo_each_other() -> None:
    lines = [(0.0, "died"), (20.0, "broken"), (45.0, "broken"), (70.0, "failed"), (95.0, "broken")]
    assert echoes(RULES, stamped(*lines)) == {"death": (1, 4)}


def test_what_nothing_precedes_is_an_event_of_its_own() -> None:
    assert echoes(RULES, stamped((0, "broken"), (20, "failed"))) == {"broken": (1, 1)}


def test_echo_that_waited_is_folded_with_its_own_echoes() -> None:
    assert echoes(RULES, stamped((0, "broken"), (1, "failed"), (3, "died"))) == {"death": (1, 2)}


def test_lines_without_times_are_told_by_their_distance() -> None:
    assert echoes(RULES, "died\nbroken\n") == {"death": (1, 1)}
    assert echoes(RULES, "died\n" + "fine\n" * 60 + "broken\n") == {"death": (1, 0), "broken": (1, 0)}


@pytest.mark.parametrize(("gap", "folds"), [(30, True), (31, False), (-10, True), (-11, False)])
def test_line_tells_again_what_its_class_has_told_close_by(gap: float, folds: bool) -> None:
    lines = sorted([(50.0, "killed"), (50.0 + gap, "reaped")])
    assert echoes([KILL], stamped(*lines)) == {"kill": (1, 1) if folds else (2, 0)}


def test_every_main_line_is_an_event() -> None:
    lines = [(0.0, "invoked"), (1.0, "killed"), (2.0, "reaped"), (8.0, "invoked"), (9.0, "killed"), (9.5, "reaped")]
    assert echoes([KILL], stamped(*lines)) == {"kill": (2, 4)}


def test_lines_that_tell_again_of_nothing_are_one_event_together() -> None:
    assert echoes([KILL], stamped((0, "reaped"), (20, "invoked"), (40, "reaped"), (90, "reaped"))) == {"kill": (2, 2)}


def test_line_that_tells_and_tells_again_is_an_echo() -> None:
    assert echoes([KILL], stamped((0, "killed"), (1, "killed and reaped"))) == {"kill": (1, 1)}


def test_line_that_tells_again_may_echo_another_class() -> None:
    kill = rule("kill", "killed", echoes=("reaped",), echo_of=("death",))
    assert echoes([DEATH, kill], stamped((0, "died"), (5, "reaped"))) == {"death": (1, 1)}


def test_rows_of_a_table_tell_again_however_late() -> None:
    table = "2026-11-30T07:29:00Z models:\n+---+\n| a | it died |\n| b | it died |\n+---+\n"
    assert echoes(RULES, stamped((0, "died")) + table) == {"death": (1, 1)}
    assert echoes(RULES, table) == {"death": (1, 0)}
    assert echoes([DEATH], stamped((0, "died")) + table) == {"death": (1, 1)}


def test_memory_is_bounded_when_echoes_wait() -> None:
    lines = [(n / 100, f"broken {n}") for n in range(400)]
    assert echoes(RULES, stamped(*lines, (4.5, "died")))["death"][1] >= 64
