"""Collected records for tests, built from plain numbers: one value a window, None for a window without one."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.evidence.incident import Judgement, judge
from latencydoctor.evidence.series import make_grid, place
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Collected, Fact, Gap, Proof, Selection, Series

NOW_S = 1_800_000_000.0
WINDOW_S = 10.0

Values = Sequence[float | None]


def series(signal: str, values: Values, unit: str = "ms", *, simulated: bool = False) -> Series:
    """A series whose last value lies at `NOW_S`."""
    first_s = NOW_S - (len(values) - 1) * WINDOW_S
    points = [(first_s + index * WINDOW_S, value) for index, value in enumerate(values) if value is not None]
    return Series(
        signal,
        unit,
        tuple(time_s for time_s, _ in points),
        tuple(value for _, value in points),
        Proof("prometheus", f"query of {signal}"),
        simulated,
    )


def collected(*all_series: Series, facts: tuple[Fact, ...] = (), gaps: tuple[Gap, ...] = ()) -> Collected:
    """A record of these series at `NOW_S`."""
    return Collected(NOW_S, WINDOW_S, 2.5, Selection("m"), ("triton",), all_series, facts, (), (), gaps)


def judged(slo: Slo | None = None, **values: Values) -> Judgement:
    """The judgement over series given by signal; a steady rate is added where none is given."""
    length = max(len(held) for held in values.values())
    values.setdefault("request_rate_rps", [50.0] * length)
    built = [series(signal, held) for signal, held in values.items()]
    grid = make_grid(NOW_S, WINDOW_S, built)
    return judge({item.signal: place(item, grid) for item in built}, grid, slo or Slo())
