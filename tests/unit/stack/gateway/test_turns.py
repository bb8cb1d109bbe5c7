from __future__ import annotations

from pathlib import Path

from latencydoctor.stack.gateway.turns import CatchUp, ServingFile
from latencydoctor.stack.replicas import save_serving

ADDRESSES = ("a:1", "b:2", "c:3")


def test_the_first_serves_where_nobody_says(tmp_path: Path) -> None:
    found = ServingFile(tmp_path / "serving.json", ADDRESSES)
    assert found.serving == ("a:1",)
    assert not found.changed()


def test_a_change_is_noticed_once(tmp_path: Path) -> None:
    path = tmp_path / "serving.json"
    save_serving(path, [1, 2])
    found = ServingFile(path, ADDRESSES)
    assert list(found.serving) == ["a:1", "b:2"]
    assert not found.changed()
    save_serving(path, [1])
    assert found.changed()
    assert list(found.serving) == ["a:1"]
    assert not found.changed()


def test_a_replica_without_an_address_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "serving.json"
    save_serving(path, [2, 7])
    assert ServingFile(path, ADDRESSES).serving == ("b:2",)
    save_serving(path, [7])
    assert ServingFile(path, ADDRESSES).serving == ("a:1",)


def test_one_that_has_just_come_takes_all_until_it_has_as_many_as_another() -> None:
    inflight = {"a:1": 9, "b:2": 4, "c:3": 0}
    found = CatchUp()
    assert found.next(ADDRESSES, inflight.__getitem__) is None
    found.came(["c:3"])
    for _ in range(4):
        assert found.next(ADDRESSES, inflight.__getitem__) == "c:3"
        inflight["c:3"] += 1
    assert found.next(ADDRESSES, inflight.__getitem__) is None
    inflight["c:3"] = 0
    assert found.next(ADDRESSES, inflight.__getitem__) is None, "it has its turn now, like the others"


def test_one_that_comes_when_nobody_waits_has_its_turn_at_once() -> None:
    found = CatchUp()
    found.came(["b:2"])
    assert found.next(("a:1", "b:2"), lambda _: 0) is None
    found.came(["a:1", "b:2"])
    assert found.next(("a:1", "b:2"), lambda _: 3) is None, "all are new: there is nobody to catch up with"
