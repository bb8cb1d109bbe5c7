"""The diagnosis on one screen: worst first, numbers with units, the next command at the end."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from latencydoctor.model.diagnosis import Answer, Cause, Diagnosis, Finding, LedgerRow, Step
from latencydoctor.model.evidence import Gap, GapReason, IncidentState
from latencydoctor.model.remark import Remark
from latencydoctor.report.foreign import clean, plain
from latencydoctor.report.onset import on_screen
from latencydoctor.report.suspects import beside_the_cause
from latencydoctor.report.terminal_block import LABEL_WIDTH, block, line
from latencydoctor.report.units import amount, clock, day, span
from latencydoctor.report.wording import PARTS_OVERLAP, before, compared, name, undone

_STATE_STYLE = {
    IncidentState.HEALTHY: "bold green",
    IncidentState.INCIDENT: "bold red",
    IncidentState.CANNOT_TELL: "bold yellow",
}
_ANSWER_STYLE = {Answer.YES: "bold red", Answer.NO: "green", Answer.UNKNOWN: "yellow"}
_SOURCES = ("metrics", "pages", "logs")
_BAR_WIDTH = 20
_WIDE = 120
_SHOWN_GAPS = 6
_SHOWN_REMARKS = 2
_SHOWN_SHARE_RATIO = 0.02


def show(result: Diagnosis, console: Console, *, verbose: bool = False) -> None:
    """Print a diagnosis; `verbose` adds whole questions, every part of the time, every gap and query."""
    rows: list[RenderableType] = [_headline(result)]
    if result.cause is not None:
        rows += _cause(result.cause, wide=console.width >= _WIDE)
    elif result.inconclusive and result.incident.state is IncidentState.INCIDENT:
        rows.append(line("CAUSE", Text(f"cannot tell: {result.inconclusive}", style="yellow")))
    rows += beside_the_cause(result, verbose=verbose)
    rows += _remarks(result.remarks, verbose)
    if result.path:
        rows.append(block("PATH", _path(result.path, verbose)))
    if result.ledger and result.incident.state is IncidentState.INCIDENT:
        rows.append(block("TIME", _ledger(result.ledger, verbose)))
    began = on_screen(result) if result.log_events or verbose else None
    if began is not None:
        rows.append(block("ONSET UTC", began))
    if result.log_events:
        rows.append(block("LOGS UTC", _logs(result)))
    if result.missing:
        rows.append(line("MISSING", _missing(result, verbose)))
    if verbose:
        rows.append(block("QUERIES", _queries(result)))
    console.print(Group(*rows), soft_wrap=False)
    if result.next_command:
        # Never broken into lines, so that it can be copied.
        label = (f"{'NEXT':<{LABEL_WIDTH}} ", "bold")
        console.print(Text.assemble(label, (clean(result.next_command, limit=4000), "bold cyan")), soft_wrap=True)


def _headline(result: Diagnosis) -> RenderableType:
    incident = result.incident
    text = Text(incident.state.value.upper(), style=_STATE_STYLE[incident.state])
    text.append("  ")
    text.append(clean(incident.reason), style="default")
    if incident.since_s is not None and incident.state is IncidentState.INCIDENT:
        text.append(f"  since {clock(incident.since_s)} UTC ({span(result.now_s - incident.since_s)})")
    text.append(f"\nmodel {clean(result.selection.model) or 'not named'}", style="dim")
    text.append(f", as of {day(result.now_s)} {clock(result.now_s)} UTC", style="dim")
    if result.simulated:
        text.append("  SIMULATED ACCELERATOR", style="bold magenta")
    return text


def _cause(cause: Cause, *, wide: bool) -> list[RenderableType]:
    title = Text(cause.title, style="bold")
    witnesses = f": {', '.join(cause.witnesses).replace('_', ' ')}" if cause.witnesses else ""
    title.append(f"  ({cause.id}, confidence {cause.confidence.value}{witnesses})", style="not bold dim")
    rows: list[RenderableType] = [line("CAUSE", title), line("", plain(cause.meaning))]
    if cause.evidence:
        rows.append(block("PROOF", _findings(cause.evidence) if wide else _stacked(cause.evidence)))
    if cause.forecast is not None and cause.forecast.answer is not Answer.UNKNOWN:
        rows.append(line("FORECAST", Text(undone(cause.forecast))))
    if cause.symptoms or cause.folded:
        rows.append(line("SYMPTOMS", _symptoms(cause)))
    rows.append(line("DO", Text(cause.advice, style="bold")))
    if cause.not_this:
        # The label says it already.
        rows.append(line("DO NOT", Text(cause.not_this.removeprefix("Do not "))))
    return rows


def _findings(findings: tuple[Finding, ...]) -> RenderableType:
    """One line a finding, its query at the end, for screens with room for it."""
    told = [(name(one.signal), compared(one), f"before {before(one)}" if before(one) else "") for one in findings]
    widths = [max(map(len, column)) for column in zip(*told, strict=True)]
    table = Table.grid()
    # One column: among several rich takes the room for a long query from the names beside it.
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for words, finding in zip(told, findings, strict=True):
        row = Text("".join(word.ljust(width + 2) for word, width in zip(words, widths, strict=True)))
        table.add_row(row.append_text(_query(finding)))
    return table


def _stacked(findings: tuple[Finding, ...]) -> RenderableType:
    """The query on a line of its own below the numbers, for narrow screens."""
    table = Table.grid()
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for finding in findings:
        was = before(finding)
        table.add_row(Text(f"{name(finding.signal)} {compared(finding)}{f', before {was}' if was else ''}"))
        query = Text("  ", style="dim")
        query.append_text(_query(finding))
        table.add_row(query)
    return table


def _query(finding: Finding) -> Text:
    return plain(finding.proof.query, style="dim", limit=500) if finding.proof else Text()


def _symptoms(cause: Cause) -> Text:
    """Signals that moved because of it, and causes that only look true because of it."""
    parts = [f"{name(one.signal)} {before(one)} → {amount(one.value, one.unit)}" for one in cause.symptoms]
    # The headline's figure is of the last windows, these are of all since the onset.
    over = "over the incident: " if parts else ""
    return Text(over + ", ".join([*parts, *(f"looks like {one.id}" for one in cause.folded)]))


def _path(steps: tuple[Step, ...], verbose: bool) -> RenderableType:
    """One line a question: the answer, and what settled it. A no is what was ruled out."""
    # `expand`: else rich makes it wider than its place, and the sign that a text is cut falls off with its end.
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(min_width=7, no_wrap=True)
    table.add_column(ratio=1, no_wrap=not verbose, overflow="ellipsis")
    for step in steps:
        text = Text(step.question if verbose else f"{step.node.replace('_', ' ')}?")
        deciding = _deciding(step)
        if deciding:
            text.append(f"  {deciding}", style="dim")
        table.add_row(Text(step.answer.value, style=_ANSWER_STYLE[step.answer]), text)
    return table


def _deciding(step: Step) -> str:
    """The numbers that settled it: for a no or an unknown the first that said so, for a yes those that agree."""
    findings = [one for one in step.findings if one.answer is step.answer]
    chosen = list({one.signal: one for one in findings}.values()) if step.answer is Answer.YES else findings[:1]
    return "; ".join(f"{name(one.signal)} {compared(one)}" for one in chosen[:3])


def _ledger(rows: tuple[LedgerRow, ...], verbose: bool) -> RenderableType:
    """Parts of the mean time with a bar; parts below 2 % only when `verbose`."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    for row in rows:
        if row.mean_ms is None or (abs(row.share_ratio or 0.0) < _SHOWN_SHARE_RATIO and not verbose):
            continue
        share = max(0.0, min(1.0, row.share_ratio or 0.0))
        was = f"before {amount(row.baseline_ms, 'ms')}" if row.baseline_ms is not None else ""
        bar = Text("█" * round(share * _BAR_WIDTH), style="blue")
        if (row.share_ratio or 0.0) < 0:
            bar = Text(PARTS_OVERLAP, style="dim")
        table.add_row(row.part, amount(row.mean_ms, "ms"), was, bar)
    return table


