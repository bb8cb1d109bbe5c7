"""`latencydoctor drill`: a rehearsed incident on a stack of its own, from the page to the verified fix."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from latencydoctor.app.ports import Observer, Progress

app = typer.Typer(
    name="drill",
    help="Rehearse an incident on a real stack of its own, without a GPU, and see it fixed.",
    no_args_is_help=True,
)


class Fault(StrEnum):
    """What is wrong in the rehearsal."""

    BATCHING = "batching"
    CANARY = "canary"
    NONE = "none"
    SATURATION = "saturation"
    LARGE_MODEL = "large-model"
    SATURATION_AT_LIMIT = "saturation-at-limit"
    THROTTLED = "throttled"
    SLOW_PREPROCESSING = "slow-preprocessing"
    COLD_CACHE = "cold-cache"
    LOST_CACHE = "lost-cache"
    LONG_DELAY = "long-delay"
    BAD_CHANGE = "bad-change"
    VIP_FLOOD = "vip-flood"
    SLOW_CACHE = "slow-cache"
    SLOW_REPLICA = "slow-replica"


@app.callback()
def root() -> None:
    """Rehearse an incident on a real stack of its own, without a GPU, and see it fixed."""


@app.command("flash-crowd")
def flash_crowd(
    fault: Annotated[
        Fault, typer.Option("--fault", metavar="FAULT", help="What is wrong: one of those above.")
    ] = Fault.BATCHING,
    prove_rollback: Annotated[
        bool, typer.Option("--prove-rollback", help="Also roll the fix back, measure, and apply it again.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter windows: enough to try, too short to quote.")] = False,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the incident report (Markdown) here. \\[default: none]")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Store what the diagnosis read, for `diagnose --bundle`.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="State folder to use and keep. \\[default: a temporary one]")
    ] = None,
) -> None:
    """A calm baseline, then five times the traffic: wait for the alert, diagnose, fix, verify, report.

    Mended as well: batching (settings that make small batches), canary (the
    same on two replicas, of which one tries the fix first), saturation (a
    device too small), large-model (the same, mended by the model in INT8),
    lost-cache (emptied, and cannot fill), bad-change (settings changed under
    steady traffic), vip-flood (twice the load that can be served).

    Diagnosed only: none (no incident), saturation-at-limit, throttled,
    slow-preprocessing, cold-cache, long-delay, slow-cache, slow-replica.

    Needs the \\[stack] and \\[load] extras; takes about two minutes. The last line
    of stdout is one JSON object with the figures. Everything is torn down at
    the end, also on Ctrl-C. Exits 0 when it went as designed, else 1.

    Examples:
      latencydoctor drill flash-crowd
      latencydoctor drill flash-crowd --fault saturation --report report.md
    """
    from latencydoctor.cli import output, stage
    from latencydoctor.report import drill as words

    output.refuse_unwritable(report=report, save=save)
    with _Board(rollback=prove_rollback) as board:
        request = stage.DrillRequest(fault.value, state, prove_rollback, quick, save)
        drilled = stage.flash_crowd(request, board.observe)
    words.summary(drilled, streams.stdout())
    streams.write(words.last_line(drilled))
    if report is not None:
        stage.write_report(drilled.record, report)
        streams.stderr().print(f"report written to {report}", soft_wrap=True)
    raise typer.Exit(ExitCode.FAILED if drilled.misses else ExitCode.OK)


class _Board:
    """Shows progress: a live board on a terminal, one line a phase elsewhere. Goes to stderr."""

    def __init__(self, *, rollback: bool) -> None:
        self._rollback = rollback
        self._console = streams.stderr()
        self._reached: dict[str, tuple[str, float | None]] = {}
        self._current = ""
        self._page_s: float | None = None
        self._live: Live | None = None

    def __enter__(self) -> _Board:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, refresh_per_second=4, get_renderable=self._render, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def observe(self) -> Observer:
        """The observer to hand to the drill."""
        return self._observe

    def _observe(self, progress: Progress) -> None:
        import time

        if progress.phase == "before" and self._page_s is None:
            self._page_s = time.monotonic()
        new = progress.phase != self._current
        self._current = progress.phase
        self._reached[progress.phase] = (progress.text, progress.done_ratio)
        if progress.phase == "plan":
            self._reached["plan"] = ("dry run shown", None)
            self._console.print("dry run of the change:")
            self._console.print(progress.text, soft_wrap=True)
        elif self._live is None and new:
            self._console.print(f"{progress.phase}: {progress.text}", soft_wrap=True)

    def _render(self) -> RenderableType:
        import time

        from latencydoctor.report import drill as words

        since = time.monotonic() - self._page_s if self._page_s is not None else None
        return words.board(self._reached, self._current, since, rollback=self._rollback)
