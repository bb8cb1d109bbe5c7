"""Reports in files: whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from latencydoctor.cli import output
from latencydoctor.errors import KnownError


def test_a_report_replaces_the_last_one_and_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o640)
    output.document("new", path)
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["report.txt"]


def test_a_new_file_has_the_rights_that_any_would_get(tmp_path: Path) -> None:
    output.document("text\n", tmp_path / "ours.txt")
    (tmp_path / "theirs.txt").write_text("text\n")
    ours, theirs = ((tmp_path / name).stat() for name in ("ours.txt", "theirs.txt"))
    assert ours.st_mode == theirs.st_mode
    assert ours.st_size == theirs.st_size


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    output.document("new", tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new\n"


def test_what_cannot_be_finished_leaves_the_last_report_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")

    def full(_self: Path, _target: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(KnownError, match="No space left on device") as caught:
        output.document("new", path)
    assert "Make room" in caught.value.hint
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["report.txt"]


@pytest.mark.parametrize("name", ["", "none/report.txt"])
def test_what_is_no_file_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(KnownError, match="cannot write"):
        output.document("text", tmp_path / name)


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    output.document("text", path)
    assert os.read(reader, 99) == b"text\n"
    os.close(reader)


def test_a_link_to_itself_is_told_as_any_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(KnownError, match="Too many levels of symbolic links"):
        output.document("text", tmp_path / "loop")
    output.refuse_unwritable(output=tmp_path / "loop")
    assert [one.name for one in tmp_path.iterdir()] == ["loop"]
