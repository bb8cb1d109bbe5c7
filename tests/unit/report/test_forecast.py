"""Forecasts on a screen: intervals, overload in words, and where the figures come from."""

from __future__ import annotations

import io

from rich.console import Console

from latencydoctor.forecast.capacity import Sizing
from latencydoctor.forecast.estimate import Band, Estimate
from latencydoctor.report import forecast as report

STABLE = Estimate(
    310.0,
    Band(615.0, 600.0, 630.0),
    0.504,
    p50_ms=Band(61.0, 55.0, 66.0),
    p95_ms=Band(92.0, 80.0, 101.0),
    p99_ms=Band(105.0, 90.0, None),
    vip_p99_ms=Band(50.0, 40.0, 60.0),
    standard_p99_ms=Band(110.0, 95.0, 130.0),
)
UNSTABLE = Estimate(700.0, Band(615.0, 600.0, 630.0), 1.14, unstable="arrivals exceed what can be served: 700 and 615")


def shown(show: object, *values: object, **named: object) -> str:
    text = io.StringIO()
    console = Console(file=text, width=160, color_system=None, markup=False, highlight=False)
    assert callable(show)
    show(*values, console, **named)
    return text.getvalue()


def test_a_row_has_percentiles_and_an_interval() -> None:
    text = shown(report.show_rows, [("max_batch_size 32", 2, STABLE)])
    assert "105 ms (90 ms to no bound)" in text
    assert "50.4 %" in text
    assert "p99 of VIP 50 ms (40 ms to 60 ms), of the others 110 ms (95 ms to 130 ms)" in text


def test_an_overload_is_said_and_has_no_figure() -> None:
    text = shown(report.show_rows, [("as it is", 1, UNSTABLE)])
    assert "no bound" in text
    assert "700 requests/s: arrivals exceed what can be served: 700 and 615" in text


def test_replicas_and_why_not_one_fewer() -> None:
    text = shown(report.show_sizing, Sizing(5_000.0, 1_000.0, 10, STABLE, UNSTABLE))
    assert "5,000 requests/s within 1,000 ms: 10 replicas" in text
    assert "one fewer: arrivals exceed" in text
    single = shown(report.show_sizing, Sizing(5.0, 1_000.0, 1, STABLE))
    assert "1 replica\n" in single
    assert "one fewer" not in single
    assert "one fewer: p99 105 ms" in shown(report.show_sizing, Sizing(5_000.0, 1_000.0, 10, STABLE, STABLE))


def test_an_slo_out_of_reach_says_why() -> None:
    text = shown(report.show_sizing, Sizing(5_000.0, 10.0, 0, None, reason="no number of replicas keeps p99 below"))
    assert "within 10 ms: no number of replicas keeps p99 below" in text


def test_the_basis_is_shown_and_foreign_text_is_harmless() -> None:
    text = shown(report.show_basis, ("an execution takes [/INST]\x1b[31m",), ("a note",), 2140.0)
    assert "measured now: p99 2,140 ms" in text
    assert "by an execution takes [/INST][31m" in text
    assert "a note" in text
    assert "measured" not in shown(report.show_basis, (), (), None)


def test_simulated_is_said_to_be() -> None:
    text = io.StringIO()
    report.head(simulated=True, console=Console(file=text))
    report.head(simulated=False, console=Console(file=text))
    assert text.getvalue().count("SIMULATED") == 1


def test_absent_values_are_dashes() -> None:
    assert report.value(None) == report.with_interval(None) == "-"


def test_on_a_narrow_screen_the_figures_stand_whole_below_what_is_set() -> None:
    text = io.StringIO()
    settings = "as it is: at most 8, preferred 8, waits 0 ms"
    console = Console(file=text, width=80, color_system=None, markup=False, highlight=False)
    report.show_rows([(settings, 1, STABLE), ("max_batch_size 32", 40, UNSTABLE)], console)
    rows = text.getvalue().splitlines()
    assert rows[0].split() == ["replicas", "rate", "p50", "p95", "p99", "load", "capacity"]
    assert rows[1] == settings
    assert "105 ms (90 ms to no bound)" in rows[2]
    assert rows[2].endswith(" 615 /s")
    assert rows[3] == "max_batch_size 32"
    assert "no bound" in rows[4]
    assert max(map(len, rows)) <= 80
