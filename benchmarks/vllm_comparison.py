"""What one `latencydoctor diagnose` read of a vLLM beside what the vLLM's pages say, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.vllm_pages import EXPECTED, RATES, Page
from latencydoctor.model.evidence import Collected, Series

WINDOWS = 5
"""At most so many windows are compared a time: those that decide on an incident."""

CLOCK = "prompt_tokens_rate"

WHOLE_SHARE = 0.7
"""Pages that span less of their window have gaps, over which a rate is an estimate: no rate is compared there."""

SAME_RATIO, RATE_RATIO = 1e-6, 0.02
CLOCK_S = 3.0
"""Between a page's time as the program notes it and as the relay does; on a busy machine they differ."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One signal in one window: what was read, and what the pages say."""

    source: str
    signal: str
    read: float
    page: float
    tolerance_ratio: float

    @property
    def difference_ratio(self) -> float:
        """Between the two, as a share of the page's figure."""
        return abs(self.read - self.page) / max(abs(self.page), 1e-9) if self.read != self.page else 0.0

    @property
    def same(self) -> bool:
        """Whether they agree."""
        return self.difference_ratio <= self.tolerance_ratio


@dataclass(frozen=True, slots=True)
class Answer:
    """One run of `latencydoctor diagnose`."""

    source: str
    exit_code: int
    seconds: float
    collected: Collected
    reason: str
    """What it says of the incident."""


def value_at(series: Series, at_s: float) -> float | None:
    """A series' value at a moment, None where it has none."""
    return dict(zip(series.times_s, series.values, strict=True)).get(at_s)


def compare(answer: Answer, end_s: float, pages: Sequence[Page]) -> list[Compared]:
    """Every signal that both sides have, in the window that ends at `end_s`."""
    found: list[Compared] = []
    # Of a window for which fewer than two pages came in time the program knows no growth, and no run of pages fits.
    if len(pages) < 2 or not any(
        one.signal == CLOCK and value_at(one, end_s) is not None for one in answer.collected.series
    ):
        return found
    whole = pages[-1].at_s - pages[0].at_s >= WHOLE_SHARE * answer.collected.window_s
    for series in answer.collected.series:
        expected = EXPECTED.get(series.signal)
        value = value_at(series, end_s)
        if expected is not None and value is not None and (whole or series.signal not in RATES):
            tolerance = RATE_RATIO if series.signal in RATES else SAME_RATIO
            found.append(Compared(answer.source, series.signal, value, expected(pages), tolerance))
    return found


def on_its_clock(answer: Answer, end_s: float, pages: Sequence[Page]) -> Sequence[Page]:
    """The pages with their span as the program counts it: what one rate implies, which then has to hold for all."""
    read_rate = next((value_at(one, end_s) for one in answer.collected.series if one.signal == CLOCK), None)
    if len(pages) < 2 or not read_rate:
        return pages
    span_s = pages[-1].at_s - pages[0].at_s
    counted_s = EXPECTED[CLOCK](pages) * span_s / read_rate
    if abs(counted_s - span_s) > CLOCK_S:
        return pages
    return [*pages[:-1], replace(pages[-1], at_s=pages[0].at_s + counted_s)]


def ends_of(answer: Answer) -> list[float]:
    """When the last windows end."""
    return sorted({time_s for series in answer.collected.series for time_s in series.times_s})[-WINDOWS:]
