"""Which lines are one record, in the forms that programs and wrappers give them."""

from __future__ import annotations

import pytest

from latencydoctor.model.evidence import Severity
from tests.unit.log_builders import START_S, counts, read, rule, stamped

ROOT = rule("root", "root cause")
LATER = rule("later", "came of it")
HEAD = rule("head", "head failed")
DUMP = rule("dump", "arguments of", benign=True, level=Severity.INFO)
RULES = [ROOT, LATER, HEAD, DUMP]

TRACEBACK = "Traceback (most recent call last):\n  File 'x', line 1, in f\n    raise ValueError('root cause')\n"
CHAIN = "\nThe above exception was the direct cause of the following exception:\n\n"
CHAINED = f"{TRACEBACK}ValueError: root cause\n{CHAIN}{TRACEBACK}RuntimeError: came of it\n"


def prefixed(prefix: str, text: str, ending: str = "\n") -> str:
    """Each line of a text behind a prefix."""
    return "".join(f"{prefix}{line}{ending}" for line in text.splitlines())


def docker(text: str, seconds: int = 26) -> str:
    return "".join(
        f'{{"log":"{line}\\n","stream":"stderr","time":"2026-11-30T07:20:{seconds}.{n:03d}Z"}}\n'
        for n, line in enumerate(text.splitlines())
    )


