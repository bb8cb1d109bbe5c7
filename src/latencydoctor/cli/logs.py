"""`latencydoctor logs`: the log pyramid of whatever files are at hand."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import ContentOption, Format, FormatOption
from latencydoctor.cli.output import document, refuse_unwritable
from latencydoctor.errors import UsageError

if TYPE_CHECKING:
    from latencydoctor.cli.log_wiring import LogRequest
    from latencydoctor.model.evidence import LogEvent, Window
    from latencydoctor.model.readings import Readings


_NO_EPOCH_S = 31_536_000
"""Numbers below (a year) are lengths of which the unit was forgotten."""


class Level(StrEnum):
    """Levels that `--fail-on` takes, worst first."""

    CRITICAL = "CRITICAL"
    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"


def logs(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Files, folders or globs; - is stdin.")
    ] = None,
    since: Annotated[str, typer.Option("--since", help="From this time on: RFC 3339, epoch, or 30m ago.")] = "",
    until: Annotated[str, typer.Option("--until", help="Up to this time; the same forms. --follow ends then.")] = "",
    zone: Annotated[
        str, typer.Option("--zone", help="Of stamps that name none: Europe/Berlin, +02:00. Else UTC.")
    ] = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Tell of events as they come; Ctrl-C sums up.")
    ] = False,
    kubectl: Annotated[
        list[str] | None, typer.Option("--kubectl", metavar="SELECTOR|pod/NAME", help="What kubectl logs prints.")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", help="Of the pods, if not kubectl's own.")] = "",
    journal: Annotated[
        list[str] | None, typer.Option("--journal", metavar="UNIT", help="What journalctl prints.")
    ] = None,
    levels: Annotated[bool, typer.Option("--levels", help="Also how many lines have which level.")] = False,
    fail_on: Annotated[
        Level, typer.Option("--fail-on", case_sensitive=False, help="Exit 3 at this level or worse.")
    ] = Level.ERROR,
    form: FormatOption = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it to a file.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also what each class means.")] = False,
    redact_prompts: Annotated[bool, typer.Option("--redact-prompts", help="Blank what users wrote.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever was found.")] = False,
    content: ContentOption = None,
) -> None:
    """Sort log lines into the pyramid, worst first: one entry a class, with counts, times and the first line.

    Exits 0 when nothing reaches --fail-on, 3 when something does, 4 when there
    was nothing to read.

    Examples:
      latencydoctor logs /var/log/triton/ --since 30m
      kubectl logs deploy/triton | latencydoctor logs -
      latencydoctor logs --kubectl app=triton --follow
    """
    from latencydoctor.cli import log_wiring, progress, times
    from latencydoctor.content.locate import locate
    from latencydoctor.content.rules import load_log_rules

    window = _window(since, until)
    named = tuple(paths or ()), tuple(kubectl or ()), tuple(journal or ())
    meter = progress.Meter()
    request = log_wiring.LogRequest(*named, namespace, redact_prompts, levels, meter.add, times.zone(zone, "--zone"))
    request.check()
    refuse_unwritable(output=output)
    rules = load_log_rules(locate(content))
    stdin = None if sys.stdin is None else sys.stdin.buffer
    # Up to a time that is past there is nothing to wait for: what is there is read, and that is all.
    if follow and window.end_s > time.time():
        readings = log_wiring.follow(request, rules, window, stdin, _teller(form))
    else:
        with meter:
            readings = log_wiring.read(request, rules, window, stdin)
    if follow and form is Format.JSON and output is None:
        streams.write(_document(readings, indented=False))
    else:
        _emit(readings, form, output, verbose, _why(request))
    raise typer.Exit(ExitCode.OK if exit_zero else exit_code(readings, fail_on.value))


def _window(since: str, until: str) -> Window:
    from latencydoctor.model.evidence import Window

    now_s = time.time()
    start_s, end_s = _moment(since, "--since", now_s, float("-inf")), _moment(until, "--until", now_s, float("inf"))
    if start_s >= end_s:
        raise UsageError("--since is not before --until", hint="Exchange them, or leave one out.")
    return Window(start_s, end_s)


def _teller(form: Format) -> Callable[[LogEvent], None]:
    from latencydoctor.report import pyramid

    written = pyramid.one_object if form is Format.JSON else pyramid.one_line
    return lambda event: streams.write(written(event))


def exit_code(readings: Readings, fail_on: str) -> ExitCode:
    """3 when an event reaches the level, 4 when not one byte could be read, else 0."""
    from latencydoctor.model.evidence import Severity

    if any(event.severity.rank <= Severity(fail_on).rank for event in readings.log_events):
        return ExitCode.FOUND
    if not any(record.outcome == "ok" for record in readings.queries):
        return ExitCode.CANNOT_TELL
    return ExitCode.OK


def _document(readings: Readings, *, indented: bool = True) -> str:
    from latencydoctor.report import pyramid

    text = pyramid.document(readings.log_events, readings.gaps, readings.queries, readings.levels, readings.quiet)
    # Behind events, of which each is a line, the whole is a line as well.
    return text if indented else json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)


def _why(request: LogRequest) -> str:
    """The command that puts the same files beside the metrics, which alone say how slow it is."""
    from latencydoctor.cli.following import options
    from latencydoctor.report import pyramid

    return pyramid.WHY + options(*(("--log", path) for path in request.paths if path != "-"))


def _emit(readings: Readings, form: Format, output: Path | None, verbose: bool, why: str) -> None:
    from latencydoctor.report import pyramid

    shown = readings.log_events, readings.gaps, readings.queries
    if form is Format.JSON:
        document(_document(readings), output)
    elif output is None:
        pyramid.show(*shown, streams.stdout(), meaning=verbose, levels=readings.levels, quiet=readings.quiet, why=why)
    else:
        document(
            pyramid.as_text(*shown, meaning=verbose, levels=readings.levels, quiet=readings.quiet, why=why), output
        )


def _moment(text: str, option: str, now_s: float, default: float) -> float:
    """A time as seconds since the epoch: RFC 3339, an epoch, or how long ago, as 30m."""
    from latencydoctor.cli.times import length_s, moment_s

    if not text:
        return default
    if text[-1] in "smhd":
        return now_s - length_s(text, option)
    if text.isdecimal() and float(text) < _NO_EPOCH_S:
        raise UsageError(f"{option} is {text!r}, a moment of 1970", hint=f"Write {text}m for {text} minutes ago.")
    return moment_s(text, option, "30m for so long ago")
