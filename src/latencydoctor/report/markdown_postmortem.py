"""What makes an incident's report a postmortem: what those who sent requests had of it, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterator

from latencydoctor.model.evidence import GapReason, IncidentState
from latencydoctor.model.incident import IncidentRecord, LoadWindow
from latencydoctor.model.remedy import Decision, Verification
from latencydoctor.report.foreign import markdown
from latencydoctor.report.markdown_table import code
from latencydoctor.report.reached import why_outside
from latencydoctor.report.units import amount, instant, span
from latencydoctor.report.wording import name

_DURING = {"before": "before the fix", "reload": "while the change took effect"}
"""Measured windows in which requests met the incident or its cure."""


def impact(record: IncidentRecord) -> list[str]:
    """How long it lasted, and how the requests of the measured windows fared; nothing where there was no incident."""
    incident = record.diagnosis.incident
    if incident.state is not IncidentState.INCIDENT:
        return []
    lines = [f"- {_lasted(record)}"]
    limit = f", limit {amount(incident.limit, 'ms')}" if incident.limit and incident.signal == "e2e_p99_ms" else ""
    lines += [f"- {_fared(window, limit)}" for window in record.windows if window.label in _DURING]
    return ["## Impact", "", *lines, ""]


def follow_up(record: IncidentRecord) -> list[str]:
    """What the incident leaves to do, each item from a finding of this report; says so where there is nothing."""
    items = list(dict.fromkeys(_items(record)))
    return ["## Follow-up", "", *([f"- [ ] {one}" for one in items] or ["Nothing that these figures ask for."]), ""]


def _lasted(record: IncidentRecord) -> str:
    since_s = record.diagnosis.incident.since_s
    began = f"From {instant(since_s)}" if since_s is not None else "From before the first window that is known"
    over_s = _over_s(record.verification)
    if over_s is None:
        return f"{began}; not over at the last figures of this report."
    length = f" ({span(over_s - since_s)})" if since_s is not None else ""
    met = next((one.offered_rps for one in record.windows if one.label == "before"), None)
    told = f"{began} until the fix was verified at {instant(over_s)}{length}"
    if met is None or since_s is None:
        return f"{told}."
    return f"{told}; at {amount(met, 'requests/s')} that is about {amount(met * (over_s - since_s), 'requests')}."


def _over_s(verification: Verification | None) -> float | None:
    if verification is None or verification.decision is not Decision.KEEP or not verification.checks:
        return None
    return verification.checks[-1].at_s


def _fared(window: LoadWindow, limit: str) -> str:
    offered = round(window.offered_rps * window.length_s)
    share = f" ({amount(window.failed / offered, 'ratio')})" if offered else ""
    return (
        f"In the {window.length_s:.0f} s measured {_DURING[window.label]}: {offered:,} requests offered, "
        f"{window.failed:,} failed{share}, p99 {amount(window.p99_ms, 'ms')}{limit}."
    )


def _items(record: IncidentRecord) -> Iterator[str]:
    found = record.diagnosis
    if found.incident.state is IncidentState.INCIDENT:
        yield from _of_the_change(record)
        if found.deciding is not None:
            needs = f": {markdown(found.deciding.needs)}" if found.deciding.needs else ""
            yield f"Measure {name(found.deciding.signal)}, it would have decided most{needs}."
    for gap in found.missing:
        if gap.reason is GapReason.UNREACHABLE:
            yield f"Make {name(gap.signal)} readable again: {markdown(gap.detail)}."
    if record.verification is not None and (why := why_outside(record.verification.reached)):
        yield f"Find out why p99 lies outside its predicted interval: {why}."
    for remark in found.remarks:
        yield f"Look at the settings: {markdown(str(remark))}."


def _of_the_change(record: IncidentRecord) -> Iterator[str]:
    cause, plan, verification = record.diagnosis.cause, record.plan, record.verification
    advice = cause.advice if cause is not None else "Find the cause; the nearest ones are listed above."
    if plan is None:
        command = record.diagnosis.next_command
        yield f"Nothing was changed. {advice}" + (f" Next: {code(command, 4000)}" if command else "")
    elif verification is None:
        yield f"`{plan.fix}` was planned and not verified. {advice}"
    elif verification.decision is Decision.KEEP:
        if plan.diff:
            place = markdown(plan.target)
            yield f"Write `{plan.fix}` into what deploys {place}, or the next deployment takes it back."
    elif verification.decision is Decision.HOLD:
        yield f"Decide on `{plan.fix}`, which is held: {markdown(verification.reason)}."
    else:
        yield f"`{plan.fix}` did not hold ({markdown(verification.reason)}); the cause is still there. {advice}"
