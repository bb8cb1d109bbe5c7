"""Priorities on a real Triton: with twice the load that can be served, VIP requests are answered and others told when
to come back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from latencydoctor.load.runner import LocustRunner
from latencydoctor.model.load import LoadPlan, Mix, Phase, WindowStats
from latencydoctor.stack import lifecycle, processes
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.encoder.corpus import faq_corpus
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.probes import http_get
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, PrioritySettings, Settings
from tests.contract.gateway_client import eventually

pytestmark = pytest.mark.stack

CAPACITY_RPS = 4 / 0.070
"""`launch-bound` takes 60 ms + 2.5 ms an item: batches of 4 take 70 ms."""

PLAIN = Settings(
    inference=InferenceSettings(
        deadline_ms=3000, batching=BatchingSettings(preferred_batch_size=0, max_batch_size=4, timeout_micros=0)
    ),
    accelerator="sim:launch-bound",
)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return Layout(tmp_path_factory.mktemp("classes") / "stack")


@pytest.fixture(scope="module")
def stack(layout: Layout) -> Iterator[Endpoints]:
    layout.create()
    stack_settings.save(layout.settings, PLAIN)
    yield lifecycle.up(layout)
    lifecycle.down(layout)
    assert processes.members(layout.identity) == ()


def set_levels(layout: Layout, stack: Endpoints, timeout_ms: int) -> None:
    """Two levels with this time for the standard one; returns when the gateway has them, after the controller."""
    settings = stack_settings.load(layout.settings).next_generation()
    priorities = PrioritySettings(standard_timeout_ms=timeout_ms)
    inference = replace(settings.inference, priority_levels=True, priorities=priorities)
    stack_settings.save(layout.settings, replace(settings, inference=inference))
    line = f"stack_settings_generation {settings.generation}"
    eventually(lambda: line in http_get(stack.controller_metrics).body, "Triton has the levels", 20.0)


def flooded(stack: Endpoints, folder: Path, seconds: float, settled_s: float = 3.0) -> WindowStats:
    """Two times the capacity of standard questions and a tenth of VIP ones, none of which the cache can answer."""
    plan = LoadPlan(
        stack.gateway,
        (Phase("flood", 2.2 * CAPACITY_RPS, None),),
        tuple(faq_corpus().index),
        deadline_ms=3500.0,
        mix=Mix(hot_share_ratio=0.0, vip_share_ratio=0.09),
    )
    with LocustRunner(folder).start(plan) as load:
        time.sleep(seconds)
        load.stop()
        (phase,) = load.phases_started()
        # The first seconds fill the queue.
        return load.window(phase.start_s + settled_s, phase.start_s + seconds)


def total(stack: Endpoints, name: str) -> int:
    lines = http_get(f"{stack.gateway}/metrics").body.splitlines()
    return sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_vip_is_answered_and_standard_told_when_to_come_back(stack: Endpoints, layout: Layout, tmp_path: Path) -> None:
    set_levels(layout, stack, 400)
    found = flooded(stack, tmp_path, 10.0)
    assert found.vip is not None
    assert found.standard is not None
    assert found.vip.p99_ms is not None
    assert found.vip.p99_ms < 500
    assert (found.vip.shed_count, found.vip.failed_count) == (0, 0)
    assert found.standard.failed_count <= found.standard.offered_count * 0.005
    assert 0.3 < found.standard.shed_ratio < 0.75
    assert found.standard.p99_ms is not None
    assert found.standard.p99_ms < 1000
    assert found.answered_rps > 0.9 * CAPACITY_RPS, "what is answered is what can be"
    assert total(stack, 'gateway_shed_total{priority="standard",reason="queue_timeout"}') > 100
    assert total(stack, 'gateway_shed_total{priority="vip"') == 0
    log = (layout.logs / "gateway.log").read_text(encoding="utf-8")
    lines = [line for line in log.splitlines() if '"event": "standard_shed"' in line]
    assert 5 <= len(lines) <= 20, "one line a second, however many"


def test_without_a_time_limit_standard_queues_and_what_would_be_late_is_told_at_once(
    stack: Endpoints, layout: Layout, tmp_path: Path
) -> None:
    set_levels(layout, stack, 0)
    before = total(stack, 'gateway_shed_total{priority="standard",reason="deadline"}')
    found = flooded(stack, tmp_path, 14.0, settled_s=7.0)
    assert found.vip is not None
    assert found.standard is not None
    assert found.vip.p99_ms is not None
    assert found.vip.p99_ms < 500
    assert (found.vip.shed_count, found.vip.failed_count) == (0, 0)
    assert total(stack, 'gateway_shed_total{priority="standard",reason="deadline"}') - before > 50
    assert found.standard.failed_count < found.standard.offered_count * 0.3
    # Triton begins a batch of a model with levels when a request comes: with fewer to come, it begins them later.
    assert found.answered_rps > 0.4 * CAPACITY_RPS
