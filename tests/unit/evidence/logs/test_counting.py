"""From tellings to counts: copies, verdicts and echoes one after the other, and what is told at once."""

from __future__ import annotations

from latencydoctor.evidence.logs.compiled import RuleBook, Way
from latencydoctor.evidence.logs.counting import Counting
from latencydoctor.evidence.logs.places import Places
from latencydoctor.evidence.logs.told import At, Told
from latencydoctor.model.rule import Burst, LogRule, Sequel
from tests.unit.log_builders import START_S, rule

DEAD = rule("dead", "died")
BROKEN = rule("broken", "broken", echo_of=("dead",))
OFTEN = rule("often", "slow", burst=Burst(3, 60.0))
LOST = rule("lost", "refused", recovered_by=Sequel(("connected",), 30.0))
WAYS = RuleBook([DEAD, BROKEN, OFTEN, LOST]).first_way


def one(of: LogRule, seconds: float, number: int, text: str = "", **changes: object) -> Told:
    words = text or f"{of.id} at line {number * 'x'}"
    made = Told(START_S + seconds, number, WAYS[of.id], words, words.encode())
    for name, value in changes.items():
        setattr(made, name, value)
    return made


class Heard:
    """A counting, and what it announced."""

    def __init__(self) -> None:
        self.places = Places("a.log.1")
        self.told: list[tuple[str, int, str]] = []
        self.counting = Counting(self.places, lambda told, place: self.told.append((told.rule_id, told.count, place)))

    def tell(self, *tellings: Told) -> None:
        for telling in tellings:
            self.counting.tell(telling)

    def counts(self) -> dict[str, tuple[int, int]]:
        return {name: (tally.count, tally.echoes) for name, tally in self.counting.finish().tallies.items()}


def test_what_is_sure_is_announced_with_the_place_in_its_own_file() -> None:
    heard = Heard()
    heard.places.begin("a.log", 5)
    heard.tell(one(DEAD, 0, 4), one(DEAD, 40, 7))
    heard.counting.finish()
    assert heard.told == [("dead", 1, "a.log.1:4"), ("dead", 1, "a.log:3")]
    assert heard.counting.counts.by_file == {"a.log.1": 1, "a.log": 1}
    assert heard.counting.counts.events == 2


def test_an_echo_is_folded_into_its_event_also_when_that_was_handed_on_long_before() -> None:
    heard = Heard()
    heard.tell(one(DEAD, 0, 1), one(BROKEN, 20, 2), one(BROKEN, 45, 3, "broken again"))
    assert heard.counts() == {"dead": (1, 2)}
    assert heard.told == [("dead", 1, "a.log.1:1")]


def test_a_burst_waits_until_there_are_enough() -> None:
    heard = Heard()
    heard.tell(one(OFTEN, 0, 1), one(OFTEN, 5, 2))
    heard.counting.settle(START_S + 10)
    assert heard.told == []
    heard.tell(one(OFTEN, 20, 3))
    heard.counting.settle(START_S + 30)
    assert [place for _, _, place in heard.told] == ["a.log.1:1", "a.log.1:2", "a.log.1:3"]


def test_a_retry_is_an_event_when_nothing_took_it_back_in_time() -> None:
    heard = Heard()
    heard.tell(one(LOST, 0, 1))
    heard.counting.settle(START_S + 29)
    assert heard.told == []
    heard.counting.settle(START_S + 31)
    assert heard.told == [("lost", 1, "a.log.1:1")]


def test_a_line_that_takes_back_a_retry_does_so_after_what_was_told_before_it() -> None:
    heard = Heard()
    heard.tell(one(LOST, 0, 1))
    mark: Way = WAYS["lost"]
    heard.counting.mark([mark], mark.recovered, "", At(START_S + 5, 2))
    assert heard.counts() == {}


def test_only_stamps_finer_than_a_millisecond_are_remembered_for_other_files() -> None:
    heard = Heard()
    heard.tell(
        one(DEAD, 0.123456, 1, precise=True),
        one(DEAD, 40.5, 2, precise=True),
        one(DEAD, 80.123456, 3, precise=False),
    )
    prints = heard.counting.finish().prints
    assert list(prints.values()) == [("dead", 1, "a.log.1")]


def test_a_class_that_one_line_shows_in_two_ways_counts_once() -> None:
    two = rule("two", "slow", burst=Burst(2, 60.0))
    ways = RuleBook([rule("two", "slow", burst=Burst(2, 60.0), variants=(two,))])._ways
    heard = Heard()
    for number, seconds in ((1, 0.0), (2, 5.0)):
        for way in ways:
            heard.tell(Told(START_S + seconds, number, way, f"slow {'x' * number}", b"slow"))
    assert heard.counts() == {"two": (2, 0)}
