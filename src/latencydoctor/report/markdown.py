"""Reports in Markdown: a diagnosis alone, or a whole incident with its timeline, change and verification.

Foreign text is escaped, so a model name or log line cannot add structure to the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from latencydoctor.model.diagnosis import Cause, Diagnosis, Finding
from latencydoctor.model.evidence import IncidentState
from latencydoctor.model.incident import IncidentRecord, LoadWindow, TimelineEntry
from latencydoctor.model.reached import BatchesRun
from latencydoctor.model.remedy import Plan, Verification
from latencydoctor.report.change import by_priority, no_gain
from latencydoctor.report.foreign import clean, markdown
from latencydoctor.report.markdown_canary import canary
from latencydoctor.report.markdown_postmortem import follow_up, impact
from latencydoctor.report.markdown_suspects import suspects
from latencydoctor.report.markdown_table import QUERY_LIMIT, code, table
from latencydoctor.report.onset import in_markdown
from latencydoctor.report.reached import batches_line, sizes_line, why_outside
from latencydoctor.report.units import amount, clock, instant, interval
from latencydoctor.report.wording import before, compared, name, undone

_SIMULATED = "> **Simulated accelerator.** Latencies, busy times and predictions below come from a simulated device."


def diagnosis(result: Diagnosis) -> str:
    """A diagnosis as a document of its own."""
    lines = [f"# Diagnosis of {markdown(result.selection.model) or 'the service'}", ""]
    if result.simulated:
        lines += [_SIMULATED, ""]
    return "\n".join(lines + _diagnosis(result)) + "\n"


def incident(record: IncidentRecord) -> str:
    """The whole incident: impact, timeline, evidence, change, verification, what is left to do."""
    lines = [f"# {markdown(record.title)}", ""]
    if record.simulated:
        lines += [f"{_SIMULATED} Accelerator: `{clean(record.accelerator)}`.", ""]
    lines += impact(record)
    lines += ["## Timeline (UTC)", ""]
    rows = ((clock(one.at_s), markdown(one.what), code(one.proof)) for one in sorted_entries(record))
    lines += table(("time", "what", "shown by"), rows)
    if record.windows:
        lines += ["## Measured load", "", *_windows(record.windows)]
    lines += _diagnosis(record.diagnosis)
    if record.plan is not None:
        lines += _plan(record.plan, record.verification)
    if record.trial is not None:
        lines += canary(record.trial)
    if record.verification is not None:
        lines += _verification(record.verification)
    lines += follow_up(record)
    return "\n".join(lines) + "\n"


def sorted_entries(record: IncidentRecord) -> list[TimelineEntry]:
    """Timeline entries in order of time; equal times keep their order."""
    return sorted(record.timeline, key=lambda entry: entry.at_s)


def _diagnosis(result: Diagnosis) -> list[str]:
    incident_ = result.incident
    lines = ["## What is wrong", "", f"**{incident_.state.value}**: {markdown(incident_.reason)}"]
    if incident_.since_s is not None and incident_.state is IncidentState.INCIDENT:
        lines.append(f"Since {instant(incident_.since_s)}, as of {instant(result.now_s)}.")
    if result.baseline_window is not None and incident_.state is IncidentState.INCIDENT:
        was = result.baseline_window
        lines.append(f"Baselines are of {instant(was.start_s)} to {instant(was.end_s)}.")
    lines.append("")
    if result.cause is not None:
        lines += _cause(result.cause)
    elif incident_.state is IncidentState.INCIDENT:
        lines += [f"The cause cannot be told: {markdown(result.inconclusive)}", ""]
    if result.path:
        lines += ["## Path through the tree", "", f"Playbook `{result.playbook}`.", ""]
        rows = (
            (step.question, step.answer.value, "; ".join(f"{name(f.signal)} {compared(f)}" for f in step.findings))
            for step in result.path
        )
        lines += table(("question", "answer", "numbers"), rows)
    if result.remarks:
        lines += ["## Settings worth a look", "", *(f"- {markdown(str(one))}" for one in result.remarks), ""]
    lines += _ledger(result) + in_markdown(result) + _logs(result) + suspects(result) + _missing(result)
    return lines


def _cause(cause: Cause) -> list[str]:
    lines = [
        "## Cause",
        "",
        f"**{cause.title}** (`{cause.id}`, confidence {cause.confidence.value}). {cause.meaning}",
        "",
    ]
    lines += _findings(cause.evidence)
    if cause.symptoms:
        told = ", ".join(f"{name(one.signal)} {before(one)} → {amount(one.value, one.unit)}" for one in cause.symptoms)
        lines += [f"Symptoms explained by it, over the incident: {told}.", ""]
    if cause.folded:
        lines += [f"Looks like, because of it: {', '.join(f'`{one.id}`' for one in cause.folded)}.", ""]
    if cause.forecast is not None:
        lines += [f"**If it is undone:** {markdown(undone(cause.forecast))}.", ""]
    lines += [f"**Do:** {cause.advice}", ""]
    if cause.not_this:
        lines += [f"**Do not:** {cause.not_this.removeprefix('Do not ')}", ""]
    return lines


def _findings(findings: Sequence[Finding]) -> list[str]:
    rows = (
        (
            name(one.signal),
            compared(one),
            before(one),
            f"{clock(one.window.start_s)}-{clock(one.window.end_s)}",
            code(one.proof.query if one.proof else "", QUERY_LIMIT),
        )
        for one in findings
    )
    return table(("signal", "value and threshold", "baseline", "window (UTC)", "query"), rows)


def _ledger(result: Diagnosis) -> list[str]:
    rows = [
        (row.part, amount(row.mean_ms, "ms"), amount(row.baseline_ms, "ms"), amount(row.share_ratio, "ratio"))
        for row in result.ledger
        if row.mean_ms is not None
    ]
    if not rows:
        return []
    over = any((row.share_ratio or 0.0) < 0 for row in result.ledger)
    note = ["Parts make up more than the whole: each is a mean of the requests that meet it, and some skip parts.", ""]
    shown = table(("part", "now", "baseline", "share"), rows)
    return ["## Where the time goes (means)", "", *shown, *(note if over else ())]


def _logs(result: Diagnosis) -> list[str]:
    rows = [
        (one.severity.value, one.rule, str(one.count), f"{clock(one.first_s)}-{clock(one.last_s)}", code(one.line))
        for one in result.log_events
    ]
    return ["## Log events", "", *table(("level", "event", "count", "time (UTC)", "first line"), rows)] if rows else []


def _missing(result: Diagnosis) -> list[str]:
    if not result.missing:
        return []
    rows = ((name(gap.signal), gap.reason.value, markdown(gap.detail), markdown(gap.needs)) for gap in result.missing)
    return ["## Missing evidence", "", *table(("signal", "reason", "detail", "needs"), rows)]


def _windows(windows: Iterable[LoadWindow]) -> list[str]:
    found = list(windows)
    classes = any(one.vip_p99_ms is not None for one in found)
    rows = (
        (
            one.label,
            f"{clock(one.start_s)} + {one.length_s:.0f} s",
            amount(one.offered_rps, "requests/s"),
            amount(one.p50_ms, "ms"),
            amount(one.p99_ms, "ms"),
            str(one.failed),
            amount(one.hit_ratio, "ratio"),
            *(_by_priority(one) if classes else ()),
        )
        for one in found
    )
    head = ("window", "when (UTC)", "offered", "p50", "p99", "failed", "hit ratio")
    return table((*head, *(("VIP p99", "standard p99", "turned away") if classes else ())), rows)


def _by_priority(window: LoadWindow) -> tuple[str, str, str]:
    return (
        amount(window.vip_p99_ms, "ms"),
        amount(window.standard_p99_ms, "ms"),
        amount(window.shed_ratio, "ratio"),
    )


def _plan(plan: Plan, verification: Verification | None) -> list[str]:
    lines = ["## Change", "", f"`{plan.fix}`: {markdown(plan.title)} on {markdown(plan.target)}.", ""]
    lines += ["```diff", *clean_block(plan.diff), "```", ""]
    lines += ["Compiled server configuration:", "", "```diff", *clean_block(plan.compiled_diff), "```", ""]
    measured = {one.signal: one.measured for one in verification.reached} if verification is not None else {}
    rows = [
        (
            name(one.signal),
            amount(one.before, one.unit),
            amount(one.after, one.unit),
            interval(one.low, one.high, one.unit) or "-",
            amount(measured.get(one.signal), one.unit),
            markdown(one.method),
        )
        for one in plan.predictions
    ]
    if rows:
        titles = ("signal", "before", "predicted", "interval", "reached", "method")
        lines += ["Predicted effect, and what verification measured of it:", "", *table(titles, rows)]
    if gain := no_gain(plan):
        lines += [f"**{gain}**", ""]
    if verification is not None and (why := why_outside(verification.reached)):
        lines += ["", f"Why p99 lies outside its interval: {why}.", ""]
    return lines


def clean_block(text: str) -> list[str]:
    """Lines safe inside a fenced block: no control bytes, and no line that could close the fence."""
    return [clean(line, 500).replace("```", "'''") for line in text.splitlines()]


def _batches(ran: BatchesRun) -> list[str]:
    return [f"{batches_line(ran).capitalize()}.", "", f"{sizes_line(ran).capitalize()}."]


def _verification(verification: Verification) -> list[str]:
    rows = (
        (
            clock(one.at_s),
            amount(one.p99_ms, "ms"),
            amount(one.error_ratio, "ratio"),
            amount(one.hit_ratio, "ratio"),
            amount(one.memory_bytes, "bytes"),
            amount(one.requests, ""),
            ("passed" if one.passed else "failed") if one.conclusive else "not conclusive",
            markdown("; ".join((*by_priority(one), *([one.note] if one.note else [])))),
        )
        for one in verification.checks
    )
    head = ["## Verification", "", f"**{verification.decision.value}**: {markdown(verification.reason)}", ""]
    if verification.batches is not None:
        head += [*_batches(verification.batches), ""]
    return head + table(("at (UTC)", "p99", "errors", "cache hits", "memory", "requests", "check", "note"), rows)
