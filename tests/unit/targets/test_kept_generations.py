"""Reading the settings that a stack ran before: whole entries count, damage is left out, links are not followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.targets.kept_generations import KEPT, read_kept
from latencydoctor.targets.state_folder import StateFolder

TEXT = "generation: 1\ncache:\n  ttl_seconds: 300\n"


def test_what_the_controller_keeps_is_read_byte_for_byte(tmp_path: Path) -> None:
    keeper = KeptGenerations(tmp_path / KEPT, lambda: 1234.5)
    keeper.keep(1, TEXT, "ana")
    keeper.keep(2, TEXT.replace("300", "2 # ümläut"), "")
    first, second = read_kept(StateFolder(tmp_path))
    assert (first.generation, first.in_effect_s, first.owner, first.text) == (1, 1234.5, "ana", TEXT)
    assert first.digest == settings_digest(TEXT)
    assert dict(first.settings)["cache.ttl_seconds"] == "300"
    assert second.generation == 2


@pytest.mark.parametrize("damage", ["", "[]", '{"generations": 1}', "{", "[" * 100_000])
def test_a_damaged_file_is_no_history(tmp_path: Path, damage: str) -> None:
    (tmp_path / KEPT).write_text(damage)
    assert read_kept(StateFolder(tmp_path)) == ()


def test_no_file_and_a_link_are_no_history(tmp_path: Path) -> None:
    folder = tmp_path / "stack"
    folder.mkdir()
    assert read_kept(StateFolder(folder)) == ()
    KeptGenerations(tmp_path / KEPT).keep(1, TEXT, "")
    (folder / KEPT).symlink_to(tmp_path / KEPT)
    assert read_kept(StateFolder(folder)) == ()


def test_an_entry_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    good = {"generation": 3, "in_effect_s": 1, "owner": None, "text": TEXT}
    bad = [{}, 7, {**good, "text": "- a list"}, {**good, "in_effect_s": "x"}, {**good, "generation": None}]
    (tmp_path / KEPT).write_text(json.dumps({"generations": [*bad, good]}))
    (only,) = read_kept(StateFolder(tmp_path))
    assert (only.generation, only.owner) == (3, "")
