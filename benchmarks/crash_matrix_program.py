"""The program as it is shipped, in a child process that a hook watches, or kills at a point given beforehand.

The hook is handed to the composition root, as the production's own is; everything else is the installed command line.
"""

from __future__ import annotations

import functools
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from latencydoctor.cli import wiring
from latencydoctor.cli.main import main
from latencydoctor.model.effects import Effect, Effects
from latencydoctor.model.evidence import Window
from latencydoctor.model.remedy import Reading
from latencydoctor.targets import executor

POLL_S = 0.01

GOOD = Reading(p99_ms=120.0, error_ratio=0.0, memory_bytes=2.1e9, requests=3000.0)
SLOW = Reading(p99_ms=1500.0, error_ratio=0.0, memory_bytes=2.1e9, requests=3000.0)


@dataclass(frozen=True, slots=True)
class Moment:
    """One point in a run: just before or just after its nth effect of one kind."""

    effect: Effect
    after: bool
    nth: int

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} {self.effect.value} ({self.nth})"


class Crossings:
    """A hook for the composition root: counts what is crossed, and calls `at` with each moment."""

    def __init__(self, at: Callable[[Moment], None]) -> None:
        self._at = at
        self._counts: dict[Effect, int] = {}

    @contextmanager
    def __call__(self, effect: Effect) -> Iterator[None]:
        """The effect happens inside; it counts as done only when it did not fail."""
        nth = self._counts.get(effect, 0) + 1
        self._counts[effect] = nth
        self._at(Moment(effect, after=False, nth=nth))
        yield
        self._at(Moment(effect, after=True, nth=nth))


WRITTEN = Moment(Effect.ASK_CONTROLLER, after=False, nth=1)
"""The settings are in place, and the program begins to wait until they are in effect."""


def dying(at: Moment, *, interrupted: bool = False) -> Effects:
    """A hook that ends its process at that moment, as `kill -9` does; `interrupted` presses Ctrl-C when WRITTEN."""

    def die(moment: Moment) -> None:
        if interrupted and moment == WRITTEN:
            os.kill(os.getpid(), signal.SIGINT)
        if moment == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return Crossings(die)


class Given:
    """Fresh metrics that always show the same; implements `Verifier`."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def read(self, _window: Window) -> Reading:
        """The one reading."""
        return self._reading


class GivenArms:
    """A canary that always shows the one reading beside peers that are well; implements `ArmsVerifier`."""

    def __init__(self, canary: Reading) -> None:
        self._canary = canary

    def read(self, _window: Window) -> tuple[Reading, Reading]:
        """The canary's and its peers'."""
        return self._canary, GOOD


class Hurried:
    """A clock that only moves when someone sleeps, so that verification takes no time; implements `Clock`."""

    def __init__(self) -> None:
        self._now_s = 1_800_000_000.0

    def now_s(self) -> float:
        """The time slept up to."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Moves on at once."""
        self._now_s += seconds


def run(arguments: tuple[str, ...], effects: Effects, reading: Reading | None) -> None:
    """The command line in this process, which ends with it; `reading` stands in for a source of metrics."""
    wiring.treatment = functools.partial(_treatment, wiring.treatment, effects, reading)
    sys.argv = ["latencydoctor", *arguments]
    main()


def warm(which: tuple[str, ...]) -> None:
    """Loads in this process what a command loads by itself, so that the children need not; talks to no server.

    `which` are the options that name the target. Settings that a controller here takes up within milliseconds are asked
    for as often.
    """
    executor.POLL_S = POLL_S
    kept, sys.argv = sys.argv, ["latencydoctor", "runs", *which]
    try:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            main()
    except SystemExit:
        sys.argv = kept


def _treatment(
    real: Callable[..., wiring.Treatment],
    effects: Effects,
    reading: Reading | None,
    *arguments: object,
    **named: object,
) -> wiring.Treatment:
    built = real(*arguments, **named, effects=effects)
    if reading is None:
        return built
    return replace(built, tools=replace(built.tools, verifier=Given(reading), arms=GivenArms(reading), clock=Hurried()))


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, or minus the signal that killed it; `told` is what it handed back."""

    code: int
    told: bytes


@dataclass(frozen=True, slots=True)
class Child:
    """A forked child that runs, and where it hands back what it has to tell."""

    pid: int
    reader: int

    def wait(self) -> Ended:
        """Its end, and all it told."""
        with os.fdopen(self.reader, "rb") as handed:
            told = handed.read()
        return Ended(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), told)


def fork(action: Callable[[int], None], log: Path) -> Child:
    """Runs the action in a forked child, its streams in `log`; it may hand bytes back through the descriptor it gets.

    A fork of this process costs a hundredth of starting Python and loading the program again.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return Child(pid, reader)
    os.close(reader)
    code = 70
    try:
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        action(writer)
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def in_child(action: Callable[[int], None], log: Path) -> Ended:
    """The same, waited for."""
    return fork(action, log).wait()


def command(arguments: tuple[str, ...], log: Path, effects: Effects, reading: Reading | None = None) -> Ended:
    """One run of the command line in a child."""
    return in_child(lambda _: run(arguments, effects, reading), log)


def moments(
    arguments: tuple[str, ...], log: Path, reading: Reading | None = None, *, interrupted: bool = False
) -> tuple[Ended, tuple[Moment, ...]]:
    """One run that is not killed, and every moment it went through, in order."""

    def recording(writer: int) -> None:
        def note(moment: Moment) -> None:
            os.write(writer, json.dumps([moment.effect.name, moment.after, moment.nth]).encode() + b"\n")
            if interrupted and moment == WRITTEN:
                os.kill(os.getpid(), signal.SIGINT)

        run(arguments, Crossings(note), reading)

    ended = in_child(recording, log)
    rows = (json.loads(line) for line in ended.told.splitlines())
    return ended, tuple(Moment(Effect[name], after, nth) for name, after, nth in rows)
