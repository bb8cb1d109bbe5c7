from __future__ import annotations

import pytest

from latencydoctor.stack.settings_priorities import PrioritySettings, priority_violations


@pytest.mark.parametrize(
    ("priorities", "has_levels", "wrong"),
    [
        (PrioritySettings(), False, []),
        (PrioritySettings(standard_timeout_ms=300), True, []),
        (PrioritySettings(standard_timeout_ms=300), False, ["inference.priorities.standard_timeout_ms"]),
        (PrioritySettings(vip=0, standard=3), True, ["inference.priorities.vip", "inference.priorities.standard"]),
        (PrioritySettings(standard_timeout_ms=600_001), True, ["inference.priorities.standard_timeout_ms"]),
    ],
)
def test_a_time_for_standard_needs_somebody_who_goes_first(
    priorities: PrioritySettings, has_levels: bool, wrong: list[str]
) -> None:
    assert [key for key, _, _ in priority_violations(priorities, has_levels=has_levels)] == wrong
