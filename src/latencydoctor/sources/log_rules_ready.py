"""Makes the log rules ready while other sources are waited for: compiling their patterns takes a tenth of a second.

On a machine that is busy it takes more than one, which would be all the time that logs have.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.rule import LogRule
from latencydoctor.sources.compiled_store import scanner as log_scanner


class RulesReady:
    """Compiles `rules` in a thread of its own from now on; the engine lets other threads run meanwhile."""

    def __init__(self, rules: Sequence[LogRule]) -> None:
        self.rules = tuple(rules)
        self._made: Scanner | None = None
        self._refused: BaseException | None = None
        self._thread = threading.Thread(target=self._make, daemon=True)
        self._thread.start()

    def scanner(self, ends_s: float) -> Scanner | None:
        """The scanner, None when it is not ready by then (monotonic); `ContentError` for a pattern that is refused."""
        self._thread.join(max(ends_s - time.monotonic(), 0.0))
        if self._refused is not None:
            raise self._refused
        return self._made

    def _make(self) -> None:
        try:
            scanner = log_scanner(self.rules)
            scanner.prepare()
            self._made = scanner
        except BaseException as error:  # noqa: BLE001  # whatever it is: else the rules would seem to be late
            self._refused = error
