"""Series side by side: one clock, units in the names, absent points empty."""

from __future__ import annotations

from latencydoctor.evidence.table import to_csv
from latencydoctor.model.evidence import Collected, Proof, Selection, Series


def series(signal: str, unit: str, points: dict[float, float]) -> Series:
    return Series(signal, unit, tuple(points), tuple(points.values()), Proof("prometheus", signal))


def collected(*found: Series) -> Collected:
    return Collected(1_800_000_010.0, 5.0, 1.0, Selection("m"), (), found, (), (), (), ())


def test_rows_are_moments_and_columns_are_signals_with_their_units() -> None:
    text = to_csv(
        collected(
            series("queue_time_ms", "ms", {1_800_000_005.0: 2.5, 1_800_000_010.0: 900.25}),
            series("batch_size_mean", "", {1_800_000_010.0: 8.0}),
        )
    )
    assert text.splitlines() == [
        "time,batch_size_mean [1],queue_time_ms [ms]",
        "2027-01-15T08:00:05.000Z,,2.5",
        "2027-01-15T08:00:10.000Z,8,900.25",
    ]


def test_nothing_collected_is_a_header_alone() -> None:
    assert to_csv(collected()) == "time\n"
