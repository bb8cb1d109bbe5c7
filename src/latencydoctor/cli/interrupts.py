"""Ctrl-C, SIGTERM and a lost terminal while a change runs: the first asks to stop in good order, the second stops at
once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.TERMINATED,
}


class Terminated(BaseException):
    """Told to end; like KeyboardInterrupt it unwinds the stack so that journals are closed and children ended."""


class Interrupts:
    """While entered, catches these signals, but for those that are ignored, as SIGHUP is under nohup; `asked` is what
    use cases poll, `code` the exit code of what came."""

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._before: dict[signal.Signals, object] = {}

    @property
    def code(self) -> ExitCode | None:
        """The exit code that belongs to the signal, None when none came."""
        return _CODES[self._received] if self._received is not None else None

    def asked(self) -> bool:
        """Whether someone asked to stop."""
        return self._received is not None

    def __enter__(self) -> Interrupts:
        for number in _CODES:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]  # what signal.signal itself returned

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._received is not None:
            streams.stderr().print(
                "stopping at once; run `latencydoctor runs recover` for what is left", soft_wrap=True
            )
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated
        self._received = signal.Signals(number)
        streams.stderr().print("stopping in good order (again to stop at once)", soft_wrap=True)
