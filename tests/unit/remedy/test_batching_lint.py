"""Remarks on a batching configuration: each where it must be, none where it must not, and each at its threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from latencydoctor.app.planning import make_plan
from latencydoctor.app.remarks import remarks_on
from latencydoctor.model.configuration import Slo
from latencydoctor.model.remedy import NothingToDo, Plan
from latencydoctor.remedy.batching_lint import Around, Batcher, lint, of_settings
from tests.fakes.clock import FakeClock
from tests.fakes.patient import BROKEN, FakePatient
from tests.unit.builders import evidence, values

GOOD = Batcher(True, (16,), 32, 100.0)
AROUND = Around(1000.0, 5000.0, 300.0)


def ids(batcher: Batcher, around: Around = AROUND) -> list[str]:
    return [one.id for one in lint(batcher, around)]


def test_the_defaults_under_load_deserve_no_remark() -> None:
    assert ids(GOOD) == []
    assert ids(GOOD, Around()) == []


@pytest.mark.parametrize(
    ("batcher", "expected"),
    [
        (replace(GOOD, preferred=(48,)), "preferred-above-maximum"),
        (replace(GOOD, preferred=(32,)), None),
        (replace(GOOD, preferred=(8, 16), wait_ms=0.0), "preferred-size-ceiling"),
        (replace(GOOD, preferred=(32,), wait_ms=0.0), None),
        (replace(GOOD, preferred=(), wait_ms=0.0), None),
        (replace(GOOD, preferred=()), "wait-without-preferred"),
        (replace(GOOD, wait_ms=500.0), "wait-near-limit"),
        (replace(GOOD, wait_ms=499.0), None),
        (replace(GOOD, enabled=False), "batching-off"),
        (Batcher(False, (), 1, 0.0), None),
        (Batcher(True, (), 1, 0.0), "maximum-of-one"),
        (replace(GOOD, levels=2), "levels-without-default"),
        (replace(GOOD, levels=2, default_level=3), "levels-without-default"),
        (replace(GOOD, levels=2, default_level=2), None),
        (replace(GOOD, classes=(("vip", 1), ("standard", 1))), "one-level"),
        (replace(GOOD, classes=(("vip", 1), ("standard", 2))), "priorities-without-levels"),
        (replace(GOOD, levels=2, default_level=2, classes=(("vip", 1), ("standard", 2))), None),
        (replace(GOOD, classes=(("standard", 2),)), None),
    ],
)
def test_each_rule_fires_where_it_must_and_only_there(batcher: Batcher, expected: str | None) -> None:
    assert ids(batcher) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("rate_rps", "wait_ms", "expected"),
    [
        (70.0, 200.0, ["preferred-out-of-reach"]),
        (75.0, 200.0, []),
        # What costs a tenth of the SLO or less is not worth a word.
        (70.0, 100.0, []),
        (0.0, 200.0, []),
    ],
)
def test_a_preferred_size_that_the_rate_does_not_reach(rate_rps: float, wait_ms: float, expected: list[str]) -> None:
    assert ids(replace(GOOD, wait_ms=wait_ms), replace(AROUND, arrival_rps=rate_rps)) == expected


def test_what_to_write_fits_the_rate() -> None:
    (slow,) = lint(replace(GOOD, wait_ms=200.0), replace(AROUND, arrival_rps=40.0))
    assert slow.what == "at 40 requests/s a batch of 16 takes 375 ms to fill, the wait is 200 ms"
    assert slow.write == "write a preferred size of 7"
    (alone,) = lint(replace(GOOD, wait_ms=200.0), replace(AROUND, arrival_rps=2.0))
    assert alone.write == "write a wait of 0"


def test_the_nearer_limit_is_named() -> None:
    (near,) = lint(replace(GOOD, wait_ms=900.0), AROUND)
    assert near.what == "the wait of 900 ms is near the SLO of 1000 ms"
    (above,) = lint(replace(GOOD, wait_ms=900.0), replace(AROUND, deadline_ms=800.0))
    assert above.what == "the wait of 900 ms is above the deadline of 800 ms"


def test_settings_by_key_are_read_and_what_does_not_say_its_sizes_is_not() -> None:
    stated = {
        "inference.batching.preferred_batch_size": "0",
        "inference.batching.max_batch_size": "8",
        "inference.batching.timeout_micros": "1500",
        "inference.priorities.vip": "1",
        "inference.priorities.standard": "2",
        "inference.priorities.standard_timeout_ms": "450",
        "inference.priority_levels": "true",
    }
    classes = (("vip", 1), ("standard", 2))
    assert of_settings(stated) == Batcher(True, (), 8, 1.5, 2, 2, classes)
    off = {**stated, "inference.priority_levels": "false", "inference.batching.enabled": "false"}
    assert of_settings(off) == Batcher(False, (), 8, 1.5, 0, 0, classes)
    for key in ("max_batch_size", "timeout_micros"):
        assert of_settings({k: v for k, v in stated.items() if not k.endswith(key)}) is None


def test_a_plan_for_a_floor_says_what_is_wrong_with_the_settings_as_they_are(tmp_path: Path) -> None:
    ceiling = BROKEN.replace("preferred_batch_size: 0", "preferred_batch_size: 4")
    made = make_plan("batch-floor", FakePatient(tmp_path / "a", ceiling), FakeClock())
    assert isinstance(made, Plan)
    assert any(
        line.startswith("As it is: the preferred size is 4 of 8 and there is no wait") for line in made.justification
    )
    good = BROKEN.replace("preferred_batch_size: 0", "preferred_batch_size: 16").replace(
        "max_batch_size: 8", "max_batch_size: 32"
    )
    long = good.replace("timeout_micros: 0", "timeout_micros: 100000\n  priorities: {vip: 2, standard: 2}")
    nothing = make_plan("batch-floor", FakePatient(tmp_path / "b", long), FakeClock())
    assert isinstance(nothing, NothingToDo)
    assert any("vip and standard are both on level 2" in note for note in nothing.notes)


CONFIG = {
    "config_dynamic_batching": 1.0, "config_preferred_batch_size": 16.0, "config_max_batch_size": 32.0,
    "config_queue_delay_ms": 2000.0, "request_rate_rps": 100.0, "cache_hit_ratio": 0.9, "replica_count": 2.0,
}  # fmt: skip


def test_a_diagnosis_remarks_on_the_settings_in_effect_at_the_rate_that_reaches_one_server() -> None:
    found = remarks_on(evidence(*values(CONFIG)), Slo())
    assert [one.id for one in found] == ["wait-near-limit", "preferred-out-of-reach"]
    assert "at 5 requests/s" in found[1].what


@pytest.mark.parametrize("absent", [name for name in CONFIG if name.startswith("config_")])
def test_where_a_setting_is_not_known_nothing_is_remarked(absent: str) -> None:
    known = {name: value for name, value in CONFIG.items() if name != absent}
    assert remarks_on(evidence(*values(known)), Slo()) == ()
