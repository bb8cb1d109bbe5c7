"""The diagnosis on one screen: worst first, numbers with units, the next command at the end."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from latencydoctor.model.diagnosis import Answer, Cause, Diagnosis, Finding, LedgerRow, Step
from latencydoctor.model.evidence import IncidentState
from latencydoctor.report.foreign import clean, plain
from latencydoctor.report.units import amount, clock, span
from latencydoctor.report.wording import before, compared, name

_STATE_STYLE = {
    IncidentState.HEALTHY: "bold green",
    IncidentState.INCIDENT: "bold red",
    IncidentState.CANNOT_TELL: "bold yellow",
}
_ANSWER_STYLE = {Answer.YES: "bold red", Answer.NO: "green", Answer.UNKNOWN: "yellow"}
_LABEL_WIDTH = 9
_BAR_WIDTH = 20


def show(result: Diagnosis, console: Console, *, verbose: bool = False) -> None:
    """Print a diagnosis; `verbose` adds every finding, query and gap."""
    rows: list[RenderableType] = [_headline(result)]
    if result.cause is not None:
        rows += _cause(result.cause)
    elif result.inconclusive and result.incident.state is IncidentState.INCIDENT:
        rows.append(_line("CAUSE", Text(f"cannot tell: {result.inconclusive}", style="yellow")))
    if result.path:
        rows.append(_block("PATH", _path(result.path)))
    if result.ledger and result.incident.state is IncidentState.INCIDENT:
        rows.append(_block("TIME", _ledger(result.ledger)))
    if result.log_events:
        rows.append(_block("LOGS", _logs(result)))
    if result.missing:
        rows.append(_line("MISSING", _missing(result, verbose)))
    if verbose:
        rows.append(_block("QUERIES", _queries(result)))
    if result.next_command:
        rows.append(_line("NEXT", Text(result.next_command, style="bold cyan")))
    console.print(Group(*rows), soft_wrap=False)


def _line(label: str, content: Text) -> RenderableType:
    return _block(label, content)


def _block(label: str, content: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL_WIDTH, no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_row(Text(label, style="bold"), content)
    return grid


def _headline(result: Diagnosis) -> RenderableType:
    incident = result.incident
    text = Text(incident.state.value.upper(), style=_STATE_STYLE[incident.state])
    text.append("  ")
    text.append(clean(incident.reason), style="default")
    if incident.since_s is not None and incident.state is IncidentState.INCIDENT:
        text.append(f"  since {clock(incident.since_s)} UTC ({span(result.now_s - incident.since_s)})")
    text.append(f"\nmodel {clean(result.selection.model) or 'not named'}", style="dim")
    text.append(f", as of {clock(result.now_s)} UTC", style="dim")
    if result.simulated:
        text.append("  SIMULATED ACCELERATOR", style="bold magenta")
    return text


def _cause(cause: Cause) -> list[RenderableType]:
    title = Text(cause.title, style="bold")
    title.append(f"  ({cause.id}, confidence {cause.confidence.value})", style="dim")
    rows: list[RenderableType] = [_line("CAUSE", title), _line("", plain(cause.meaning))]
    if cause.evidence:
        rows.append(Padding(_findings(cause.evidence), (0, 0, 0, _LABEL_WIDTH + 1)))
    if cause.symptoms:
        rows.append(_line("SYMPTOMS", _symptoms(cause.symptoms)))
    rows.append(_line("DO", Text(cause.advice, style="bold")))
    if cause.not_this:
        rows.append(_line("DO NOT", Text(cause.not_this)))
    return rows


def _findings(findings: tuple[Finding, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", style="dim")
    for finding in findings:
        was = before(finding)
        query = plain(finding.proof.query, limit=500) if finding.proof else Text()
        table.add_row(name(finding.signal), compared(finding), f"before {was}" if was else "", query)
    return table


def _symptoms(findings: tuple[Finding, ...]) -> Text:
    parts = [f"{name(one.signal)} {before(one)} → {amount(one.value, one.unit)}" for one in findings]
    return Text(", ".join(parts))


def _path(steps: tuple[Step, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=7, no_wrap=True)
    table.add_column(ratio=1)
    for step in steps:
        text = Text(step.question)
        deciding = _deciding(step)
        if deciding:
            text.append(f"  {deciding}", style="dim")
        table.add_row(Text(step.answer.value, style=_ANSWER_STYLE[step.answer]), text)
    return table


def _deciding(step: Step) -> str:
    """The numbers that settled it: for a no or an unknown the first that said so, for a yes those that agree."""
    findings = [one for one in step.findings if one.answer is step.answer]
    chosen = findings if step.answer is Answer.YES else findings[:1]
    return "; ".join(f"{name(one.signal)} {compared(one)}" for one in chosen[:3])


def _ledger(rows: tuple[LedgerRow, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    for row in rows:
        if row.mean_ms is None:
            continue
        share = max(0.0, min(1.0, row.share_ratio or 0.0))
        was = f"before {amount(row.baseline_ms, 'ms')}" if row.baseline_ms is not None else ""
        table.add_row(row.part, amount(row.mean_ms, "ms"), was, Text("█" * round(share * _BAR_WIDTH), style="blue"))
    return table


def _logs(result: Diagnosis) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=8, no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for event in result.log_events[:4]:
        line = Text(f"{event.rule} x{event.count} {clock(event.first_s)}-{clock(event.last_s)} ")
        line.append_text(plain(event.line, style="dim"))
        table.add_row(Text(event.severity.value), line)
    return table


def _missing(result: Diagnosis, verbose: bool) -> Text:
    gaps = result.missing if verbose else result.missing[:6]
    parts = [
        f"{name(gap.signal)} ({gap.reason.value}{': ' + clean(gap.detail) if verbose and gap.detail else ''})"
        for gap in gaps
    ]
    rest = len(result.missing) - len(gaps)
    return Text(", ".join(parts) + (f" and {rest} more (--verbose)" if rest else ""), style="yellow")


def _queries(result: Diagnosis) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for record in result.queries:
        table.add_row(plain(f"{record.source} {record.outcome}"), plain(record.query, limit=500))
    return table
