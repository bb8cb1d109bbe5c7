"""In which file of a rotated set a line stands, and as which of its lines."""

from __future__ import annotations

from latencydoctor.evidence.logs.places import Places


def test_lines_are_numbered_in_their_own_file() -> None:
    places = Places("x.log.1")
    places.begin("x.log", 11)
    assert [places.at(number) for number in (1, 10, 11, 25)] == ["x.log.1:1", "x.log.1:10", "x.log:1", "x.log:15"]
    assert [places.of(number) for number in (10, 11)] == ["x.log.1", "x.log"]
    assert places.current == "x.log"


def test_a_file_without_lines_has_none() -> None:
    places = Places("x.log.2")
    places.begin("x.log.1", 5)
    places.begin("x.log", 5)
    assert places.at(4) == "x.log.2:4"
    assert places.at(5) == "x.log:1"


def test_the_first_file_may_be_named_anew() -> None:
    places = Places("before")
    places.begin("x.log", 1)
    assert places.at(1) == "x.log:1"
