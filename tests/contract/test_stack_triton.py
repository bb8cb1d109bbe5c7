"""Triton itself: its tree made ready from the wheel, and its refusals told from its absence."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack import triton_launch, triton_tree
from latencydoctor.stack.controller.triton import Triton, TritonUnavailableError
from latencydoctor.stack.endpoints import Endpoints

pytestmark = pytest.mark.stack


def test_the_tree_is_made_once_and_can_run(tmp_path: Path) -> None:
    tree = triton_tree.prepare(tmp_path)
    for path in (tree.server, tree.root / triton_tree.STUB):
        assert os.access(path, os.X_OK)
    assert not (tree.root / "python_backend_stubs").exists()
    made = tree.server.stat().st_mtime_ns
    assert triton_tree.prepare(tmp_path).server.stat().st_mtime_ns == made
    assert [path.name for path in tmp_path.iterdir()] == [tree.root.name]


def test_a_tree_that_cannot_be_copied_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device")])

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(KnownError, match=r"the disk is full: .*: .*No space left"):
        triton_tree.prepare(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_python_without_its_library_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ldd = tmp_path / "ldd"
    ldd.write_text("#!/bin/sh\necho 'libpython3.11.so.1.0 => not found'\n", encoding="utf-8")
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: str(tmp_path / "lib"))
    with pytest.raises(KnownError, match=r"libpython3\.\d+\.so\.1\.0 was not found") as caught:
        triton_tree.prepare(tmp_path / "cache")
    assert "apt-get install libpython3." in caught.value.hint
    library = tmp_path / "lib" / f"libpython3.{sys.version_info[1]}.so.1.0"
    library.parent.mkdir()
    library.touch()
    assert triton_tree.prepare(tmp_path / "cache").library_path.endswith(f"{os.pathsep}{tmp_path / 'lib'}")


def test_the_launcher_refuses_what_it_does_not_know() -> None:
    with pytest.raises(SystemExit, match="usage"):
        triton_launch.main(["--prefix", "x", "--", "true"])


def test_a_refusal_is_told_from_an_absence(live_stack: Endpoints) -> None:
    present = Triton(live_stack.triton_grpc)
    with pytest.raises(KnownError, match="Triton refused the configuration") as caught:
        present.load("no-such-model", '{"name": "no-such-model", "backend": "python"}')
    assert not isinstance(caught.value, TritonUnavailableError)
    present.close()
    absent = Triton("127.0.0.1:1")
    for call in (lambda: absent.load("m", "{}"), lambda: absent.reload("m", "{}"), lambda: absent.effective("m")):
        with pytest.raises(TritonUnavailableError):
            call()
    absent.close()
