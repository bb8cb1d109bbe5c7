"""Compiled patterns are kept for the next start, and believed only where nobody else could have written them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from latencydoctor.sources.compiled_store import CacheFolder

PARTS = [b"first", b"", b"\0" * 9]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "patterns"


def test_what_is_saved_is_loaded_and_nobody_else_may_read_it(folder: Path) -> None:
    store = CacheFolder(folder)
    assert store.load("a") is None
    store.save("a", PARTS)
    assert CacheFolder(folder).load("a") == PARTS
    assert store.load("b") is None
    assert folder.stat().st_mode & 0o077 == 0
    assert [path.name for path in folder.iterdir()] == ["a.patterns"]


@pytest.mark.parametrize("place", [0, 31, 32, 40, -1])
def test_one_changed_byte_makes_it_unknown(folder: Path, place: int) -> None:
    store = CacheFolder(folder)
    store.save("a", PARTS)
    path = folder / "a.patterns"
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert store.load("a") is None
    path.write_bytes(data[:20])
    assert store.load("a") is None
    path.write_bytes(b"")
    assert store.load("a") is None


def test_what_others_may_write_to_is_not_believed(folder: Path) -> None:
    store = CacheFolder(folder)
    store.save("a", PARTS)
    (folder / "a.patterns").chmod(0o666)
    assert store.load("a") is None
    (folder / "a.patterns").chmod(0o600)
    folder.chmod(0o777)
    assert store.load("a") is None
    store.save("b", PARTS)
    assert not (folder / "b.patterns").exists()


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    store = CacheFolder(folder)
    store.save("a", PARTS)
    (folder / "b.patterns").symlink_to(folder / "a.patterns")
    assert store.load("b") is None
    (tmp_path / "other").symlink_to(folder)
    assert CacheFolder(tmp_path / "other").load("a") is None


def test_where_nothing_can_be_kept_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for store in (CacheFolder(None), CacheFolder(tmp_path / "file" / "patterns")):
        store.save("a", PARTS)
        assert store.load("a") is None


def test_old_ones_are_forgotten(folder: Path) -> None:
    store = CacheFolder(folder)
    for number in range(20):
        store.save(str(number), PARTS)
        os.utime(folder / f"{number}.patterns", (number, number))
    store.save("newest", PARTS)
    assert len(list(folder.iterdir())) == 8
    assert store.load("newest") == PARTS
    assert store.load("0") is None


def test_what_a_killed_writer_left_is_removed_and_one_at_work_is_left_alone(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    for name, age_s in ((".new-left", 7200), (".new-at-work", 1)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age_s, time.time() - age_s))
    CacheFolder(folder).save("a", PARTS)
    assert sorted(path.name for path in folder.iterdir()) == [".new-at-work", "a.patterns"]
