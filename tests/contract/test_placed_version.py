"""A version put into a model repository of real files, and taken out again; nothing else in it is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.builds import ModelBuild
from latencydoctor.targets.placed_version import BUILD_FILES, TEMPORARY, PlacedVersion, asks_int8
from latencydoctor.targets.state_folder import StateFolder
from tests.unit.model_builds import build, build_in

MODEL = "faq-encoder"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    folder.mkdir()
    for name in BUILD_FILES:
        (folder / name).write_text(name * 100, encoding="utf-8")
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / "models" / MODEL
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text("one", encoding="utf-8")
    return folder


def version(tmp_path: Path, found: ModelBuild) -> PlacedVersion:
    return PlacedVersion(StateFolder(tmp_path / "state"), lambda: found)


def test_in_and_out_leaves_the_repository_as_it_was(tmp_path: Path, models: Path, shelf: Path) -> None:
    placed = version(tmp_path, build_in(shelf))
    before = placed.digest(MODEL)
    placed.ensure(MODEL)
    assert {path.name: path.read_text() for path in (models / "2").iterdir()} == {n: n * 100 for n in BUILD_FILES}
    assert placed.digest(MODEL) != before
    (models / "2" / "__pycache__").mkdir()
    (models / "2" / "__pycache__" / "model.pyc").write_text("derived")
    with_derived = placed.digest(MODEL)
    placed.ensure(MODEL)
    assert placed.digest(MODEL) == with_derived
    placed.withdraw(MODEL)
    assert placed.digest(MODEL) == before
    assert [path.name for path in models.iterdir()] == ["1"]
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["models"]


def test_the_digest_sees_each_byte_and_each_name(tmp_path: Path, models: Path, shelf: Path) -> None:
    placed = version(tmp_path, build_in(shelf))
    seen = {placed.digest(MODEL)}
    (models / "1" / "model.py").write_text("One")
    seen.add(placed.digest(MODEL))
    (models / "1" / "model.py").rename(models / "1" / "other.py")
    seen.add(placed.digest(MODEL))
    (models / "3").mkdir()
    (models / "3" / "other.py").write_text("One")
    seen.add(placed.digest(MODEL))
    assert len(seen) == 4


def test_somebody_elses_version_stays(tmp_path: Path, models: Path, shelf: Path) -> None:
    placed = version(tmp_path, build_in(shelf))
    (models / "2").mkdir()
    (models / "2" / "model.onnx").write_text("theirs")
    placed.ensure(MODEL)
    placed.withdraw(MODEL)
    assert (models / "2" / "model.onnx").read_text() == "theirs"


def test_what_a_killed_run_left_is_tidied(tmp_path: Path, models: Path, shelf: Path) -> None:
    placed = version(tmp_path, build_in(shelf))
    left = tmp_path / "state" / TEMPORARY
    (left / "__pycache__").mkdir(parents=True)
    (left / "encoder.onnx").write_text("half")
    placed.tidy()
    assert not left.exists()
    placed.tidy()


def test_a_lossy_build_is_not_placed(tmp_path: Path, models: Path) -> None:
    with pytest.raises(Refused, match="may lose"):
        version(tmp_path, build(drop_upper_ratio=0.01)).ensure(MODEL)
    assert [path.name for path in models.iterdir()] == ["1"]


def test_a_build_that_changed_on_its_shelf_is_not_placed(tmp_path: Path, models: Path, shelf: Path) -> None:
    found = build_in(shelf)
    (shelf / "encoder.onnx").write_text("another")
    with pytest.raises(KnownError, match="changed while it was read"):
        version(tmp_path, found).ensure(MODEL)
    assert [path.name for path in models.iterdir()] == ["1"]


def test_a_build_that_could_not_be_taken_out_again_is_not_placed(tmp_path: Path, models: Path, shelf: Path) -> None:
    """What is taken out is told by its files: with one more it would stay for good."""
    (shelf / "notes.txt").write_text("mine")
    with pytest.raises(KnownError, match=r"holds other files than a build has: notes\.txt"):
        version(tmp_path, build_in(shelf)).ensure(MODEL)
    (shelf / "notes.txt").unlink()
    (shelf / "model.py").unlink()
    with pytest.raises(KnownError, match=r"holds other files than a build has: model\.py"):
        version(tmp_path, build_in(shelf)).ensure(MODEL)
    assert [path.name for path in models.iterdir()] == ["1"]


def test_links_are_not_followed(tmp_path: Path, models: Path, shelf: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "1").mkdir(parents=True)
    models.rename(tmp_path / "gone")
    models.symlink_to(elsewhere)
    with pytest.raises(KnownError):
        version(tmp_path, build_in(shelf)).ensure(MODEL)
    assert [path.name for path in elsewhere.iterdir()] == ["1"]


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, False),
        ({"inference.precision": "fp32"}, False),
        ({"inference.precision": "int8"}, True),
        ({"inference.precision": "fp32", "canary.precision": "int8"}, True),
    ],
)
def test_which_settings_need_the_version(settings: dict[str, str], needed: bool) -> None:
    assert asks_int8(settings) is needed