HEADED = "2026-11-30 07:20:26,123 ERROR head failed\n"
FORMS = {
    "bare below a head": "2026-11-30T07:20:26Z ERROR head failed\n{}",
    "bare": "{}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_root_of_a_chain_is_the_event(form: str) -> None:
    assert counts(RULES, form.format(CHAINED)) == {"root": 1}


@pytest.mark.parametrize(
    "text",
    [
        prefixed("ERROR 11-30 07:20:26 [core.py:700] ", f"head failed\n{CHAINED}"),
        prefixed("ERROR 11-30 07:20:26 [core.py:700] ", f"head failed\n{CHAINED}", "\r\n"),
        prefixed("(EngineCore_DP0 pid=7) ERROR 11-30 07:20:26 [core.py:700] ", f"head failed\n{CHAINED}"),
        prefixed("2026-11-30T07:20:26,225 [INFO ] W-9000-m_1.0-stdout MODEL_LOG - ", f"head failed\n{CHAINED}"),
        prefixed("[rank3]: ", f"head failed\n{CHAINED}"),
        prefixed("web-1  | ", f"2026-11-30 07:20:26,123 ERROR head failed\n{CHAINED}"),
        prefixed("2026-11-30T07:20:26.123456789Z stderr F ", f"2026-11-30 07:20:26,123 ERROR head failed\n{CHAINED}"),
        docker(f"2026-11-30 07:20:26,123 ERROR head failed\n{CHAINED}".replace("'", "")),
    ],
)
def test_root_is_the_event_where_every_line_has_a_prefix(text: str) -> None:
    assert counts(RULES, text) == {"root": 1}


def test_two_processes_that_write_at_once_are_two_records() -> None:
    lines = [prefixed(f"[pod/{pod}/c] ", f"{HEADED}{TRACEBACK}ValueError: root cause\n") for pod in "ab"]
    mixed = "".join(a + "\n" + b + "\n" for a, b in zip(*(one.splitlines() for one in lines), strict=True))
    (one,) = read(RULES, mixed)
    assert (one.rule, one.count, one.sources) == ("root", 2, ("a/c", "b/c"))


def test_without_a_class_the_root_leaves_it_to_what_came_of_it_and_then_to_the_head() -> None:
    text = f"2026-11-30T07:20:26Z ERROR head failed\n{CHAINED}"
    assert counts(RULES, text.replace("ValueError: root cause", "KeyError: 'x'")) == {"later": 1}
    assert counts([HEAD], text) == {"head": 1}


def test_frames_say_nothing() -> None:
    assert counts(RULES, f"{TRACEBACK}KeyError: 'x'\n") == {}


def test_next_traceback_is_a_record_of_its_own() -> None:
    one = f"{TRACEBACK}ValueError: root cause\n"
    assert counts(RULES, one * 2) == {"root": 2}
    assert counts(RULES, f"2026-11-30T07:20:26Z ERROR head failed\n{one * 2}") == {"root": 2}


def test_traceback_whose_lines_came_long_after_a_head_is_its_own() -> None:
    text = docker("2026-11-30 07:20:10,123 ERROR head failed", 10) + docker(
        f"{TRACEBACK}ValueError: root cause".replace("'", "")
    )
    assert counts(RULES, text) == {"head": 1, "root": 1}
    (found,) = [one for one in read(RULES, text) if one.rule == "root"]
    assert found.first_s == pytest.approx(START_S + 26.003)


def test_last_cause_of_a_java_stack_is_the_event() -> None:
    stack = (
        "2026-11-30T07:20:26,225 [ERROR] main org.x.Y - head failed\njava.lang.RuntimeException: came of it\n"
        "\tat a.b.C.d(C.java:1)\nCaused by: java.lang.Error: root cause\n\tat e.f.G.h(G.java:2)\n\t... 12 more\n"
    )
    assert counts(RULES, stack) == {"root": 1}
    assert counts(RULES, stack.replace("root cause", "x")) == {"later": 1}


def test_traceback_inside_one_message_is_told_by_its_root() -> None:
    inner = CHAINED.replace("\n", "\\n").replace('"', "'")
    assert counts(RULES, f'E1130 07:20:26.000001 1 a.cc:1] "head failed\\n{inner}"\n') == {"root": 1}
    line = f'{{"timestamp": "2026-11-30T07:20:26Z", "level": "ERROR", "message": "head failed\\n{inner}"}}\n'
    assert counts(RULES, line) == {"root": 1}


def test_details_below_a_head_count_once_a_class() -> None:
    assert counts(RULES, "2026-11-30T07:20:26Z ERROR head failed\n  head failed\nhead failed\n") == {"head": 1}
    assert counts(RULES, "2026-11-30T07:20:26Z INFO fine\nhead failed\nhead failed\n") == {"head": 2}
    assert counts(RULES, "head failed\n  head failed here\nhead failed\n  head failed there\n") == {"head": 2}


def test_lines_of_other_programs_are_no_details() -> None:
    head = "2026-11-30T07:20:26Z ERROR head failed\n"
    assert counts(RULES, head + "[x] head failed\n2026/11/30 07:20:26 head failed\n") == {"head": 3}
    wrapped = docker("2026-11-30 07:20:10,123 ERROR head failed", 10) + docker("head failed", 26)
    assert counts(RULES, wrapped) == {"head": 2}


def test_dump_mutes_what_belongs_to_it_but_no_crash_below_it() -> None:
    head = "2026-11-30T07:20:26Z INFO arguments of it\n"
    assert counts(RULES, f"{head}  root cause\nroot cause\n| root cause |\n") == {}
    assert counts(RULES, f"{head}{TRACEBACK}ValueError: root cause\n") == {"root": 1}
    assert counts(RULES, f"{head}2026-11-30T07:20:27Z INFO root cause\n") == {"root": 1}
    assert counts(RULES, "arguments of: Args {\n  root cause\n}\n") == {}
    assert counts(RULES, "arguments of: x\n  root cause\n") == {"root": 1}


def test_vllm_repeats_its_head_behind_a_carriage_return() -> None:
    prefix = "INFO 11-30 07:20:26 [core.py:7] "
    assert counts(RULES, f"{prefix}fine\n{prefix}arguments of it\r\n{prefix}root cause\n") == {}
    # In a file where every line ends so it means nothing.
    assert counts(RULES, f"{prefix}fine\r\n{prefix}arguments of it\r\n{prefix}root cause\r\n") == {"root": 1}


def test_line_takes_the_time_of_its_head_or_of_a_neighbour() -> None:
    (one,) = read(RULES, "2026-11-30T07:20:26Z ERROR x\n  root cause\n")
    assert one.first_s == START_S + 26
    access = 'INFO:     10.0.0.9:1 - "POST /root cause HTTP/1.1" 500 Internal Server Error\n'
    (one,) = read(RULES, f"2026-11-30T07:20:26Z INFO x\n{access}")
    assert one.first_s == START_S + 26
    (one,) = read(RULES, "2026-11-30T07:20:26Z INFO x\n" + access.replace("root cause", "x") * 40 + access)
    assert one.first_s is None


def test_many_sources_in_turn_are_kept_apart_in_bounded_memory() -> None:
    pods = 600
    text = "".join(f"[pod/p{n}/c] ERROR head failed\n" for n in range(pods))
    (one,) = read(RULES, text)
    assert (one.count, len(one.sources)) == (pods, 5)


def test_lines_in_which_a_second_writer_got_its_own_are_told_apart() -> None:
    mixed = "I1130 07:20:26.000001 1 a.cc:1] all ERROR 11-30 07:20:26 [core.py:700] root cause\n"
    strict = rule("root", "root cause", level_at_least=Severity.ERROR)
    assert counts([strict], mixed) == {"root": 1}


def test_records_across_a_block_are_one() -> None:
    head = stamped((0, "ERROR head failed"))
    filler = "".join(f"  frame {n} of many\n" for n in range(300))
    assert counts(RULES, f"{head}{TRACEBACK}{filler}ValueError: root cause\n") == {"root": 1}
