"""A journalled run as a timeline in Markdown, to be put into a postmortem: also one that was cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from latencydoctor.model.remedy import JournalEntry, RunEvent
from latencydoctor.report.foreign import markdown
from latencydoctor.report.markdown_table import code, table
from latencydoctor.report.units import amount, instant

_DONE = frozenset({RunEvent.WRITE_DONE, RunEvent.CANARY_DONE, RunEvent.UNDO_DONE, RunEvent.COMMITTED, RunEvent.ENDED})


def timeline(run_id: str, entries: Sequence[JournalEntry]) -> str:
    """What the run did and when, a row for each record of its journal, and where there is no end, that."""
    rows = [
        (instant(one.at_s), markdown(one.event), markdown(_told(one)), code(_digest(one.fields, one.event)))
        for one in entries
    ]
    lines = [f"## Run {markdown(run_id)}", "", *table(("time", "what", "how", "state by digest"), rows)]
    if not entries or entries[-1].event != RunEvent.ENDED:
        lines += ["**It has no end: it was cut off or is under way.** `latencydoctor runs recover` finishes it.", ""]
    return "\n".join(lines)


def _told(entry: JournalEntry) -> str:
    fields = entry.fields
    if entry.event == RunEvent.STARTED:
        of = f" of run {fields['of']}" if fields.get("of") else ""
        return f"{fields.get('kind', '')}{of}: {fields.get('fix', '')} on {fields.get('target', '')}"
    if entry.event == RunEvent.CHECK:
        return _check(fields)
    said = [str(fields[key]) for key in ("decision", "state", "phase", "reason") if fields.get(key)]
    return ": ".join(said)


def _check(fields: Mapping[str, object]) -> str:
    word = ("passed" if fields.get("passed") else "failed") if fields.get("conclusive") else "not conclusive"
    figures = (("p99", "p99_ms", "ms"), ("errors", "error_ratio", "ratio"))
    told = [f"{name} {amount(_number(fields.get(key)), unit)}" for name, key, unit in figures]
    told.append(amount(_number(fields.get("requests")), "requests"))
    note = f"; {fields['note']}" if fields.get("note") else ""
    return f"{word}: {', '.join(told)}{note}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _digest(fields: Mapping[str, object], event: str) -> str:
    return str(fields.get("digest") or "")[:12] if event in _DONE else ""
