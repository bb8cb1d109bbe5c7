"""Two replicas: both serve, both get new settings, one that loses its model process gets it back, nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from latencydoctor.stack import lifecycle, processes
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.probes import http_get
from latencydoctor.stack.settings import InferenceSettings, Settings
from latencydoctor.stack.status import status
from tests.contract.gateway_client import ask, eventually

pytestmark = pytest.mark.stack

TWO = Settings(inference=InferenceSettings(replicas=2), accelerator="cpu")


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return Layout(tmp_path_factory.mktemp("two") / "stack")


@pytest.fixture(scope="module")
def stack(layout: Layout) -> Iterator[Endpoints]:
    layout.create()
    stack_settings.save(layout.settings, TWO)
    yield lifecycle.up(layout)
    lifecycle.down(layout)
    assert processes.members(layout.identity) == ()
    assert processes.shared_memory(layout.shm_prefix) == ()


def served(page: str) -> int:
    """How many requests the Triton behind this metrics page has answered."""
    wanted = re.compile(r'^nv_inference_request_success\{model="faq-encoder".*\} (\S+)$', re.MULTILINE)
    counts = wanted.findall(http_get(page).body)
    return sum(int(float(count)) for count in counts)


def largest_batch(base: str) -> int:
    found: int = json.loads(http_get(f"{base}/v2/models/faq-encoder/config").body)["max_batch_size"]
    return found


def test_questions_go_to_each_replica_in_turn(stack: Endpoints, layout: Layout) -> None:
    pages = (stack.triton_metrics, stack.replica_metrics)
    before = [served(page) for page in pages]
    for number in range(8):
        assert ask(stack.ports().gateway, f"Where is my order {number}?").status == 200
    # The readiness probe asks once a second as well.
    assert min(served(page) - at_first for page, at_first in zip(pages, before, strict=True)) >= 4
    parts = {part.name: part for part in status(layout).parts}
    assert parts["triton-2"].state == "ready"
    assert parts["triton-2"].address == stack.replica_grpc


def test_new_settings_reach_both(stack: Endpoints, layout: Layout) -> None:
    batching = replace(TWO.inference.batching, max_batch_size=24)
    changed = replace(TWO.next_generation(), inference=replace(TWO.inference, batching=batching))
    stack_settings.save(layout.settings, changed)
    bases = (stack.triton_http, stack.replica_http)
    eventually(lambda: {largest_batch(base) for base in bases} == {24}, "the new limit is in effect", 20.0)


def test_a_lost_model_process_comes_back_on_its_own_replica_only(stack: Endpoints, layout: Layout) -> None:
    first, second = (processes.stubs(layout.shm_prefix_of(replica)) for replica in (1, 2))
    assert first
    assert second
    assert not set(first) & set(second)
    for pid in second:
        os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: processes.stubs(layout.shm_prefix_of(2)) not in ((), second) and status(layout).ready,
        "the second replica serves again",
        20.0,
    )
    left = processes.stubs(layout.shm_prefix_of(1))
    assert left
    assert set(left) <= set(first), "one that a load has replaced may still be ending"
