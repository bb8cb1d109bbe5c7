"""The first signal asks to stop in good order, the second stops at once."""

from __future__ import annotations

import signal

import pytest

from latencydoctor.cli.interrupts import Interrupts


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_and_second(number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    interrupts = Interrupts()
    with interrupts:
        assert (interrupts.asked(), interrupts.code) == (False, None)
        signal.raise_signal(number)
        assert (interrupts.asked(), interrupts.code) == (True, code)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interrupts.code == code
    assert signal.getsignal(number) is before
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "stopping in good order (again to stop at once)",
        "stopping at once; run `latencydoctor runs recover` for what is left",
    ]
