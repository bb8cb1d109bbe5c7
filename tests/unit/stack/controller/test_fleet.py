"""The fleet against a supervisord and a gateway that do as the test says; time passes when the test says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.controller.fleet import (
    DRAIN_SLACK_S,
    FAILED_LOOKS,
    START_S,
    SUPERVISOR_GONE_S,
    UNSCRAPED_S,
    Around,
    Fleet,
    Place,
    Standing,
)
from latencydoctor.stack.controller.loop import NotYetError, Served
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import Triton
from latencydoctor.stack.endpoints import Ports, TritonPorts, endpoints_for
from latencydoctor.stack.replicas import load_serving, save_serving
from latencydoctor.stack.supervisor import Supervised

PORTS = Ports(1, 2, 3, 4, 5, 6, 7, (TritonPorts(8, 9, 10), TritonPorts(11, 12, 13)))
NAMES = ("triton", "triton-2", "triton-3")


class Yard:
    """supervisord, the gateway, the Tritons and a clock."""

    def __init__(self, folder: Path) -> None:
        self.states = dict(zip(NAMES, ("RUNNING", "STOPPED", "STOPPED"), strict=True))
        self.silent = False
        self.busy_with: dict[str, bool | None] = {}
        self.problems: dict[str, str] = {}
        self.cleaned: list[str] = []
        self.revivals = 0
        self.now_s = 0.0
        self.serving, self.targets = folder / "serving.json", folder / "triton.json"
        save_serving(self.serving, [1])
        endpoints = endpoints_for(folder, PORTS, "cpu", alertmanager=False)
        around = Around(self, self, endpoints, self.serving, self.targets, self.revive, lambda: self.now_s)
        self.fleet = Fleet([self._place(name, folder) for name in NAMES], around)

    def _place(self, name: str, folder: Path) -> Place[Triton]:
        served = Served(Triton("127.0.0.1:1"), StubWatch(lambda: (), lambda _: True))
        return Place(
            name,
            f"at {name}",
            folder / f"{name}.log",
            served,
            lambda: self.problems.get(name, ""),
            lambda: self.cleaned.append(name),
        )

    def programs(self) -> tuple[Supervised, ...]:
        if self.silent:
            raise KnownError("supervisord does not answer")
        return tuple(Supervised(name, state, 1, 0.0, "") for name, state in self.states.items())

    def start_program(self, name: str) -> None:
        self.states[name] = "STARTING"

    def stop_program(self, name: str) -> None:
        self.states[name] = "STOPPING"

    def busy(self, address: str) -> bool | None:
        return self.busy_with.get(address.removeprefix("at "), False)

    def revive(self) -> None:
        self.revivals += 1

    @property
    def scraped(self) -> list[str]:
        found: list[str] = json.loads(self.targets.read_text())[0]["targets"]
        return found

    def release(self, replicas: int) -> None:
        self.fleet.release(replicas, 5.0)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def test_a_new_replica_serves_only_after_an_inference(yard: Yard) -> None:
    yard.problems["triton-2"] = "connection refused"
    for state in ("STARTING", "RUNNING"):
        with pytest.raises(NotYetError, match="triton-2 is starting"):
            yard.fleet.grow(2)
        yard.states["triton-2"] = state
    assert load_serving(yard.serving) == (1,)
    yard.problems.clear()
    yard.fleet.grow(2)
    assert load_serving(yard.serving) == (1,), "growing alone sends no traffic"
    yard.fleet.serve(2)
    assert load_serving(yard.serving) == (1, 2)
    assert yard.scraped == ["127.0.0.1:6", "127.0.0.1:10"]
    yard.release(2)
    assert len(yard.fleet.running(2)) == 2


def test_one_that_serves_already_is_not_asked_again(yard: Yard) -> None:
    yard.problems["triton"] = "busy with its model"
    yard.fleet.grow(1)


def test_one_that_does_not_answer_in_time_is_refused(yard: Yard) -> None:
    yard.problems["triton-2"] = "answers 400: no such model"
    with pytest.raises(NotYetError):
        yard.fleet.grow(2)
    yard.states["triton-2"] = "RUNNING"
    yard.now_s += START_S + 1
    with pytest.raises(KnownError, match="triton-2 did not answer within 20 s: answers 400: no such model"):
        yard.fleet.grow(2)
    yard.fleet.retreat()
    assert yard.states == {"triton": "RUNNING", "triton-2": "STOPPING", "triton-3": "STOPPING"}
    yard.states["triton-2"] = "STOPPED"
    with pytest.raises(NotYetError):
        yard.fleet.grow(2)


def test_one_that_ends_at_once_is_refused_with_its_last_word(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "triton-2.log").write_text("E1130 failed to bind: address in use\n")
    with pytest.raises(NotYetError):
        yard.fleet.grow(2)
    for _ in range(FAILED_LOOKS - 1):
        yard.states["triton-2"] = "BACKOFF"
        with pytest.raises(NotYetError):
            yard.fleet.grow(2)
    with pytest.raises(KnownError, match=r"ends as soon as it is started: .*address in use"):
        yard.fleet.grow(2)


def test_more_than_there_are_ports_for_is_refused(yard: Yard) -> None:
    with pytest.raises(KnownError, match=r"inference.replicas is 4, and this stack has ports for 3"):
        yard.fleet.grow(4)


def serve_two(yard: Yard) -> None:
    yard.states["triton-2"] = "RUNNING"
    yard.fleet.grow(2)
    yard.fleet.serve(2)


def test_one_that_is_to_end_gets_no_more_and_answers_what_it_has(yard: Yard) -> None:
    serve_two(yard)
    yard.busy_with["triton-2"] = True
    yard.fleet.serve(1)
    assert load_serving(yard.serving) == (1,)
    assert yard.scraped == ["127.0.0.1:6"]
    with pytest.raises(NotYetError, match="triton-2 answers what it was asked"):
        yard.release(1)
    yard.now_s += 5.5
    with pytest.raises(NotYetError, match="answers"):
        yard.release(1)
    assert yard.states["triton-2"] == "RUNNING"
    yard.busy_with["triton-2"] = False
    with pytest.raises(NotYetError, match="is ending"):
        yard.release(1)
    assert yard.states["triton-2"] == "RUNNING", "Prometheus may still ask it"
    yard.now_s += UNSCRAPED_S
    for _ in range(2):
        with pytest.raises(NotYetError, match="is ending"):
            yard.release(1)
    assert yard.states["triton-2"] == "STOPPING"
    yard.states["triton-2"] = "STOPPED"
    yard.release(1)
    assert yard.cleaned == ["triton-2"]


def test_a_gateway_that_cannot_say_is_waited_for_no_longer_than_a_question_may_take(yard: Yard) -> None:
    serve_two(yard)
    yard.busy_with["triton-2"] = None
    yard.fleet.serve(1)
    with pytest.raises(NotYetError):
        yard.release(1)
    yard.now_s += 5.0 + DRAIN_SLACK_S
    with pytest.raises(NotYetError, match="answers"):
        yard.release(1)
    yard.now_s += 0.1
    with pytest.raises(NotYetError, match="is ending"):
        yard.release(1)
    assert yard.states["triton-2"] == "STOPPING"


def test_one_asked_back_while_it_drains_serves_again(yard: Yard) -> None:
    serve_two(yard)
    yard.fleet.serve(1)
    with pytest.raises(NotYetError):
        yard.release(1)
    yard.fleet.grow(2)
    yard.fleet.serve(2)
    yard.release(2)
    assert load_serving(yard.serving) == (1, 2)
    assert yard.states["triton-2"] == "RUNNING"


def test_what_another_controller_had_begun_is_finished(yard: Yard) -> None:
    """A controller that was killed leaves a Triton that runs and does not serve, and no memory of it."""
    yard.states["triton-3"] = "RUNNING"
    yard.fleet.grow(1)
    yard.fleet.serve(1)
    with pytest.raises(NotYetError):
        yard.release(1)
    yard.now_s += UNSCRAPED_S + 1
    with pytest.raises(NotYetError):
        yard.release(1)
    assert yard.states["triton-3"] == "STOPPING"


def test_one_that_dies_as_it_is_to_end_is_not_left_to_come_back(yard: Yard) -> None:
    """supervisord starts a program that ended by itself anew, a moment after it has said so."""
    serve_two(yard)
    yard.fleet.serve(1)
    yard.states["triton-2"] = "EXITED"
    with pytest.raises(NotYetError):
        yard.release(1)
    yard.states["triton-2"] = "RUNNING"
    yard.now_s += UNSCRAPED_S + 1
    with pytest.raises(NotYetError):
        yard.release(1)
    assert yard.states["triton-2"] == "STOPPING"
    yard.states["triton-2"] = "FATAL"
    yard.release(1)


def test_a_silent_supervisord_is_waited_for_then_brought_back_once(yard: Yard) -> None:
    yard.silent = True
    for _ in range(4):
        with pytest.raises(NotYetError, match="supervisord does not answer"):
            yard.fleet.grow(2)
        assert yard.revivals == (yard.now_s > SUPERVISOR_GONE_S)
        yard.now_s += SUPERVISOR_GONE_S - 1
    yard.silent = False
    with pytest.raises(NotYetError, match="starting"):
        yard.fleet.grow(2)


def test_tritons_that_nobody_starts_are_as_many_as_they_are() -> None:
    served = Served(Triton("127.0.0.1:1"), StubWatch(lambda: (), lambda _: True))
    fleet = Standing([served])
    fleet.grow(1)
    assert fleet.running(1) == (served,)
    with pytest.raises(KnownError, match=r"inference.replicas is 2, 1 run"):
        fleet.grow(2)