def _logs(result: Diagnosis) -> RenderableType:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, min_width=8)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for event in result.log_events[:4]:
        told = Text(f"{event.rule} x{event.count} {clock(event.first_s)}-{clock(event.last_s)} ")
        told.append_text(plain(event.line, style="dim"))
        table.add_row(Text(event.severity.value), told)
    return table


def _remarks(remarks: tuple[Remark, ...], verbose: bool) -> list[RenderableType]:
    shown = remarks if verbose else remarks[:_SHOWN_REMARKS]
    rows = [Text(clean(str(one)), style="yellow") for one in shown]
    if len(remarks) > len(shown):
        rows.append(Text(f"and {len(remarks) - len(shown)} more (--verbose)", style="dim"))
    return [block("SETTINGS", Group(*rows))] if rows else []


def _missing(result: Diagnosis, verbose: bool) -> Text:
    """What could not be seen: first what was seen in part, with how much of it; what is wholly absent is named once."""
    parts: list[str] = []
    for gap in sorted(result.missing, key=lambda gap: not _is_in_part(gap)):
        told = "NVML" if gap.signal.startswith("nvml_") and not verbose else name(gap.signal)
        detail = f": {clean(gap.detail)}" if (verbose or _is_in_part(gap)) and gap.detail else ""
        parts.append(f"{told} ({gap.reason.value}{detail})")
    parts = list(dict.fromkeys(parts))
    shown = parts if verbose else parts[:_SHOWN_GAPS]
    rest = len(parts) - len(shown)
    return Text(", ".join(shown) + (f" and {rest} more (--verbose)" if rest else ""), style="yellow")


def _is_in_part(gap: Gap) -> bool:
    """Whether it is what a source that was named gave up on, or gave only a part of."""
    return gap.signal in _SOURCES and gap.reason is not GapReason.NOT_CONFIGURED


def _queries(result: Diagnosis) -> RenderableType:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for record in result.queries:
        table.add_row(plain(f"{record.source} {record.outcome}"), plain(record.query, limit=500))
    return table
