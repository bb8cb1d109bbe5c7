import io
import json
import logging
import sys

import pytest

from latencydoctor.stack.gateway.events import EventLog, libraries_logged


class Bench:
    def __init__(self) -> None:
        self.now_s = 1_795_000_000.0
        self.stream = io.StringIO()
        self.counted: list[str] = []
        self.log = EventLog(self.stream, lambda: self.now_s, self.counted.append)

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


def test_the_first_event_is_written_at_once_with_time_level_and_numbers() -> None:
    bench = Bench()
    bench.log.emit("WARNING", "queue_delay", "waited", queue_ms=612.34567, limit_ms=500)
    assert bench.lines() == [
        {
            "time": "2026-11-18T11:06:40.000Z",
            "level": "WARNING",
            "event": "queue_delay",
            "message": "waited",
            "queue_ms": 612.346,
            "limit_ms": 500,
            "count": 1,
        }
    ]


def test_a_flood_becomes_one_line_a_second_with_the_count_and_the_worst_numbers() -> None:
    bench = Bench()
    for number in range(1000):
        bench.now_s += 0.002
        bench.log.emit("WARNING", "queue_delay", f"waited {number}", queue_ms=number)
    bench.log.flush(everything=True)
    lines = bench.lines()
    assert len(lines) == 3
    assert sum(int(str(line["count"])) for line in lines) == 1000
    assert lines[-1]["queue_ms"] == 999
    assert bench.counted == ["queue_delay"] * 1000


def test_what_was_folded_is_written_by_a_flush_once_its_second_is_over() -> None:
    bench = Bench()
    for _ in range(3):
        bench.log.emit("ERROR", "overload", "too many")
    bench.log.flush()
    assert len(bench.lines()) == 1
    bench.now_s += 1.0
    bench.log.flush()
    bench.log.flush()
    assert [line["count"] for line in bench.lines()] == [1, 2]


def test_events_of_different_kinds_do_not_hold_each_other_back() -> None:
    bench = Bench()
    bench.log.emit("INFO", "a", "x")
    bench.log.emit("INFO", "b", "y")
    assert [line["event"] for line in bench.lines()] == ["a", "b"]


def test_a_message_with_line_ends_stays_one_line() -> None:
    bench = Bench()
    bench.log.emit("ERROR", "a", 'two\nlines and "quotes" \x1b[31m')
    assert len(bench.stream.getvalue().splitlines()) == 1
    assert "\x1b" not in bench.stream.getvalue()


def test_an_error_of_a_library_is_an_event_that_names_it() -> None:
    bench = Bench()
    try:
        raise ValueError("boom")
    except ValueError:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "in %s", ("x",), sys.exc_info())
    with libraries_logged(bench.log):
        logging.getLogger("uvicorn.error").handle(record)
    assert bench.lines()[0]["message"] == "uvicorn.error: in x: ValueError: boom"
    assert bench.lines()[0]["level"] == "ERROR"


def test_a_log_that_nobody_reads_any_more_stops_nothing() -> None:
    class Broken(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    counted: list[str] = []
    EventLog(Broken(), lambda: 0.0, counted.append).emit("INFO", "started", "hello")
    assert counted == ["started"]


@pytest.mark.parametrize("gone", [ValueError("I/O operation on closed file"), RuntimeError("a counter that is gone")])
def test_a_library_that_warns_never_fails_for_the_log(gone: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def counted(_event: str) -> None:
        raise gone

    log = EventLog(io.StringIO(), lambda: 0.0, counted)
    with libraries_logged(log):
        logging.getLogger("asyncio").warning("a child's exit status is not known")
    assert str(gone) in capsys.readouterr().err


def test_a_log_that_has_ended_is_told_of_no_more() -> None:
    bench = Bench()
    with libraries_logged(bench.log):
        logging.getLogger("asyncio").warning("one")
    logging.getLogger("asyncio").warning("two")
    assert [line["message"] for line in bench.lines()] == ["asyncio: one"]
