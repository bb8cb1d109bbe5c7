"""`latencydoctor rules`: what the program knows, and whether it is in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import ContentOption, Format, FormatOption
from latencydoctor.errors import ContentErrors, UsageError

if TYPE_CHECKING:
    from latencydoctor.content.everything import Content
    from latencydoctor.model.rule import Dialect
    from latencydoctor.report.listing import Entry

app = typer.Typer(
    help="List, show and check log rules, metric dialects, cause rules and playbooks.", no_args_is_help=True
)


@app.command("list")
def list_rules(form: FormatOption = Format.TEXT, content: ContentOption = None) -> None:
    """List every log rule, dialect, cause rule and playbook, one a line."""
    from latencydoctor.report import listing, machine

    entries = _entries(_read(content, compiled=False))
    if form is Format.JSON:
        streams.write(machine.dump(entries))
    else:
        listing.show_list(entries, streams.stdout())


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A log rule, dialect, cause rule or playbook.")],
    form: FormatOption = Format.TEXT,
    content: ContentOption = None,
) -> None:
    """Show one rule: what it matches, what it means, what it is mistaken for, what to do."""
    from latencydoctor.report import listing, machine
    from latencydoctor.report.described import facts_of

    everything = _read(content, compiled=False)
    groups = (everything.log_rules, everything.dialects, everything.causes, everything.playbooks)
    found = next((one for group in groups for one in group if one.id == name), None)
    if found is None:
        raise UsageError(f"nothing is called {name!r}", hint="`latencydoctor rules list` shows what there is.")
    if form is Format.JSON:
        streams.write(machine.dump(found))
    else:
        listing.show_page(facts_of(found), streams.stdout())


@app.command()
def check(form: FormatOption = Format.TEXT, content: ContentOption = None) -> None:
    """Check every file, all errors at once with file and line; exits 1 when anything is wrong."""
    from latencydoctor.report import machine

    try:
        everything = _read(content, compiled=True)
    except ContentErrors as errors:
        if form is Format.TEXT:
            raise
        found = [{"where": str(one.location), "message": one.message, "hint": one.hint} for one in errors.errors]
        streams.write(machine.dump({"errors": found}))
        raise typer.Exit(ExitCode.FAILED) from errors
    counts = {
        "log_rules": len(everything.log_rules),
        "signals": len(everything.signals),
        "dialects": len(everything.dialects),
        "cause_rules": len(everything.causes),
        "playbooks": len(everything.playbooks),
    }
    if form is Format.JSON:
        streams.write(machine.dump({"errors": [], **counts}))
    else:
        streams.write("in order: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))


def _read(content: Path | None, *, compiled: bool) -> Content:
    from latencydoctor.content.everything import read_everything
    from latencydoctor.content.locate import locate

    return read_everything(locate(content), compiled=compiled)


def _entries(content: Content) -> list[Entry]:
    from latencydoctor.report.listing import Entry

    rules = sorted(content.log_rules, key=lambda rule: (rule.level.rank, rule.id))
    return [
        *(Entry(one.id, "log rule", one.status, one.level.value, one.title) for one in rules),
        *(Entry(one.id, "dialect", one.status, "", one.title, _standing(one)) for one in content.dialects),
        *(Entry(one.id, "cause rule", "", "", one.title, one.signature) for one in content.causes),
        *(Entry(one.id, "playbook", "", "", one.title) for one in content.playbooks),
    ]


def _standing(dialect: Dialect) -> str:
    """What a reader of the list should know of a dialect: whether a real server's page stands behind it, its gaps."""
    from latencydoctor.report.described import UNVERIFIED

    standing = "" if dialect.verified else UNVERIFIED
    gaps = len(dialect.missing)
    return ", ".join(
        text for text in (standing, f"{gaps} signal{'s' if gaps > 1 else ''} missing" if gaps else "") if text
    )
