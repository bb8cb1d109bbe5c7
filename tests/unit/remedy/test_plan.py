"""What a plan says beyond its operations."""

from __future__ import annotations

import pytest

from latencydoctor.errors import UsageError
from latencydoctor.model.configuration import Slo
from latencydoctor.remedy.catalog import FIXES, find
from latencydoctor.remedy.plan import diff_of, requirements_of

USED, TOTAL = "accelerator_memory_used_bytes", "accelerator_memory_total_bytes"


def test_requirements_come_from_the_slo_and_from_the_memory_before() -> None:
    found = {item.signal: item.at_most for item in requirements_of(Slo(900.0, 0.01), {USED: 2e9, TOTAL: 8e9})}
    assert found == {"e2e_p99_ms": 900.0, "error_ratio": 0.01, USED: 3.5e9}


@pytest.mark.parametrize(("measured", "limit"), [({USED: 2e9}, 2.2e9), ({USED: 8e9, TOTAL: 8e9}, 8.8e9), ({}, None)])
def test_memory_without_a_total(measured: dict[str, float], limit: float | None) -> None:
    found = {item.signal: item.at_most for item in requirements_of(Slo(), measured)}
    assert found.get(USED) == (pytest.approx(limit) if limit else None)


def test_a_diff_is_whole_lines_even_without_a_last_newline() -> None:
    assert diff_of("a\nb", "a\nc", "x").splitlines()[-2:] == ["-b", "+c"]
    assert diff_of("a", "a", "x") == ""


def test_every_fix_is_found_by_its_id_and_others_are_named() -> None:
    assert {find(name).id for name in FIXES} == set(FIXES)
    with pytest.raises(UsageError, match="no fix 'magic'") as refused:
        find("magic")
    assert "batch-floor" in refused.value.hint


def test_a_fix_may_only_touch_what_its_row_names() -> None:
    fix = find("batch-floor")
    assert fix.bound("accelerator") is None
    maximum = fix.bound("inference.batching.max_batch_size")
    assert maximum is not None
    assert [maximum.admits(value) for value in ("1", "1024", "0", "1025", "-1", "1.5", "", "٣", "1e2")] == [
        True, True, False, False, False, False, False, False, False,
    ]  # fmt: skip
