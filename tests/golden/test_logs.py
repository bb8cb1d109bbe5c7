"""Logs of public records of real operators, each with what a perfect reader would say and what this one says.

Every folder in `logs/` has one record's message shapes in words, hosts and figures of our own. `expects.yaml` was made
from the record alone: the classes with their number of events and first moment, `also` what does no harm beside them,
`never` what the record warns of. `answer.json` is what `latencydoctor logs --format json` prints, to the byte.

`python -m tests.golden.test_logs` writes the answers and the table `logs/README.md` anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from latencydoctor.content.locate import locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.evidence.logs.reader import scanner_for
from latencydoctor.model.evidence import Window
from latencydoctor.report import pyramid
from latencydoctor.sources import logfiles
from latencydoctor.sources.logfiles import LogFiles

FOLDER = Path(__file__).with_name("logs")
TABLE = FOLDER / "README.md"
WITHOUT_LINES = Path(__file__).with_name("records_without_lines.yaml")
RECORDS = frozenset(f"O-{number:02}" for number in range(1, 78))
NO_LOGS = frozenset({"expects.yaml", "answer.json"})
START_WITHIN_S = 1.0


@dataclass(frozen=True)
class Expected:
    """One class, any of `classes`; `firsts_s` are accepted first moments, none when the record does not tell."""

    classes: tuple[str, ...]
    count: tuple[int, int]
    firsts_s: tuple[float, ...]

    def __str__(self) -> str:
        low, high = self.count
        return f"{' or '.join(self.classes)} x{low if low == high else f'{low} to {high}'}"


@dataclass(frozen=True)
class Case:
    """One folder of `logs/`."""

    id: str
    source: str
    server: str
    written_s: float
    expects: tuple[Expected, ...]
    also: frozenset[str]
    never: frozenset[str]
    note: str


def _moment_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _listed(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def _expected(entry: dict[str, Any]) -> Expected:
    low, _, high = str(entry["count"]).partition("-")
    firsts = tuple(_moment_s(text) for text in _listed(entry.get("first")))
    return Expected(_listed(entry["class"]), (int(low), int(high or low)), firsts)


def _case(folder: Path) -> Case:
    top: dict[str, Any] = yaml.safe_load((folder / "expects.yaml").read_text(encoding="utf-8"))
    written = top.pop("written")
    return Case(
        id=folder.name,
        source=top.pop("source"),
        server=top.pop("server"),
        written_s=written.timestamp() if isinstance(written, datetime) else _moment_s(written),
        expects=tuple(_expected(entry) for entry in top.pop("expects")),
        also=frozenset(top.pop("also", ())),
        never=frozenset(top.pop("never", ())),
        note=top.pop("note", ""),
        **top,
    )


CASES = [_case(folder) for folder in sorted(FOLDER.iterdir()) if folder.is_dir()]


def place_logs(case: Case, where: Path) -> None:
    """A copy of the case's logs, with the time at which they were written, which dates stamps without a year."""
    (where / case.id).mkdir()
    for file in (FOLDER / case.id).iterdir():
        if file.name not in NO_LOGS:
            copy = where / case.id / file.name
            shutil.copyfile(file, copy)
            os.utime(copy, (case.written_s, case.written_s))


@cache
def answers() -> dict[str, str]:
    """What the program says of every case, by the shipped rules, which are compiled once for all."""
    rules = load_log_rules(locate())
    scanner = scanner_for(rules)
    window = Window(float("-inf"), float("inf"))
    said = {}
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder, chdir(folder):
        patch.setattr(logfiles, "log_scanner", lambda _rules: scanner)
        for case in CASES:
            place_logs(case, Path())
            readings = LogFiles([case.id], now_s=lambda: 0.0).read(rules, window)
            said[case.id] = pyramid.document(readings.log_events, readings.gaps, readings.queries) + "\n"
    return said


def _events(answer: str) -> dict[str, dict[str, Any]]:
    """Events of an answer that are alarms, by class."""
    events: list[dict[str, Any]] = json.loads(answer)["events"]
    return {one["rule"]: one for one in events if one["severity"] != "INFO"}


