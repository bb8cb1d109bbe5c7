"""Change points, baselines and first movers."""

from __future__ import annotations

from latencydoctor.evidence.onset import baseline_span, first_movers, split_level, walk_back
from latencydoctor.evidence.series import make_grid, place
from tests.unit.series_builders import NOW_S, WINDOW_S, Values, series


def test_the_split_is_where_the_level_changes() -> None:
    assert split_level([100.0] * 10 + [250.0] * 4) == 10
    assert split_level([300.0] * 3 + [90.0, 110.0] * 6) == 3


def test_the_split_needs_values_on_both_sides() -> None:
    assert split_level([1.0, 1.0, 9.0, 9.0, 9.0]) is None
    assert split_level([]) is None
    assert split_level([0.0, 0.0, 0.0, 5.0, 5.0, 5.0]) == 3


def test_windows_that_say_nothing_are_passed_over() -> None:
    verdicts: list[bool | None] = [False, False, True, None, None, None, True]
    assert walk_back(6, lambda index: verdicts[index]) == 2


def test_a_baseline_is_as_long_as_the_incident_and_never_tiny() -> None:
    assert baseline_span(first_bad=20, last=29) == (10, 19)
    assert baseline_span(first_bad=20, last=20) == (15, 19)
    assert baseline_span(first_bad=4, last=20) == (0, 3)
    assert baseline_span(first_bad=2, last=20) is None


def movers(first_bad: int, **values: Values) -> tuple[tuple[str, float], ...]:
    built = [series(signal, held) for signal, held in values.items()]
    grid = make_grid(NOW_S, WINDOW_S, built)
    return first_movers({item.signal: place(item, grid) for item in built}, grid, first_bad, (0, first_bad - 1))


def test_what_moved_first_is_listed_first() -> None:
    found = movers(
        12,
        e2e_p99_ms=[100.0] * 12 + [500.0] * 8,
        queue_depth=[1.0] * 10 + [5.0] * 10,
        batch_size_mean=[4.0] * 20,
    )
    assert [signal for signal, _ in found] == ["queue_depth", "e2e_p99_ms"]
    assert found[0][1] == NOW_S - 10 * WINDOW_S


def test_one_window_is_no_move_and_noise_is_none() -> None:
    noisy = [10.0, 14.0, 7.0, 12.0, 9.0] * 4
    assert movers(10, spike=[1.0] * 12 + [50.0] + [1.0] * 7, noisy=noisy) == ()


def test_of_equals_the_one_that_moved_furthest_comes_first() -> None:
    found = movers(10, near=[10.0] * 10 + [30.0] * 5, far=[10.0] * 10 + [900.0] * 5, none=[0.0] * 10 + [1.0] * 5)
    assert [signal for signal, _ in found] == ["none", "far", "near"]


def test_a_signal_without_a_baseline_has_not_moved() -> None:
    assert movers(10, late=[None] * 8 + [1.0] * 2 + [100.0] * 5, steady=[1.0] * 15, absent=[None] * 14 + [1.0]) == ()


def test_gaps_inside_a_move_are_passed_over() -> None:
    found = movers(10, sparse=[1.0] * 10 + [9.0, None, 9.0, None, 9.0])
    assert found == (("sparse", NOW_S - 5 * WINDOW_S),)
