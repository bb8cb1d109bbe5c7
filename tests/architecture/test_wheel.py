"""The wheel that ships, built from the sdist, holds the package, the rules and the playbooks, and nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scripts.check_wheel import WheelError, build, compare, tree_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def test_wheel_from_the_sdist_has_what_git_tracks(wheel: Path) -> None:
    compare(wheel, tree_files())


def test_wheel_without_a_playbook_is_refused(wheel: Path, tmp_path: Path) -> None:
    lame = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(lame, "w") as copy:
        for name in whole.namelist():
            if not name.startswith("latencydoctor/_bundled/playbooks/"):
                copy.writestr(name, whole.read(name))

    with pytest.raises(WheelError, match="latency-spike"):
        compare(lame, tree_files())


def test_wheel_carries_its_licence_and_the_typing_marker(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert any(name.endswith("/licenses/NOTICE") for name in names)
    assert "latencydoctor/py.typed" in names
