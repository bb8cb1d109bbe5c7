"""What stands beside the cause: what else holds, what was ruled out, what could not be looked at, what would decide."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from latencydoctor.model.diagnosis import Answer, Candidate, Diagnosis, NotEvaluable, Suspect
from latencydoctor.model.evidence import IncidentState
from latencydoctor.report.terminal_block import block, line
from latencydoctor.report.wording import compared, held_back, name

_SHOWN_CONTRIBUTING = 3
_SHOWN_NUMBERS = 2


def beside_the_cause(result: Diagnosis, *, verbose: bool) -> list[RenderableType]:
    """The lines below the cause; nothing where there is no incident."""
    if result.incident.state is not IncidentState.INCIDENT:
        return []
    rows: list[RenderableType] = []
    if verbose and result.cause is not None and result.cause.against:
        told = (f"{name(one.signal)} {compared(one)}" for one in result.cause.against)
        rows.append(line("AGAINST", Text("; ".join(dict.fromkeys(told)))))
    if result.candidates:
        rows.append(block("NEAREST" if result.cause is None else "OR", _candidates(result.candidates, wrap=verbose)))
    if result.contributing:
        shown = result.contributing if verbose else result.contributing[:_SHOWN_CONTRIBUTING]
        rows.append(block("ALSO", _suspects(shown, wrap=verbose)))
    if result.doubts:
        rows.append(block("DOUBT", _suspects(result.doubts, wrap=verbose)))
    if result.tree is not None and result.tree.agrees is Answer.NO:
        rows.append(line("TREE", Text(result.tree.note, style="yellow")))
    if result.deciding is not None:
        text = Text(name(result.deciding.signal))
        text.append(f" would decide most: {result.deciding.needs}" if result.deciding.needs else " would decide most")
        rows.append(line("DECIDE", text))
    if result.causes_ruled_out or result.not_evaluable:
        rows += _looked_at(result, verbose)
    return rows


def _looked_at(result: Diagnosis, verbose: bool) -> list[RenderableType]:
    if not verbose:
        text = Text(f"{len(result.causes_ruled_out)} causes ruled out, {len(result.not_evaluable)} not evaluable")
        text.append(" (--verbose)", style="dim")
        return [line("OTHERS", text)]
    rows: list[RenderableType] = []
    if result.causes_ruled_out:
        rows.append(block("RULED OUT", _suspects(result.causes_ruled_out, wrap=True)))
    if result.not_evaluable:
        rows.append(block("NOT KNOWN", _not_evaluable(result.not_evaluable)))
    return rows


def _suspects(suspects: tuple[Suspect, ...], *, wrap: bool) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(ratio=1, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
    for one in suspects:
        text = Text(one.title)
        text.append(f" ({one.id}{', as before' if one.standing == 'chronic' else ''})", style="dim")
        numbers = "; ".join(f"{name(found.signal)} {compared(found)}" for found in one.findings[:_SHOWN_NUMBERS])
        text.append(f"  {numbers}" if numbers else "", style="dim")
        table.add_row(text)
    return table


def _candidates(candidates: tuple[Candidate, ...], *, wrap: bool) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(ratio=1, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
    for one in candidates:
        # The name alone, so that there is room for what would settle it.
        table.add_row(Text.assemble(one.id, (f"  {held_back(one)}", "dim")))
    return table


def _not_evaluable(causes: tuple[NotEvaluable, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(ratio=1, overflow="fold")
    for one in causes:
        needs = ", ".join(name(gap.signal) for gap in one.needs)
        table.add_row(Text.assemble(one.id, (f"  needs {needs}", "dim")))
    return table
