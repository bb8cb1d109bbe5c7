import pytest

from latencydoctor.stack.gateway.lines import MAX_RETRY_AFTER_S, Line, Lines


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def serve(line: Line, clock: Clock, *, per_s: int, took_s: float, seconds: int = 3, answered: bool = True) -> None:
    """So many a second leave after `took_s`, and as many come as leave."""
    for _ in range(seconds * per_s):
        clock.now_s += 1 / per_s
        line.enter()
        line.leave(took_s, answered=answered)


def crowd(line: Line, count: int) -> None:
    for _ in range(count):
        line.enter()


def test_a_backlog_takes_as_long_as_the_pace_of_late_says() -> None:
    clock = Clock()
    line = Line(clock)
    assert line.expected_s == 0
    serve(line, clock, per_s=100, took_s=0.5)
    crowd(line, 300)
    assert line.expected_s == pytest.approx(3.0, rel=0.15)
    assert line.seen_s == pytest.approx(0.5)


def test_what_is_long_ago_does_not_count() -> None:
    clock = Clock()
    line = Line(clock)
    serve(line, clock, per_s=100, took_s=0.5)
    clock.now_s += 13
    crowd(line, 1)
    assert line.seen_s == 0
    assert line.expected_s == float("inf")


def test_requests_that_run_into_their_deadline_are_no_loss_of_pace() -> None:
    clock = Clock()
    line = Line(clock)
    serve(line, clock, per_s=100, took_s=2.0, seconds=4)
    serve(line, clock, per_s=50, took_s=3.0, seconds=4, answered=False)
    crowd(line, 200)
    assert line.expected_s == pytest.approx(2.0, rel=0.05)
    serve(line, clock, per_s=50, took_s=3.0, seconds=12, answered=False)
    assert line.expected_s == float("inf")


def test_a_burst_after_a_pause_is_not_turned_away() -> None:
    clock = Clock()
    lines = Lines(clock)
    serve(lines.standard, clock, per_s=5, took_s=0.03, seconds=12)
    crowd(lines.standard, 200)
    assert lines.standard.expected_s > 5
    assert not lines.hopeless("standard", 5.0)


def test_a_backlog_beyond_the_deadline_is_hopeless_for_standard_and_not_for_vip() -> None:
    clock = Clock()
    lines = Lines(clock)
    serve(lines.standard, clock, per_s=100, took_s=2.5)
    crowd(lines.standard, 600)
    assert lines.hopeless("standard", 5.0)
    assert not lines.hopeless("standard", 9.9)
    assert not lines.hopeless("vip", 5.0)


def test_vip_is_hopeless_only_where_standard_is() -> None:
    clock = Clock()
    lines = Lines(clock)
    serve(lines.vip, clock, per_s=100, took_s=2.5)
    crowd(lines.vip, 600)
    assert lines.hopeless("vip", 5.0)
    assert lines.hopeless("standard", 5.0)


def test_those_who_starve_behind_vip_are_hopeless_too() -> None:
    clock = Clock()
    lines = Lines(clock)
    serve(lines.standard, clock, per_s=50, took_s=5.0, answered=False)
    crowd(lines.standard, 10)
    assert lines.hopeless("standard", 5.0)


def test_when_to_come_back_grows_with_those_who_wait_and_those_turned_away() -> None:
    clock = Clock()
    lines = Lines(clock)
    assert lines.retry_after_s("standard") == 1
    crowd(lines.standard, 3)
    assert lines.retry_after_s("standard") == 1
    lines.standard.waiting = 0
    serve(lines.standard, clock, per_s=100, took_s=0.4)
    crowd(lines.standard, 40)
    assert lines.retry_after_s("standard") == 1
    for _ in range(400):
        lines.standard.turn_away()
    assert lines.retry_after_s("standard") == 5
    assert lines.retry_after_s("vip") == 1
    clock.now_s += 0.5
    for _ in range(100_000):
        lines.standard.turn_away()
    assert lines.retry_after_s("standard") == MAX_RETRY_AFTER_S
