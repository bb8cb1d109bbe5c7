"""Replicas that come and go while the stack runs: no question fails, and whatever is killed, it ends as asked."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from latencydoctor.app import treat
from latencydoctor.app.treat import Tools
from latencydoctor.cli.wiring import SystemClock
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import NothingToDo, Plan, RunState
from latencydoctor.stack import lifecycle, processes
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.probes import ask_controller, http_get
from latencydoctor.stack.replicas import load_serving
from latencydoctor.stack.settings import Settings
from latencydoctor.stack.status import StackStatus, status
from latencydoctor.stack.supervisor import Supervisor
from latencydoctor.targets.bundled import BundledTarget
from latencydoctor.targets.executor import BundledChanger
from tests.contract.gateway_client import admin, ask, eventually

pytestmark = pytest.mark.stack

SOON_S = 45.0
"""A start takes about 3 s and an end about 8 s; the machine may be busy with other things."""


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return Layout(tmp_path_factory.mktemp("two") / "stack")


@pytest.fixture(scope="module")
def stack(layout: Layout) -> Iterator[Endpoints]:
    layout.create()
    stack_settings.save(layout.settings, Settings(accelerator="cpu"))
    yield lifecycle.up(layout)
    lifecycle.down(layout)
    assert processes.members(layout.identity) == ()
    assert processes.shared_memory(layout.shm_prefix) == ()


def ask_for(layout: Layout, replicas: int) -> int:
    """Writes the settings with another number of replicas; their generation."""
    before = stack_settings.load(layout.settings)
    changed = replace(before.next_generation(), inference=replace(before.inference, replicas=replicas))
    stack_settings.save(layout.settings, changed)
    return changed.generation


def in_effect(stack: Endpoints) -> int:
    progress = ask_controller(stack)
    return progress.generation if progress else 0


def scaled(layout: Layout, stack: Endpoints, replicas: int) -> None:
    generation = ask_for(layout, replicas)
    eventually(lambda: in_effect(stack) == generation, f"{replicas} replicas are in effect", SOON_S)


def tritons(layout: Layout) -> dict[str, str]:
    """The Tritons among the parts, and their states."""
    return {part.name: part.state for part in status(layout).parts if part.name.startswith("triton")}


def served(page: str) -> int:
    """How many requests the Triton behind this metrics page has answered."""
    wanted = re.compile(r'^nv_inference_request_success\{model="faq-encoder".*\} (\S+)$', re.MULTILINE)
    return sum(int(float(count)) for count in wanted.findall(http_get(page).body))


def scraped(stack: Endpoints) -> dict[str, str]:
    """The Tritons that Prometheus scrapes, and how it finds them."""
    answer = json.loads(http_get(f"{stack.prometheus}/api/v1/targets").body)
    return {
        one["labels"]["instance"]: one["health"]
        for one in answer["data"]["activeTargets"]
        if one["labels"]["job"] == "triton"
    }


@contextmanager
def asked_all_the_time(stack: Endpoints) -> Iterator[Counter[int]]:
    """Four clients that ask one new question after another; the statuses of their answers."""
    ended, statuses, numbers = threading.Event(), Counter[int](), itertools.count()

    def client() -> None:
        while not ended.is_set():
            statuses[ask(stack.ports().gateway, f"Where is my order {next(numbers)}?").status] += 1

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_replica_is_started_under_load_and_shares_it(stack: Endpoints, layout: Layout) -> None:
    assert tritons(layout) == {"triton": "ready"}
    with asked_all_the_time(stack) as statuses:
        scaled(layout, stack, 2)
        at_first = sum(statuses.values())
        eventually(lambda: sum(statuses.values()) > at_first + 40, "questions go on", SOON_S)
    assert set(statuses) == {200}
    assert served(stack.tritons[1].metrics) >= 15
    assert tritons(layout) == {"triton": "ready", "triton-2": "ready"}
    both = {f"127.0.0.1:{port}": "up" for port in (stack.ports().triton_metrics, stack.ports().replicas[0].metrics)}
    eventually(lambda: scraped(stack) == both, "Prometheus scrapes both", SOON_S)


def test_new_settings_reach_both(stack: Endpoints, layout: Layout) -> None:
    before = stack_settings.load(layout.settings)
    batching = replace(before.inference.batching, max_batch_size=24)
    changed = replace(before.next_generation(), inference=replace(before.inference, batching=batching))
    stack_settings.save(layout.settings, changed)

    def largest(base: str) -> int:
        found: int = json.loads(http_get(f"{base}/v2/models/faq-encoder/config").body)["max_batch_size"]
        return found

    bases = [one.http for one in stack.tritons[:2]]
    eventually(lambda: {largest(base) for base in bases} == {24}, "the new limit is in effect", SOON_S)


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
        SOON_S,
    )
    left = processes.stubs(layout.shm_prefix_of(1))
    assert left
    assert set(left) <= set(first), "one that a load has replaced may still be ending"


def test_a_replica_is_ended_under_load_and_no_question_fails(stack: Endpoints, layout: Layout) -> None:
    with asked_all_the_time(stack) as statuses:
        eventually(lambda: sum(statuses.values()) > 20, "questions are asked", SOON_S)
        scaled(layout, stack, 1)
        assert processes.stubs(layout.shm_prefix_of(2)) == ()
        at_first = sum(statuses.values())
        eventually(lambda: sum(statuses.values()) > at_first + 20, "questions go on", SOON_S)
    assert set(statuses) == {200}
    assert tritons(layout) == {"triton": "ready"}
    assert processes.shared_memory(layout.shm_prefix_of(2)) == ()
    # It was forgotten before it was ended: there was no moment with a target that is down.
    assert list(scraped(stack).values()) == ["up"]
    query = urllib.parse.urlencode({"query": 'min_over_time(up{job="triton"}[1m])'})
    with urllib.request.urlopen(f"{stack.prometheus}/api/v1/query?{query}", timeout=5) as answer:
        found = json.load(answer)["data"]["result"]
    assert {one["value"][1] for one in found} == {"1"}
    eventually(lambda: len(admin(stack.admin_socket, "GET", "/state").json["replicas"]) == 1, "it is forgotten", SOON_S)


def test_one_that_cannot_start_is_refused_and_the_old_number_stays(stack: Endpoints, layout: Layout) -> None:
    with socket.socket() as squatter:
        # What was there before leaves connections that are waiting to end.
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", stack.ports().replicas[0].grpc))
        squatter.listen()
        before = in_effect(stack)
        generation = ask_for(layout, 2)
        eventually(lambda: "triton-2" in status(layout).settings_error, "it is refused", SOON_S)
        assert in_effect(stack) == before
        assert load_serving(layout.serving) == (1,)
        eventually(lambda: tritons(layout) == {"triton": "ready"}, "it is left alone", SOON_S)
    assert stack_settings.load(layout.settings).generation == generation
    scaled(layout, stack, 2)
    assert tritons(layout) == {"triton": "ready", "triton-2": "ready"}


def kill(layout: Layout, name: str) -> None:
    """SIGKILL to one program of the stack."""
    pid = next(part.pid for part in status(layout).parts if part.name == name)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_controller_killed_in_the_middle_ends_where_it_was_asked_to(
    stack: Endpoints, layout: Layout, replicas: int
) -> None:
    generation = ask_for(layout, replicas)
    changing = {1: ("triton-2", "RUNNING"), 3: ("triton-3", "STARTING")}[replicas]

    def under_way() -> bool:
        known = {one.name: one.state for one in Supervisor(stack.supervisor_socket).programs()}
        moved = load_serving(layout.serving) == (1,) if replicas == 1 else True
        return moved and known[changing[0]] == changing[1]

    eventually(under_way, "the change is under way", SOON_S)
    kill(layout, "controller")
    assert in_effect(stack) != generation
    eventually(lambda: in_effect(stack) == generation, "the new controller has finished it", SOON_S)
    wanted = {"triton": "ready"} | {f"triton-{number}": "ready" for number in range(2, replicas + 1)}
    eventually(lambda: tritons(layout) == wanted, "the asked state", SOON_S)
    assert load_serving(layout.serving) == tuple(range(1, replicas + 1))


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_supervisord_killed_in_the_middle_is_started_again_and_ends_where_it_was_asked_to(
    stack: Endpoints, layout: Layout, replicas: int
) -> None:
    pid = int(layout.supervisor_pid.read_text(encoding="utf-8"))
    comments = f"# kept by hand\n{layout.settings.read_text(encoding='utf-8')}"
    layout.settings.write_text(comments, encoding="utf-8")
    generation = ask_for(layout, replicas)
    os.kill(pid, signal.SIGKILL)

    def settled() -> StackStatus | None:
        found = status(layout)
        return found if found.ready and found.generation == generation else None

    eventually(settled, "the stack is back with what was asked for", 2 * SOON_S)
    assert int(layout.supervisor_pid.read_text(encoding="utf-8")) != pid
    assert len(tritons(layout)) == replicas
    assert load_serving(layout.serving) == tuple(range(1, replicas + 1))
    assert ask(stack.ports().gateway, "Where is my order?").status == 200


def test_the_doctor_scales_out_reads_it_back_and_takes_it_back_by_digest(stack: Endpoints, layout: Layout) -> None:
    """Without metrics nothing is verified: the change is held, and rolled back because a person insists."""
    scaled(layout, stack, 1)
    target = BundledTarget(layout.state)
    history = JournalFolder(layout.state / "journal", time.time)
    tools = Tools(target, BundledChanger(target), history, None, SystemClock(), lambda _: None)
    before = target.read()
    planned = treat.make_plan("scale-out", target, SystemClock())
    assert isinstance(planned, Plan)
    assert [(one.key, one.before, one.after) for one in planned.operations] == [("inference.replicas", "1", "2")]
    applied = treat.apply(planned, tools)
    assert applied.state is RunState.HELD
    found = target.read()
    assert dict(found.effective)["inference.replicas"] == "2"
    assert found.not_in_effect == ()
    with asked_all_the_time(stack) as statuses:
        back = treat.rollback(tools, applied.run_id, force=True)
    assert not isinstance(back, NothingToDo)
    assert back.digest == before.digest
    assert [one.digest for one in target.read().objects] == [one.digest for one in before.objects]
    assert tritons(layout) == {"triton": "ready"}
    assert set(statuses) == {200}
