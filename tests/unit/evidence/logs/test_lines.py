"""One line, understood: every format in every wrapper, raw lines with their surroundings, and bytes of any kind."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import ALWAYS_LOOK, LineRecord, clean, read_line, read_raw
from latencydoctor.evidence.logs.scanner import Scanner
from tests.unit.evidence.logs.examples import (
    EXAMPLES,
    REFERENCE_S,
    SECOND_S,
    UNTIMED,
    WRAPPED_S,
    WRAPPERS,
    Example,
)

LEVELS = {"", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}


def read(line: str) -> LineRecord:
    return read_line(clean(line.encode()), Dating(REFERENCE_S))


def told(record: LineRecord, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(record, name) for name in names}


@pytest.mark.parametrize("name", EXAMPLES)
def test_format_bare(name: str) -> None:
    example = EXAMPLES[name]
    record = read(example.line)
    assert (record.program, record.level, record.text) == (example.program, example.level, example.text)
    assert told(record, tuple(example.further)) == dict(example.further)
    assert record.time_s == (None if example.time_s is None else pytest.approx(example.time_s, abs=2e-6))
    assert record.outer_s is None
    assert not record.quoted


def same_inside(example: Example, record: LineRecord, wrapped_s: float | None) -> None:
    """A wrapper changes nothing but the time where the line has none, or has whole seconds."""
    further = tuple(name for name in example.further if name not in ("rank", "process"))
    assert (record.level, record.text) == (example.level, example.text)
    assert record.program == example.program, example.line
    assert told(record, further) == {name: example.further[name] for name in further}
    time_s = example.time_s
    if wrapped_s is not None and (time_s is None or time_s.is_integer()):
        time_s = wrapped_s
    assert record.time_s == (None if time_s is None else pytest.approx(time_s, abs=2e-6)), example.line


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_format_in_a_wrapper_with_a_time(wrapper: str) -> None:
    for name, example in EXAMPLES.items():
        record = read(WRAPPERS[wrapper](example.line))
        same_inside(example, record, WRAPPED_S)
        assert record.outer_s == pytest.approx(WRAPPED_S, abs=2e-6), name
        assert record.quoted == (wrapper in ("six deep", "html")), name


@pytest.mark.parametrize("wrapper", UNTIMED)
def test_every_format_in_a_wrapper_without_a_time(wrapper: str) -> None:
    for example in EXAMPLES.values():
        same_inside(example, read(UNTIMED[wrapper](example.line)), None)


@pytest.mark.parametrize("inner", UNTIMED)
@pytest.mark.parametrize("outer", WRAPPERS)
def test_wrappers_nest_in_any_order(outer: str, inner: str) -> None:
    for name in ("triton escaped", "vllm", "tgi request", "uvicorn", "frame"):
        line = UNTIMED[inner](EXAMPLES[name].line)
        same_inside(EXAMPLES[name], read(WRAPPERS[outer](line)), WRAPPED_S)
        timed = WRAPPERS[outer](EXAMPLES[name].line)
        if outer not in ("html", "cloudwatch", "six deep"):
            same_inside(EXAMPLES[name], read(UNTIMED[inner](timed)), WRAPPED_S)


@pytest.mark.parametrize(
    ("wrapper", "source"),
    [
        ("compose", "serve-1"),
        ("prefix", "p-1/c"),
        ("stern", "serve-7d9c5b6f48-x2x4z/server"),
        ("cloud", "c"),
        ("journal json", "serve.service"),
        ("kubectl in compose in journal", "serve.service/kubectl-1/p-1/c"),
        ("rfc 5424", "serve"),
    ],
)
def test_wrapper_names_the_source(wrapper: str, source: str) -> None:
    assert read({**WRAPPERS, **UNTIMED}[wrapper]("boom")).source == source


@pytest.mark.parametrize("text", ['{"a": ', "{}x", '["a"]', "{" * 100_000])
def test_what_only_looks_like_json_is_text(text: str) -> None:
    assert not read(text).structured


@pytest.mark.parametrize(("level", "word"), [("WARN", "WARNING"), ("ERROR", "ERROR"), ("FATAL", "CRITICAL"), ("", "")])
def test_stamped_line_of_any_program(level: str, word: str) -> None:
    record = read(f"2026-11-30 07:20:26,000 {level} text")
    assert (record.time_s, record.level, record.continued) == (SECOND_S, word, False)


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[rank7]: ", "7"),
        ("(Worker_TP3 pid=9) ", "3"),
        ("(Worker_DP1_TP3 pid=9) ", "1.3"),
        ("(RayWorkerWrapper pid=9, ip=10.0.0.3) ", "10.0.0.3:9"),
        ("(EngineCore pid=9) ", ""),
        ("(ServeReplica:a:b pid=9) ", ""),
        ("[2026-11-30 07:20:26 TP5] ", "5"),
        ("", ""),
    ],
)
def test_rank_of_a_worker(prefix: str, rank: str) -> None:
    record = read(prefix + "died")
    assert (record.rank, record.text) == (rank, "died")


@pytest.mark.parametrize(
    "suffix",
    [
        " [repeated 12x across cluster]",
        "\x1b[32m [repeated 12x across cluster]\x1b[0m",
        " [repeated 12x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable)",
    ],
)
def test_repeated_lines_count(suffix: str) -> None:
    record = read(f"(Actor pid=1) boom{suffix}")
    assert (record.count, record.text) == (12, "boom")


def test_rest_of_a_suffix_is_text() -> None:
    assert read("so many across cluster] x").text == "so many across cluster] x"


def test_second_writer_in_a_line_does_not_hide_the_first() -> None:
    line = "INFO 11-30 07:20:26 [a.py:1] half E1130 07:20:26.000000 41 a.cc:1] boom"
    assert read(line).level == "INFO"


@dataclass
class Around:
    """A candidate line and what stands around it."""

    data: bytes
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)

    def lines_before(self) -> list[bytes]:
        return self.before

    def lines_after(self) -> list[bytes]:
        return self.after


def test_pieces_of_a_long_line_are_read_as_one() -> None:
    first = b"2026-11-30T07:20:26.250000001Z stderr P E1130 07:20:26.000000 41 a.cc:1] out of "
    other = b"2026-11-30T07:20:26.250000001Z stdout F x"
    last = b"2026-11-30T07:20:26.350000001Z stderr F memory"
    record = read_raw(Around(first, after=[other, last]), Dating(REFERENCE_S))
    assert (record.text, record.level, record.partial) == ("out of memory", "ERROR", False)


def test_journal_export_entry_is_read_with_its_fields() -> None:
    block = [
        b"__CURSOR=s=1;i=2",
        b"__REALTIME_TIMESTAMP=1796023226250000",
        b"_TRANSPORT=syslog",
        b"MESSAGE=boom",
        b"PRIORITY=3",
        b"_SYSTEMD_UNIT=serve.service",
        b"",
        b"__REALTIME_TIMESTAMP=1",
    ]
    line = Around(block[3], before=block[2::-1], after=block[4:])
    record = read_raw(line, Dating(REFERENCE_S))
    assert (record.time_s, record.level, record.text) == (WRAPPED_S, "ERROR", "boom")
    assert record.source == "serve.service"


def test_binary_message_of_an_export_is_read_line_by_line() -> None:
    value = b"Traceback (most recent call last):\n  File \xff\nValueError: x"
    block = [
        b"__REALTIME_TIMESTAMP=1796023226250000",
        b"MESSAGE",
        *(len(value).to_bytes(8, "little") + value).split(b"\n"),
        b"_SYSTEMD_UNIT=serve.service",
        b"",
    ]
    dating = Dating(REFERENCE_S)
    texts = []
    for number in (2, 3, 4):
        record = read_raw(Around(block[number], before=block[number - 1 :: -1], after=block[number + 1 :]), dating)
        texts.append(record.text)
        assert (record.time_s, record.source) == (WRAPPED_S, "serve.service")
    assert texts == ["Traceback (most recent call last):", "  File \ufffd", "ValueError: x"]
    assert read_raw(Around(block[5], before=block[4::-1]), dating).text == block[5].decode()


def test_state_of_a_described_container_has_its_end() -> None:
    after = [
        b"      Exit Code:    137",
        b"      Started:      x",
        b"      Finished:     Mon, 30 Nov 2026 08:20:26 +0100",
    ]
    record = read_raw(Around(b"      Reason:       OOMKilled", after=after), Dating(REFERENCE_S))
    assert (record.time_s, record.program, record.text) == (SECOND_S, "kubernetes", "Reason:       OOMKilled")
    without = read_raw(Around(b"    Reason:       OOMKilled"), Dating(REFERENCE_S))
    assert (without.time_s, without.program) == (None, "kubernetes")


@pytest.mark.parametrize(
    ("line", "looked_at"),
    [
        (b'{"MESSAGE":[69,82],"PRIORITY":"3"}', True),
        (b'{"MESSAGE":"[69]","PRIORITY":"3"}', False),
        (b"2026-11-30T07:20:26.250000001Z stderr P half", True),
        (b"2026-11-30T07:20:26.250000001Z stderr F whole", False),
        (b'{"log":"half","stream":"stderr","time":"2026-11-30T07:20:26.250000001Z"}', True),
        (b'{"log":"whole\\n","stream":"stderr","time":"2026-11-30T07:20:26.250000001Z"}', False),
        (b"*\x00\x00\x00\x00\x00\x00\x00half", True),
        (b"one \x00 NUL", False),
    ],
)
def test_lines_that_hide_their_message_are_always_looked_at(line: bytes, looked_at: bool) -> None:
    assert bool(Scanner(ALWAYS_LOOK).which(line.decode())) == looked_at


def test_clean_takes_control_bytes_and_overrides_away() -> None:
    assert clean(b"\x1b[31mred\x1b[0m\x00\x07 \xff[/INST]\t\xe2\x80\xaex\r") == "red \ufffd[/INST]\tx"


def well_formed(record: LineRecord) -> None:
    assert record.count >= 1
    assert record.level in LEVELS
    assert record.status == 0 or 100 <= record.status <= 999
    assert record.time_s is None or isinstance(record.time_s, float)
    assert all(type(name) is str and type(value) is float for name, value in record.fields)
    for shown in (record.text, record.source, record.process, record.rank, record.file_line):
        assert not any(ord(one) < 32 and one not in "\t\n" for one in shown)
    record.text.encode()


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read(data: bytes) -> None:
    well_formed(read_line(clean(data), REFERENCE_S))


@given(
    st.sampled_from(sorted(EXAMPLES)),
    st.lists(st.sampled_from(sorted({**WRAPPERS, **UNTIMED})), max_size=3),
    st.integers(0, 300),
    st.binary(max_size=20),
)
def test_damaged_lines_are_read(name: str, wrappers: list[str], at: int, damage: bytes) -> None:
    line = EXAMPLES[name].line
    for wrapper in wrappers:
        line = {**WRAPPERS, **UNTIMED}[wrapper](line)
    data = line.encode()
    for damaged in (
        data[:at],
        data[at:],
        data[:at] + damage + data[at:],
        data[:at] + damage + data[at + len(damage) :],
    ):
        well_formed(read_line(clean(damaged), Dating(REFERENCE_S)))


HOSTILE: dict[str, Callable[[int], str]] = {
    "words": lambda n: "a " * n,
    "one word": lambda n: "a" * n,
    "dotted": lambda n: "a." * n,
    "spaces": lambda n: " " * n,
    "brackets": lambda n: "[" * n,
    "parentheses": lambda n: "(a" * n,
    "json": lambda n: '{"a":' * n,
    "json text": lambda n: '{"log":"' + "\\\\" * n,
    "pairs": lambda n: "level=a " * n,
    "open pair": lambda n: 'level="' + "\\a" * n,
    "columns": lambda n: "a | " * n,
    "returns": lambda n: "50%|a\r" * n,
    "escapes": lambda n: "\x1b[1;" * n,
    "entities": lambda n: "&lt;" * n,
    "quotes": lambda n: "> " * n,
    "request": lambda n: '[2026-11-30T07:20:26.123Z] "' + "a" * n,
    "access": lambda n: '10.0.0.1 - - [30/Nov/2026:07:20:26 +0000] "' + "a" * n + '" 200 1 "-" "' + "b, " * n,
    "spans": lambda n: "2026-11-30T07:20:26.123456Z  INFO " + "a{b}: " * n,
    "serve": lambda n: "INFO 2026-11-30 07:20:26,123 " + "a " * n,
    "route": lambda n: "INFO 2026-11-30 07:20:26,123 a b -- GET /" + "a" * n + "ms",
    "shards": lambda n: "2026-11-30T07:20:26.123456Z  INFO a{ " + "text_generation" * n,
    "repeats": lambda n: "(a pid=1) " + "[repeated " * n + " across cluster]",
    "message": lambda n: "E1130 07:20:26.123456 41 a.cc:1] " + "timed out after 1 " * n,
    "bytes": lambda n: json.dumps({"MESSAGE": [255] * n, "PRIORITY": "3"}),
    "noise": lambda n: base64.b64encode(bytes(range(256)) * (n // 256 + 1)).decode(),
}


def best_s(data: bytes) -> float:
    best = 1e9
    for _ in range(7):
        started = time.thread_time()
        read_line(clean(data), Dating(REFERENCE_S))
        best = min(best, time.thread_time() - started)
    return best


@pytest.mark.parametrize("shape", HOSTILE)
def test_time_grows_with_the_length_only(shape: str) -> None:
    small, large = (best_s(HOSTILE[shape](count).encode()) for count in (3_000, 30_000))
    # Ten times the length may cost ten times as much, and timings are noisy; quadratic work would cost a hundred times.
    assert large < 40 * small + 2e-3


def test_huge_line_is_looked_at_in_part() -> None:
    line = b"E1130 07:20:26.123456 41 a.cc:1] " + b"x" * 10_000_000
    started = time.thread_time()
    record = read_line(clean(line), Dating(REFERENCE_S))
    assert time.thread_time() - started < 0.5
    assert len(record.text) < 300_000
