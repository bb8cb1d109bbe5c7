"""Events out of lines: counting, times, places, copies; the rules' own cases are under tests/content."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latencydoctor.evidence.logs.blocks import whole_lines
from latencydoctor.evidence.logs.reader import SHOWN_CHARACTERS, LogReader, scanner_for
from latencydoctor.model.evidence import LogEvent, Severity, Window
from latencydoctor.model.rule import LogRule, NumberGate

REFERENCE_S = 1_796_100_000.0
MOMENT_S = 1_796_023_226.0


def rule(name: str, level: Severity, *patterns: str, gate: NumberGate | None = None) -> LogRule:
    return LogRule(
        name, name, "stable", level, patterns, ("excused",), (r"waited (?P<wait_ms>\d{1,9} ms)",), gate, "", (), "", ()
    )


RULES = (
    rule("slow", Severity.WARNING, "waited", gate=NumberGate("wait_ms", above=500.0)),
    rule("dead", Severity.CRITICAL, "died"),
    rule("odd", Severity.ERROR, "odd"),
)
SCANNER = scanner_for(RULES)


def events(*texts: str, window: Window | None = None) -> tuple[LogEvent, ...]:
    reader = LogReader(RULES, window, SCANNER)
    for number, text in enumerate(texts):
        reader.read(f"{number}.log", whole_lines([text.encode()]), REFERENCE_S)
    return reader.events()


def test_worst_first_then_earliest() -> None:
    found = events("2026-11-30T07:20:26Z waited 600 ms\nodd\n2026-11-30T07:20:27Z died\n")
    assert [one.rule for one in found] == ["dead", "odd", "slow"]


def test_one_event_a_rule_over_all_files_with_the_earliest_line_and_the_worst_figure() -> None:
    (found,) = events("2026-11-30T07:20:30Z waited 900 ms\n", "x\n2026-11-30T07:20:26Z waited 600 ms\n")
    assert (found.count, found.first_s, found.last_s) == (2, MOMENT_S, MOMENT_S + 4)
    assert (found.place, found.line) == ("1.log:2", "2026-11-30T07:20:26Z waited 600 ms")
    assert found.numbers == (("wait_ms", 900.0),)


def test_read_says_how_many_events_a_file_added() -> None:
    reader = LogReader(RULES, scanner=SCANNER)
    assert reader.read("a", whole_lines([b"2026-11-30T07:20:26Z died\nodd\n"]), REFERENCE_S) == {"a": 2}
    assert reader.read("b", whole_lines([b"fine\n"]), REFERENCE_S) == {}


def test_window_leaves_out_what_is_stamped_outside_and_keeps_what_has_no_time() -> None:
    text = "2026-11-30T07:20:20Z died\n2026-11-30T07:20:26Z died\n"
    (found,) = events(text, "died\n", window=Window(MOMENT_S - 1, MOMENT_S))
    assert found.count == 2
    assert (found.first_s, found.last_s) == (MOMENT_S, MOMENT_S)


def test_line_without_a_stamp_takes_its_records() -> None:
    (found,) = events("2026-11-30T07:20:26Z ERROR request failed\n  because it died\n")
    assert found.first_s == MOMENT_S
    assert found.place == "0.log:2"


def test_frames_under_one_record_are_one_event_and_unstamped_programs_count_each_line() -> None:
    assert events("2026-11-30T07:20:26Z it died\n  died here\n  died there\n")[0].count == 1
    assert events("died\ndied\n")[0].count == 2


def test_ranks_that_report_late_are_a_death_of_their_own() -> None:
    copies = "2026-11-30T07:20:26Z [rank0]: died\n2026-11-30T07:20:50Z [rank1]: died\n"
    assert events(copies)[0].count == 1
    assert events(copies + "2026-11-30T07:21:50Z [rank2]: died\n")[0].count == 2
    assert events("[rank0]: died of 1\n", "[rank1]: died of 2\n")[0].count == 2


def test_excused_lines_and_figures_at_the_limit_do_not_count() -> None:
    assert events("died but excused\nwaited 500 ms\nwaited long\n") == ()


def test_gate_between_two_numbers_and_without_them() -> None:
    gate = NumberGate("wait_ms", at_least_group="limit_ms", counts_when_absent=True)
    reader = LogReader([rule("slow", Severity.WARNING, "waited", gate=gate)])
    reader.read("x", whole_lines([b"2026-11-30T07:20:26Z waited 3 ms\n2026-11-30T07:20:27Z waited\n"]), REFERENCE_S)
    assert reader.events()[0].count == 2


def test_line_is_shown_clean_short_and_without_secrets() -> None:
    (found,) = events("\x1b[31mdied\x1b[0m [/INST] password=hunter2hunter2 " + "x" * 9000)
    assert found.line.startswith("died [/INST] password=[redacted] xxx")
    assert len(found.line) == SHOWN_CHARACTERS


def test_readers_of_some_files_each_merge_to_what_one_reads() -> None:
    texts = [
        f"2026-11-30T07:20:{20 + n}Z ERROR odd {n}\n2026-11-30T07:20:30Z ERROR nobody knows {n}\n" for n in range(7)
    ]
    texts.append("2026-11-30T07:20:19Z died\n2026-11-30T07:20:20Z waited 900 ms\n")
    whole = LogReader(RULES, scanner=SCANNER)
    merged = LogReader(RULES, scanner=SCANNER)
    for number, text in enumerate(texts):
        added = whole.read(f"{number}.log", whole_lines([text.encode()]), REFERENCE_S)
        other = LogReader(RULES, scanner=SCANNER)
        other.read(f"{number}.log", whole_lines([text.encode()]), REFERENCE_S)
        assert merged.merge(pickle.loads(pickle.dumps(other.export()))) == sum(added.values())
    assert merged.events() == whole.events()
    assert [one.rule for one in whole.events()] == ["dead", "odd", "slow", "unclassified"]


def test_file_that_holds_the_same_events_adds_none() -> None:
    text = "2026-11-30T07:20:26.123456Z died\n2026-11-30T07:20:27.123456Z odd\n"
    found = {one.rule: one.count for one in events(text, text + "2026-11-30T07:20:28.123456Z odd\n")}
    assert found == {"dead": 1, "odd": 2}


def test_events_of_other_files_that_only_look_alike_count() -> None:
    assert events("2026-11-30T07:20:26.123Z died\n", "2026-11-30T07:20:26.123Z died\n")[0].count == 2
    assert events("2026-11-30T07:20:26.123456Z died 1\n", "2026-11-30T07:20:26.123456Z died 2\n")[0].count == 2


def test_each_event_is_told_as_soon_as_it_is_sure() -> None:
    told: list[tuple[str, int, str]] = []
    reader = LogReader(RULES, scanner=SCANNER)

    def chunks() -> Iterator[bytes]:
        yield b"2026-11-30T07:20:26.100Z died\n2026-11-30T07:20:27.100Z odd\n"
        yield b"2026-11-30T07:20:28.100Z odd\n"
        reader.settle(MOMENT_S + 100)
        assert [one[0] for one in told] == ["dead", "odd"]
        yield b"fine\n"
        reader.settle(MOMENT_S + 200)
        assert [one[0] for one in told] == ["dead", "odd", "odd"]

    reader.read(
        "x", whole_lines(chunks()), REFERENCE_S, on_event=lambda one: told.append((one.rule, one.count, one.place))
    )
    assert told == [("dead", 1, "x:1"), ("odd", 1, "x:2"), ("odd", 1, "x:3")]
    reader.settle(MOMENT_S)


def test_what_was_read_before_an_interruption_counts() -> None:
    reader = LogReader(RULES, scanner=SCANNER)

    def chunks() -> Iterator[bytes]:
        yield b"died\n"
        yield b"odd\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reader.read("x", whole_lines(chunks()), REFERENCE_S)
    assert [one.rule for one in reader.events()] == ["dead"]


def test_prompts_are_blanked_on_demand() -> None:
    reader = LogReader(RULES, scanner=SCANNER, redact_prompts=True)
    reader.read("x", whole_lines([b"died, prompt: 'my words'\n"]), REFERENCE_S)
    assert reader.events()[0].line == "died, prompt: [redacted]"


def test_pieces_of_one_line_are_one_event() -> None:
    first = "2026-11-30T07:20:26.123456789Z stderr P it was " + "x" * 100 + " di"
    last = "2026-11-30T07:20:26.123456789Z stderr F ed; and it died again"
    (found,) = events(f"{first}\n{last}\n")
    assert (found.count, found.place) == (1, "0.log:1")


def test_zone_dates_stamps_that_have_none() -> None:
    reader = LogReader(RULES, scanner=SCANNER, zone=timezone(timedelta(hours=2)))
    reader.read("x", whole_lines([b"INFO 11-30 09:20:26 [core.py:7] died\n"]), REFERENCE_S)
    assert reader.events()[0].first_s == MOMENT_S


PIECES = (
    *(b"died", b"waited 900 ms", b"\n", b"\r", b"\x00", b"\xff", b"{", b'"event": "dead"', b"}", b"[rank1]: ", b"|"),
    *(b"Traceback (most recent call last):", b"2026-11-30T07:20:26Z ", b"E1330 07:20:26.000000 1 a.cc:1] ", b"x" * 200),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=60))
def test_any_bytes_give_a_pyramid(parts: list[bytes]) -> None:
    reader = LogReader(RULES, scanner=SCANNER)
    reader.read("x", whole_lines(parts), REFERENCE_S)
    for event in reader.events():
        assert event.count >= 1
        assert "\n" not in event.line
