"""Several expressions in one query, and how they are shared out."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.combine import combine, share_out


def test_one_expression_is_asked_as_it_is() -> None:
    assert combine(["up"]) == "up"


def test_each_of_several_is_marked_and_a_comment_ends_with_its_line() -> None:
    assert combine(["up # a", "down"]) == (
        'label_replace(\nup # a\n, "ld_signal", "0", "", "")\nor label_replace(\ndown\n, "ld_signal", "1", "", "")'
    )


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, [0]), (1, [1]), (7, [7]), (8, [4, 4]), (21, [4, 4, 4, 4, 5]), (60, [12] * 5)]
)
def test_groups_are_even_and_few(count: int, sizes: list[int]) -> None:
    groups = share_out(range(count), 5)
    assert [len(group) for group in groups] == sizes
    assert [item for group in groups for item in group] == list(range(count))
