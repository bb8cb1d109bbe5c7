"""`latencydoctor logs`: the log pyramid of whatever files are at hand."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.errors import KnownError, UsageError

if TYPE_CHECKING:
    from latencydoctor.model.readings import Readings


class Format(StrEnum):
    """Forms of the pyramid."""

    TEXT = "text"
    JSON = "json"


class Level(StrEnum):
    """Levels that `--fail-on` takes, worst first."""

    CRITICAL = "CRITICAL"
    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"


def logs(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders or globs; - is stdin.")],
    since: Annotated[str, typer.Option("--since", help="From this time on: RFC 3339, epoch, or 30m ago.")] = "",
    until: Annotated[str, typer.Option("--until", help="Up to this time; the same forms.")] = "",
    fail_on: Annotated[
        Level, typer.Option("--fail-on", case_sensitive=False, help="Exit 3 at this level or worse.")
    ] = Level.ERROR,
    form: Annotated[Format, typer.Option("--format", help="Form of the pyramid.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it to a file.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also what each class means.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever was found.")] = False,
    content: Annotated[Path | None, typer.Option("--content", help="Folder with rules/ instead of our own.")] = None,
) -> None:
    """Sort log lines into the pyramid, worst first: one entry a class, with counts, times and the first line.

    Exits 0 when nothing reaches --fail-on, 3 when something does, 4 when there was nothing to read.

    Examples:
      latencydoctor logs /var/log/triton/ --since 30m
      kubectl logs deploy/triton | latencydoctor logs -
    """
    from latencydoctor.cli import sources_wiring
    from latencydoctor.content.locate import locate
    from latencydoctor.content.rules import load_log_rules
    from latencydoctor.model.evidence import Window

    now_s = time.time()
    start_s, end_s = _moment(since, "--since", now_s, float("-inf")), _moment(until, "--until", now_s, float("inf"))
    if start_s >= end_s:
        raise UsageError("--since is not before --until", hint="Exchange them, or leave one out.")
    rules = load_log_rules(locate(content))
    readings = sources_wiring.log_source(paths, sys.stdin.buffer).read(rules, Window(start_s, end_s))
    _emit(readings, form, output, verbose)
    raise typer.Exit(ExitCode.OK if exit_zero else exit_code(readings, fail_on.value))


def exit_code(readings: Readings, fail_on: str) -> ExitCode:
    """3 when an event reaches the level, 4 when not one byte could be read, else 0."""
    from latencydoctor.model.evidence import Severity

    if any(event.severity.rank <= Severity(fail_on).rank for event in readings.log_events):
        return ExitCode.FOUND
    if not any(record.outcome == "ok" for record in readings.queries):
        return ExitCode.CANNOT_TELL
    return ExitCode.OK


def _emit(readings: Readings, form: Format, output: Path | None, verbose: bool) -> None:
    from latencydoctor.report import pyramid

    shown = readings.log_events, readings.gaps, readings.queries
    if form is Format.TEXT and output is None:
        pyramid.show(*shown, streams.stdout(), meaning=verbose)
        return
    text = pyramid.document(*shown) if form is Format.JSON else pyramid.as_text(*shown, meaning=verbose)
    if output is None:
        streams.write(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise KnownError(
            f"cannot write {output}: {error.strerror}", hint="Name a file in a folder of yours."
        ) from error


def _moment(text: str, option: str, now_s: float, default: float) -> float:
    """A time as seconds since the epoch: RFC 3339, an epoch, or how long ago, as 30m."""
    from latencydoctor.cli.times import length_s, moment_s

    if not text:
        return default
    return now_s - length_s(text, option) if text[-1] in "smhd" else moment_s(text, option)
