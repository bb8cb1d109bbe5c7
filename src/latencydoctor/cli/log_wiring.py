"""The logs command's part of the composition root: files, standard input, pods and units, read once or followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import chain
from typing import BinaryIO

from latencydoctor.errors import KnownError, UsageError
from latencydoctor.model.evidence import LogEvent, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources import live_logs
from latencydoctor.sources.followed import Followed, FollowedFile, FollowedPipe
from latencydoctor.sources.live_source import LiveLogs
from latencydoctor.sources.log_follow import Follower
from latencydoctor.sources.log_reading import OnBytes, say_nothing
from latencydoctor.sources.log_targets import Absent, targets
from latencydoctor.sources.logfiles import STANDARD_INPUT, LogFiles, LogOptions


@dataclass(frozen=True, slots=True)
class LogRequest:
    """What the command line says about which logs to read, and how."""

    paths: tuple[str, ...]
    pods: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    namespace: str = ""
    redact_prompts: bool = False
    levels: bool = False
    on_bytes: OnBytes = say_nothing
    zone: tzinfo | None = None

    def check(self) -> None:
        """`UsageError` where nothing is named."""
        if not (self.paths or self.pods or self.units):
            hint = "Give files, folders or globs, - for standard input, --kubectl or --journal."
            raise UsageError("no logs are named", hint=hint)
        if self.namespace and not self.pods:
            raise UsageError("--namespace is for --kubectl", hint="Give --kubectl SELECTOR as well.")

    def live(self, window: Window, *, follow: bool) -> tuple[live_logs.LiveLog, ...]:
        """What other programs are asked for."""
        since_s = None if window.start_s == float("-inf") else window.start_s
        until_s = None if window.end_s == float("inf") else window.end_s
        pods = (live_logs.kubectl(one, self.namespace, follow=follow, since_s=since_s) for one in self.pods)
        units = (live_logs.journal(one, follow=follow, since_s=since_s, until_s=until_s) for one in self.units)
        return (*pods, *units)


def read(request: LogRequest, rules: Sequence[LogRule], window: Window, standard_input: BinaryIO | None) -> Readings:
    """Read all of it once."""
    options = LogOptions(
        on_bytes=request.on_bytes, redact_prompts=request.redact_prompts, levels=request.levels, zone=request.zone
    )
    live = request.live(window, follow=False)
    others = LiveLogs(live, options)
    if live and not request.paths:
        return others.read(rules, window)
    return LogFiles(request.paths, time.time, standard_input, options=options, beside=others.add_to).read(rules, window)


def follow(
    request: LogRequest,
    rules: Sequence[LogRule],
    window: Window,
    standard_input: BinaryIO | None,
    on_event: Callable[[LogEvent], None],
) -> Readings:
    """Follow all of it until it ends, is interrupted, or the window's end has come."""
    with ExitStack() as programs:
        sources = [*_files(request, standard_input, window.end_s)]
        started = [(log, programs.enter_context(live_logs.running(log))) for log in request.live(window, follow=True)]
        sources += [
            FollowedPipe(program.output.fileno(), log.place, time.time(), window.end_s) for log, program in started
        ]
        follower = Follower(
            sources,
            rules,
            window,
            on_event,
            redact_prompts=request.redact_prompts,
            levels=request.levels,
            zone=request.zone,
        )
        readings = follower.run()
        # Then it is we who end the programs, and they have nothing to complain of.
        is_ours = follower.stop.is_set() or time.time() >= window.end_s
        ended_badly = [(log, "" if is_ours else program.complaint()) for log, program in started]
    missing = [live_logs.missing(log, words) for log, words in ended_badly if words]
    return replace(readings, gaps=(*readings.gaps, *missing))


def _files(request: LogRequest, standard_input: BinaryIO | None, until_s: float) -> list[Followed]:
    seen: set[tuple[int, int]] = set()
    found: list[Followed] = []
    if STANDARD_INPUT in request.paths and standard_input is not None:
        found.append(FollowedPipe(standard_input.fileno(), "<stdin>", time.time(), until_s))
    named = chain.from_iterable(targets(path, seen) for path in request.paths if path != STANDARD_INPUT)
    for target in named:
        if isinstance(target, Absent):
            raise KnownError(f"{target.place} cannot be followed: {target.detail}", hint="Name files that are there.")
        found.append(FollowedFile(target.path, target.place, until_s))
    return found
