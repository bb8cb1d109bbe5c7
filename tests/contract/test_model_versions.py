"""Version folders on a real disk: their digests follow contents and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.targets import model_versions
from latencydoctor.targets.model_versions import newest_ns, versions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name in ("1", "2", "10", "configs"):
        (tmp_path / "m" / name).mkdir(parents=True)
        (tmp_path / "m" / name / "weights.bin").write_bytes(name.encode())
    (tmp_path / "m" / "config.pbtxt").write_text("")
    return tmp_path / "m"


def test_versions_are_the_numbered_folders_in_order(model: Path) -> None:
    assert [name for name, _ in versions(model)] == ["1", "2", "10"]
    with pytest.raises(KnownError, match="cannot be read"):
        versions(model / "absent")


def test_a_digest_is_of_contents_and_not_of_times_or_rights(model: Path) -> None:
    before, weights = versions(model), model / "1" / "weights.bin"
    os.utime(weights, (1, 1))
    weights.chmod(0o600)
    assert versions(model) == before
    weights.write_bytes(b"2")
    assert versions(model)[0] != before[0]
    assert versions(model)[1:] == before[1:]
    weights.write_bytes(b"1")
    assert versions(model) == before
    weights.rename(model / "1" / "other.bin")
    assert versions(model)[0] != before[0]


def test_links_count_by_where_they_lead(model: Path, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"x")
    link = model / "1" / "link"
    link.symlink_to(tmp_path / "blob")
    before = versions(model)
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    assert versions(model) != before


def test_of_large_files_size_and_both_ends_are_looked_at(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_versions, "WHOLE_BYTES", 8)
    monkeypatch.setattr(model_versions, "END_BYTES", 4)
    weights = model / "1" / "weights.bin"
    found = set()
    for content in (b"aaaa....bbbb", b"aaaX....bbbb", b"aaaa....bbbX", b"aaaa.....bbbb"):
        weights.write_bytes(content)
        found.add(versions(model)[0])
    assert len(found) == 4


def test_a_folder_that_is_no_model_is_not_read_to_its_end(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_versions, "MAX_FILES", 1)
    (model / "1" / "more").touch()
    with pytest.raises(KnownError, match="holds more than 1 files"):
        versions(model)


def test_the_newest_time_is_that_of_anything_inside(model: Path) -> None:
    os.utime(model / "2" / "weights.bin", (3e9, 3e9))
    assert newest_ns(model) == 3_000_000_000 * 10**9
