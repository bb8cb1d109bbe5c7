"""The command line's root: mounts the commands, installs the one error boundary, turns outcomes into exit codes."""

from __future__ import annotations

import errno
import gc
import signal
import sys
from types import FrameType

import typer
from typer.exceptions import TyperException

from latencydoctor import __version__
from latencydoctor.cli import (
    configuration,
    diagnose,
    drill,
    exit_codes,
    forecast,
    logs,
    quantise,
    rules,
    stack,
    streams,
    treat,
)
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.interrupts import Terminated
from latencydoctor.errors import KnownError, LatencyDoctorError, UsageError

app = typer.Typer(
    name="latencydoctor",
    help="Find why inference latency rose on a GPU serving stack, prove it, fix it as a transaction, verify it.",
    epilog="Start with: latencydoctor diagnose   |   rehearse without a GPU: latencydoctor drill flash-crowd",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(diagnose.diagnose)
app.command()(forecast.forecast)
app.command()(treat.plan)
app.command()(treat.apply)
app.command()(treat.rollback)
app.add_typer(treat.runs_app, name="runs")
app.command()(quantise.quantise)
app.command()(logs.logs)
app.add_typer(rules.app, name="rules")
app.add_typer(configuration.app, name="config")
app.add_typer(stack.app, name="stack")
app.add_typer(drill.app, name="drill")


def _show_version(wanted: bool) -> None:
    if wanted:
        streams.write(f"latencydoctor {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_show_version, is_eager=True),
) -> None:
    """Options that stand before the command."""


GARBAGE_AFTER = 100_000
"""New objects until a collection; Python's own 700 is for programs that make little at a time."""


def main() -> None:
    """Run the command line and exit; the only place that catches everything."""
    # Reading rules makes many objects that stay; looking for garbage among them costs a tenth of a diagnosis.
    gc.set_threshold(GARBAGE_AFTER)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A terminal that is lost must not leave a drill's stack or a log's kubectl behind. Under nohup it is ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)
    streams.prepare()
    code: int | str | None
    try:
        # Not standalone: it returns the exit code, and leaves what is wrong with the command line to be said here.
        code = app(prog_name="latencydoctor", standalone_mode=False) or ExitCode.OK
    except SystemExit as ended:
        code = ended.code
    except TyperException as error:
        code = _misused(error)
    except LatencyDoctorError as error:
        code = _complain(error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Terminated:
        code = ExitCode.TERMINATED
    except Exception as error:  # noqa: BLE001 - the one boundary: a bug ends in a short message and a file
        code = _unexpected(error)
    try:
        streams.close()
    except LatencyDoctorError as error:
        code = _complain(error)
    sys.exit(code)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated


def _misused(error: TyperException) -> ExitCode:
    """What is wrong with the command line, as any other error is told; a group without a command shows its help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # a class that typer keeps to itself; the help is on the screen
        return ExitCode.USAGE
    message = error.format_message().replace("Value error, ", "").removesuffix(".")
    hint = f"See `{context.command_path} -h`." if context is not None else ""
    return _complain(UsageError(message, hint=hint))


def _complain(error: LatencyDoctorError) -> ExitCode:
    """Each problem on a line of its own, then the hint; a hint may be a list, such as the services to choose from."""
    from latencydoctor.report.foreign import clean

    console = streams.stderr()
    for line in str(error).splitlines():
        console.print(clean(f"error: {line}", limit=1000), style="bold red", soft_wrap=True)
    if error.hint:
        for line in f"hint: {error.hint}".splitlines():
            console.print(clean(line, limit=1000), soft_wrap=True)
    return exit_codes.of(error)


def _unexpected(error: Exception) -> ExitCode:
    from latencydoctor.cli import crash

    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        # Not every write is ours: typer prints its own help.
        return _complain(KnownError("there is no room left to write to", hint="Make room, then try again."))

    try:
        kept = f"details are in {crash.write(error)}; nothing of them was sent anywhere"
    except OSError as full:
        kept = f"details could not be stored ({full}); name a folder for them in TMPDIR and run it again"
    console = streams.stderr()
    console.print(f"error: unexpected {type(error).__name__}; this is a bug in latencydoctor", style="bold red")
    console.print(f"hint: {kept}", soft_wrap=True)
    return ExitCode.UNEXPECTED
