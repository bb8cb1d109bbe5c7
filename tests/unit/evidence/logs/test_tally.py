"""Counts of a class: what is kept of its events, and what of several files."""

from __future__ import annotations

import random

import pytest

from latencydoctor.evidence.logs.tally import BusySpans, Tally
from latencydoctor.evidence.logs.told import Told
from latencydoctor.model.rule import NumberGate
from tests.unit.log_builders import START_S, rule, told

SLOW = rule("slow", "slow", gate=NumberGate("wait_ms", above=500.0), meaning="it waits", remedy="hurry")


def tally(*tellings: Told, place: str = "a.log") -> Tally:
    made = Tally()
    for one in tellings:
        made.add(one, f"{place}:{one.number}", redact_prompts=False)
    return made


def test_first_line_worst_figures_and_tellers_are_kept() -> None:
    event = tally(
        told(SLOW, 9, 7, "later", numbers={"wait_ms": 600.0}, teller="b", file_line="x.py:1"),
        told(SLOW, 2, 9, "earlier", numbers={"wait_ms": 900.0}, teller="a", file_line="x.py:2", count=3, echoes=2),
        told(SLOW, None, 12, "undated", teller="b"),
    ).event(SLOW)
    assert (event.count, event.echoes, event.sources) == (5, 2, ("a", "b"))
    assert (event.place, event.line, event.file_line) == ("a.log:9", "earlier", "x.py:2")
    assert (event.first_s, event.last_s, event.busy_s) == (START_S + 2, START_S + 9, 60.0)
    assert event.numbers == (("wait_ms", 900.0),)
    assert (event.meaning, event.remedy) == ("it waits", "hurry")


def test_duration_in_the_line_moves_the_start_back_and_what_was_folded_the_end_on() -> None:
    event = tally(told(SLOW, 700, text="ran for 600000 milliseconds before timing out", until_s=START_S + 800)).event(
        SLOW
    )
    assert (event.first_s, event.last_s) == (START_S + 100, START_S + 800)
    event = tally(told(SLOW, 700, began_s=START_S + 10)).event(SLOW)
    assert event.first_s == START_S + 10


def test_files_merge_in_any_number_to_the_same() -> None:
    rng = random.Random(7)
    tellings = [
        told(
            SLOW,
            rng.choice([None, rng.randrange(9000)]),
            n,
            f"line {n}",
            numbers={"wait_ms": float(n)},
            teller=f"t{n % 7}",
        )
        for n in range(200)
    ]
    whole = tally(*tellings).event(SLOW)
    merged = Tally()
    for start in range(0, 200, 33):
        merged.merge(SLOW, tally(*tellings[start : start + 33]))
    assert merged.event(SLOW) == whole


def test_tellers_are_bounded_and_the_loudest_shown() -> None:
    one = tally(*[told(SLOW, n, teller=f"pod-{n % 500}") for n in range(2000)])
    assert len(one.tellers) == 64
    assert len(one.event(SLOW).sources) == 5


def test_line_is_shown_as_it_was_written_where_its_wrapper_hides_it() -> None:
    hidden = told(SLOW, 1, text='say "no"')
    hidden.data = rb'{"log":"say \"no\"\n"}'
    assert tally(hidden).line == 'say "no"'
    plain = told(SLOW, 1, text="no")
    plain.data = b"2026 \x1b[31mno\x1b[0m"
    assert tally(plain).line == "2026 no"


def test_a_message_far_behind_the_fields_of_its_wrapper_is_kept_by_itself() -> None:
    entry = told(SLOW, 1, text="it waited")
    entry.data = b'{"_HOSTNAME":"gpu-7","PRIORITY":"3",%s"MESSAGE":"it waited"}' % (b'"_X":"y",' * 20)
    assert tally(entry).line == "it waited"
    entry.data = b"MESSAGE=it waited"
    assert tally(entry).line == "it waited"
    entry.data = b"\x99\0\0\0\0\0\0\0it waited"
    assert tally(entry).line == "it waited"
    entry.data = b'{"log":"it waited","stream":"stderr"}'
    assert tally(entry).line == '{"log":"it waited","stream":"stderr"}'


def test_secrets_always_go_and_prompts_on_demand() -> None:
    one = told(SLOW, 1, text="prompt: 'my words' password=hunter2hunter2")
    assert tally(one).line == "prompt: 'my words' password=[redacted]"
    blank = Tally()
    blank.add(one, "a.log", redact_prompts=True)
    assert blank.line == "prompt: [redacted] password=[redacted]"


@pytest.mark.parametrize("minutes", [1, 5, 512])
def test_busy_time_is_without_the_quiet_between(minutes: int) -> None:
    spans = BusySpans()
    for n in range(minutes):
        spans.add(n * 3600.0)
        spans.add(n * 3600.0 + 59)
    assert spans.busy_s == minutes * 60


def test_spans_grow_instead_of_their_number() -> None:
    spans, other = BusySpans(), BusySpans()
    for n in range(5000):
        spans.add(n * 60.0)
    other.add(90_000_000.0)
    assert len(spans.starts) <= 512
    assert spans.busy_s == pytest.approx(300_000, rel=0.01)
    other.merge(spans)
    assert (other.length_s, len(other.starts)) == (spans.length_s, len(spans.starts) + 1)
