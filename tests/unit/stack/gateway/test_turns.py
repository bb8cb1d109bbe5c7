from __future__ import annotations

from pathlib import Path

from latencydoctor.stack.gateway.turns import ServingFile
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
