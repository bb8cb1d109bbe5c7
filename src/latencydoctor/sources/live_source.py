"""What other programs print of live logs, as a source: read once to its end."""

from __future__ import annotations

import time
from collections.abc import Sequence

from latencydoctor.evidence.logs.blocks import CHUNK_BYTES
from latencydoctor.evidence.logs.levels import LevelCounter
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.model.evidence import Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources.compiled_store import scanner as log_scanner
from latencydoctor.sources.live_logs import LiveLog, installed, missing, running
from latencydoctor.sources.log_reading import Reading
from latencydoctor.sources.log_walk import Portion, stream_steps
from latencydoctor.sources.logfiles import MAX_UNPACKED_BYTES, LogOptions
from latencydoctor.sources.scan_ahead import ScanAhead


class LiveLogs:
    """Implements the `LogSource` port over programs that print logs. `KnownError` where one is not installed."""

    def __init__(self, logs: Sequence[LiveLog], options: LogOptions) -> None:
        for log in logs:
            installed(log)
        self._logs = tuple(logs)
        self._options = options

    def read(self, rules: Sequence[LogRule], window: Window) -> Readings:
        """Events of `rules` in `window`; a gap for a program that complained."""
        scanner = log_scanner(rules)
        reader = LogReader(rules, window, scanner, zone=self._options.zone, redact_prompts=self._options.redact_prompts)
        levels = LevelCounter() if self._options.levels else None
        reading = Reading(reader, window, ScanAhead(scanner, 0, levels=levels), self._options.on_bytes)
        self.add_to(reading)
        return reading.readings()

    def add_to(self, reading: Reading) -> None:
        """Read them after whatever else is read."""
        portion = Portion(CHUNK_BYTES, MAX_UNPACKED_BYTES)
        for log in self._logs:
            with running(log) as program:
                read = getattr(program.output, "read1", program.output.read)
                reading.follow(stream_steps(log.place, read, time.time(), portion))
                complaint = program.complaint()
            if complaint:
                reading.gaps.append(missing(log, complaint))
