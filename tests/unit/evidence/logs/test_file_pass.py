"""One pass over one stream: who told, when, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.evidence.logs.blocks import Seam, whole_lines
from latencydoctor.evidence.logs.compiled import RuleBook, scanner_for
from latencydoctor.evidence.logs.counting import Counts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.file_pass import FilePass
from latencydoctor.model.evidence import Severity, Window
from latencydoctor.model.rule import LogRule
from tests.unit.log_builders import REFERENCE_S, START_S, at, rule, stamped

DEAD = rule("dead", "died")
READY = rule("late", "too slow", only_after=("is ready",))
DUMP = rule("dump", "arguments of", benign=True, level=Severity.INFO)
RULES = [DEAD, READY, DUMP]


def passed(text: str, rules: Sequence[LogRule] = RULES, window: Window | None = None, seam: int = 0) -> Counts:
    """What a stream tells; from the line `seam` on it is another file."""
    scanner = scanner_for(rules)
    reading = FilePass(RuleBook(rules), scanner.which, "a.log", Dating(REFERENCE_S), window)
    lines = text.encode().splitlines(keepends=True)
    chunks: list[bytes | Seam] = [b"".join(lines)]
    if seam:
        chunks = [b"".join(lines[: seam - 1]), Seam("b.log", REFERENCE_S), b"".join(lines[seam - 1 :])]
    for block in whole_lines(chunks):
        if block.seam is not None:
            reading.turn_to(block.seam, block.first_line)
        for line in scanner.candidates(block):
            reading.take(line)
    return reading.finish()


def test_the_teller_is_the_source_else_the_process_else_the_file_with_its_rank() -> None:
    said = passed(
        f"[pod/p-1/c] {at(0)} ERROR it died\n"
        f"(EngineCore pid=7) ERROR 11-30 07:21:26 [core.py:1] it died\n"
        f"{at(100)} ERROR it died\n"
        "[rank3]:[E1130 07:25:26.123456789 a.cpp:1] it died\n"
    )
    assert set(said.tallies["dead"].tellers) == {"p-1/c", "EngineCore pid=7", "a.log", "a.log rank 3"}


def test_the_teller_without_a_name_is_the_file_that_the_line_stands_in() -> None:
    said = passed(stamped((0, "ERROR died"), (40, "ERROR died"), (80, "ERROR died")), seam=2)
    assert said.tallies["dead"].tellers == {"a.log": 1, "b.log": 2}
    assert said.by_file == {"a.log": 1, "b.log": 2}


def test_a_line_without_a_stamp_takes_the_one_before_it() -> None:
    assert passed(f"{at(5)} INFO fine\nit died\n").tallies["dead"].first_s == START_S + 5
    assert passed("it died\n").tallies["dead"].first_s is None


def test_outside_the_window_nothing_counts_but_what_has_no_time_does() -> None:
    window = Window(START_S + 10, START_S + 20)
    text = stamped((0, "ERROR died"), (15, "ERROR died"), (30, "ERROR died"))
    assert passed(text, window=window).tallies["dead"].count == 1
    assert passed("died\n", window=window).tallies["dead"].count == 1


def test_what_came_before_decides_even_from_the_file_before() -> None:
    late = stamped((0, "INFO it is ready"), (5, "WARN too slow"))
    assert passed(late, seam=2).tallies["late"].count == 1
    assert passed(stamped((5, "WARN too slow"))).tallies == {}


def test_further_lines_of_a_dump_are_as_harmless_as_its_head() -> None:
    dump = f"{at(0)} INFO arguments of the server {{\n  on_error: died,\n}}\n"
    assert passed(dump).tallies == {}
    assert passed(dump + f"{at(1)} ERROR died\n").tallies["dead"].count == 1


def test_a_second_writer_within_a_line_is_heard() -> None:
    line = "INFO 11-30 07:20:26 [a.py:1] all is ERROR 11-30 07:20:26 [b.py:1] it died\n"
    assert passed(line).tallies["dead"].count == 1


def test_loud_lines_of_no_class_are_grouped_where_they_stand() -> None:
    text = stamped(*((second / 10, f"ERROR odd thing {second}") for second in range(6)))
    (group,) = passed(text, seam=4).templates.groups.values()
    assert (group.count, group.burst, group.place) == (6, True, "a.log:1")


def test_an_unknown_traceback_is_told_with_its_exception() -> None:
    text = f'{at(0)} ERROR it failed\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: odd\n'
    (group,) = passed(text * 5).templates.groups.values()
    assert "odd" in group.line or "KeyError" in group.line


def test_time_that_passes_without_lines_decides_as_well() -> None:
    told: list[str] = []
    scanner = scanner_for(RULES)
    reading = FilePass(
        RuleBook(RULES), scanner.which, "a.log", Dating(REFERENCE_S), announce=lambda _told, place: told.append(place)
    )
    for block in whole_lines([stamped((0, "ERROR died")).encode()]):
        for line in scanner.candidates(block):
            reading.take(line)
    assert told == []
    reading.settle(START_S + 60)
    assert told == ["a.log:1"]
