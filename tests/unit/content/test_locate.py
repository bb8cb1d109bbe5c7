"""Where content is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.locate import locate, yaml_files
from latencydoctor.errors import ContentError


def make_package(root: Path) -> Path:
    package = root / "src" / "latencydoctor"
    package.mkdir(parents=True)
    return package


def test_a_named_folder_comes_first(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    root = locate(tmp_path, make_package(tmp_path))
    assert (root.origin, root.path) == ("named", tmp_path)
    assert root.shown(tmp_path / "rules" / "a.yaml") == str(tmp_path / "rules" / "a.yaml")


def test_a_named_folder_without_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="no folder rules/"):
        locate(tmp_path)


def test_a_checkout_is_preferred_to_the_bundled_copy(tmp_path: Path) -> None:
    package = make_package(tmp_path)
    (package / "_bundled" / "rules").mkdir(parents=True)
    (tmp_path / "rules").mkdir()
    assert locate(None, package).origin == "bundled"
    (tmp_path / "pyproject.toml").touch()
    root = locate(None, package)
    assert (root.origin, root.path) == ("checkout", tmp_path)
    assert root.shown(root.rules / "logs" / "a.yaml") == "rules/logs/a.yaml"
    assert root.playbooks == tmp_path / "playbooks"


def test_no_content_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="missing"):
        locate(None, make_package(tmp_path))


def test_yaml_files_come_in_a_fixed_order_without_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("z.yaml", "b/a.yaml", "_names.yaml", ".swp.yaml", "note.txt"):
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in yaml_files(tmp_path)] == ["b/a.yaml", "z.yaml"]
