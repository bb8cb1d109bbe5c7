"""The generations that the controller keeps: what is added, what is dropped, and what a damaged file comes to."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from latencydoctor.stack.controller.kept import MOST_BYTES, MOST_KEPT, KeptGenerations, owner_of


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings-history.json"


def entries(path: Path) -> list[dict[str, object]]:
    found = json.loads(path.read_text(encoding="utf-8"))["generations"]
    assert isinstance(found, list)
    return found


def test_each_text_is_kept_byte_for_byte_with_its_time_and_owner(path: Path) -> None:
    kept = KeptGenerations(path, Clock())
    kept.keep(1, "generation: 1\n# ümläut\r\n", "ana")
    kept.keep(2, "generation: 2", "ben")
    assert entries(path) == [
        {"generation": 1, "in_effect_s": 101.0, "owner": "ana", "text": "generation: 1\n# ümläut\r\n"},
        {"generation": 2, "in_effect_s": 102.0, "owner": "ben", "text": "generation: 2"},
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_is_in_effect_already_keeps_its_time(path: Path) -> None:
    clock = Clock()
    KeptGenerations(path, clock).keep(1, "generation: 1", "ana")
    KeptGenerations(path, clock).keep(1, "generation: 1", "ana")
    assert [one["in_effect_s"] for one in entries(path)] == [101.0]


def test_the_oldest_go_when_there_are_too_many(path: Path) -> None:
    kept = KeptGenerations(path, Clock())
    for number in range(1, MOST_KEPT + 4):
        kept.keep(number, f"generation: {number}", "")
    assert [one["generation"] for one in entries(path)] == list(range(4, MOST_KEPT + 4))


def test_the_oldest_go_when_they_are_too_large_but_never_the_newest(path: Path) -> None:
    kept = KeptGenerations(path, Clock())
    for number in range(1, 5):
        kept.keep(number, f"generation: {number} # {'x' * (MOST_BYTES // 3)}", "")
    assert [one["generation"] for one in entries(path)] == [3, 4]
    assert path.stat().st_size <= MOST_BYTES
    kept.keep(5, f"generation: 5 # {'x' * MOST_BYTES}", "")
    assert [one["generation"] for one in entries(path)] == [5]


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"generations": 3}', "{", '{"generations": [1, "x"]}'])
def test_a_damaged_file_is_begun_anew(path: Path, damage: str) -> None:
    path.write_text(damage)
    KeptGenerations(path, Clock()).keep(9, "generation: 9", "ana")
    assert [one["generation"] for one in entries(path)] == [9]


def test_who_owns_a_file_has_a_name_and_one_that_is_gone_has_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert owner_of(tmp_path / "a")
    assert owner_of(tmp_path / "b") == ""