def faults(case: Case, answer: str) -> Iterator[tuple[str, str]]:
    """What is not as a perfect reader would say it: `abstains` or `wrong`, and what it is."""
    found = _events(answer)
    excused = set(case.also)
    for expected in case.expects:
        excused |= set(expected.classes)
        event = next((found[name] for name in expected.classes if name in found), None)
        if event is None:
            yield "abstains", f"no {' or '.join(expected.classes)}"
            continue
        low, high = expected.count
        if not low <= event["count"] <= high:
            yield "wrong", f"{event['rule']} x{event['count']}"
        first_s = event["first_s"]
        if expected.firsts_s and not any(
            first_s is not None and abs(first_s - one) <= START_WITHIN_S for one in expected.firsts_s
        ):
            yield "wrong", f"{event['rule']} at another time"
    for name in sorted(found):
        if name in case.never or name not in excused:
            yield "wrong", f"{name} raised"


def outcome(case: Case, answer: str) -> str:
    """Right, wrong, or abstains: nothing false is said, but something of the record is missing."""
    kinds = {kind for kind, _ in faults(case, answer)}
    return "wrong" if "wrong" in kinds else "abstains" if kinds else "right"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_answer_is_the_recorded_one(case: Case) -> None:
    recorded = (FOLDER / case.id / "answer.json").read_text(encoding="utf-8")
    assert answers()[case.id] == recorded, "python -m tests.golden.test_logs writes it"


def test_the_command_prints_the_answer(tmp_path: Path) -> None:
    case = next(one for one in CASES if one.id.startswith("43"))
    place_logs(case, tmp_path)
    argv = [sys.executable, "-m", "latencydoctor", "logs", case.id, "--format", "json", "--exit-zero"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n") + "\n" == answers()[case.id]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_nothing_the_record_warns_of_is_raised(case: Case) -> None:
    assert not case.never & set(_events(answers()[case.id]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_names_only_what_exists(case: Case) -> None:
    assert case.source == f"O-{case.id[:2]}"
    rules = {rule.id for rule in load_log_rules(locate())}
    named = {name for expected in case.expects for name in expected.classes} | case.also | case.never
    assert named <= rules


def test_every_record_is_a_case_or_has_no_lines() -> None:
    without = set(_without_lines())
    with_lines = {case.source for case in CASES}
    assert not without & with_lines
    assert without | with_lines == RECORDS


def test_the_table_is_up_to_date() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "python -m tests.golden.test_logs writes it"


def _without_lines() -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(WITHOUT_LINES.read_text(encoding="utf-8"))
    return found


def _row(case: Case, answer: str) -> str:
    says = ", ".join(f"{one['rule']} x{one['count']}" for one in _events(answer).values()) or "nothing"
    wanted = ", ".join(str(one) for one in case.expects) or "nothing"
    why = "; ".join(what for _, what in faults(case, answer))
    note = "; ".join(filter(None, (why, case.note)))
    cells = (f"[{case.source}]({case.id})", case.server, says, outcome(case, answer), wanted, note)
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def table() -> str:
    """The page: the counts, then one line a record."""
    outcomes = [outcome(case, answers()[case.id]) for case in CASES]
    rows = [(case.source, _row(case, answers()[case.id])) for case in CASES]
    rows += [(source, f"| {source} | | | | | no lines: {why} |") for source, why in _without_lines().items()]
    counts = ", ".join(f"{outcomes.count(name)} {name}" for name in ("right", "abstains", "wrong"))
    return "\n".join(
        (
            "# What the tool says of the logs of public records",
            "",
            "Written by `python -m tests.golden.test_logs` from the folders beside it; do not edit. Each folder has",
            "the message shapes of one record of a real operator in other words and figures. What is expected was",
            "written from the record, before the tool was run. *abstains*: nothing false is said, but something of",
            "the record is missing.",
            "",
            f"{len(CASES)} records with log lines: {counts}. {len(_without_lines())} records have none.",
            "",
            "| record | server | the tool says | judged | expected | remarks |",
            "|---|---|---|---|---|---|",
            *(row for _, row in sorted(rows)),
            "",
        )
    )


def write() -> None:
    """Record what the program says now."""
    for case in CASES:
        (FOLDER / case.id / "answer.json").write_text(answers()[case.id], encoding="utf-8")
    TABLE.write_text(table(), encoding="utf-8")


if __name__ == "__main__":
    write()
