"""Every bad stretch in a range: where it begins, how long it must be, what ends it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from latencydoctor.evidence.stretches import bad_starts
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Collected, Proof, Selection, Series

NOW_S, WINDOW_S = 1_800_000_000.0, 5.0


def series(signal: str, values: Sequence[float | None]) -> Series:
    ends = [NOW_S - (len(values) - 1 - index) * WINDOW_S for index in range(len(values))]
    held = [(at, value) for at, value in zip(ends, values, strict=True) if value is not None]
    return Series(signal, "", tuple(at for at, _ in held), tuple(value for _, value in held), Proof("p", "q"))


def collected(**signals: Sequence[float | None]) -> Collected:
    held = tuple(series(signal, values) for signal, values in signals.items())
    return Collected(NOW_S, WINDOW_S, 1.0, Selection("m"), (), held, (), (), (), ())


def starts(**signals: Sequence[float | None]) -> list[float]:
    """How many windows before the range's end each stretch began."""
    return [(NOW_S - at) / WINDOW_S for at in bad_starts(collected(**signals), Slo())]


@pytest.mark.parametrize(
    ("latency", "found"),
    [
        ([50, 50, 50, 50], []),
        ([50, 2000, 2000, 50], []),
        ([50, 2000, 2000, 2000], [3]),
        ([2000, 2000, 2000, 50, 50, 2000, 2000, 2000], [8, 3]),
        # One good window in between is the same stretch; a window that says nothing is passed over.
        ([50, 2000, 50, 2000, 2000], [4]),
        ([50, 2000, None, 2000, 2000], [4]),
        ([50, 2000, 50, 50, 2000, 2000], []),
        ([50, 1000, 1000, 1000], []),
    ],
)
def test_stretches_of_three_bad_windows(latency: list[float | None], found: list[float]) -> None:
    assert starts(e2e_p99_ms=latency) == found
    # Where only means exist they are judged.
    assert starts(e2e_mean_ms=latency) == found


def test_errors_make_a_window_bad_and_too_few_requests_make_it_say_nothing() -> None:
    assert starts(e2e_p99_ms=[50] * 5, error_ratio=[0, 0.005, 0.01, 0.01, 0]) == [4]
    assert starts(error_ratio=[0, 0.01, 0.01, 0.01]) == [3]
    assert starts(e2e_p99_ms=[2000] * 4, request_rate_rps=[100, 1, 100, 100]) == [4]
    assert starts(e2e_p99_ms=[2000] * 4, request_rate_rps=[100, 1, 1, 100]) == []


def test_without_any_signal_there_is_no_stretch() -> None:
    assert starts(request_rate_rps=[1.0] * 5) == []
