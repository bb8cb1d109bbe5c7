"""The bundled encoder rebuilt in INT8 by the real library, measured on the FAQ's held-out questions."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra [stack]")

from latencydoctor.errors import KnownError
from latencydoctor.stack import int8_build, prepare
from latencydoctor.stack.encoder import corpus, encodings, onnx_model
from latencydoctor.stack.encoder.onnx_model import OnnxEncoder
from latencydoctor.stack.quantise import build, engine, recipes, shelf
from latencydoctor.stack.quantise.recipes import FOR_CPU
from latencydoctor.targets.model_builds import BuildShelf, read_build

pytestmark = [pytest.mark.stack, pytest.mark.slow]

DYNAMIC, STATIC = FOR_CPU[0], FOR_CPU[1]


@pytest.fixture(scope="module")
def subject() -> build.Subject:
    model = onnx_model.model_path()
    known = encodings.prepare(corpus.faq_corpus(), model, prepare.user_cache())
    return build.subject(model, encodings.load(known))


@pytest.fixture(scope="module")
def built(subject: build.Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    build.build(subject, cache, lambda _line: None, (DYNAMIC,))
    return int8_build.location(subject.model, cache)


def test_calibration_and_measurement_share_no_question(subject: build.Subject) -> None:
    calibrated = {row.tobytes() for row in subject.calibration.ids}
    asked = [row.tobytes() for row in subject.held_out.ids]
    assert len(asked) >= 1000
    assert not calibrated & set(asked)


def test_build_is_small_accurate_and_told(built: Path) -> None:
    found = read_build(built)
    assert found.size_ratio >= 3.5
    assert found.drop_upper_ratio < 0.01
    assert found.questions >= 1000
    assert {name for name, _, _ in found.files} == {"model.py", "encoder.onnx", "encodings.npz", "build.json"}
    assert BuildShelf(lambda: built).find() == found
    assert [path.name for path in built.parent.iterdir()] == [built.name]


def test_index_of_a_build_is_the_fp32_one_and_its_questions_its_own(subject: build.Subject, built: Path) -> None:
    own = encodings.load(built / "encodings.npz")
    assert np.array_equal(own.index_vectors, subject.encodings.index_vectors)
    row = own.known_ids[5:6]
    found = OnnxEncoder(built / "encoder.onnx")(row, (row != 0).astype(np.int64))
    assert np.allclose(own.known_vectors[5:6], found, atol=1e-6)
    assert not np.allclose(own.known_vectors, subject.encodings.known_vectors, atol=1e-6)


def test_preparing_the_model_changes_no_answer(subject: build.Subject, tmp_path: Path) -> None:
    recipes.prepare(subject.model, tmp_path / "prepared.onnx")
    rows, masks = subject.held_out.ids[:32], subject.held_out.mask[:32]
    before, after = OnnxEncoder(subject.model)(rows, masks), OnnxEncoder(tmp_path / "prepared.onnx")(rows, masks)
    assert np.allclose(before, after, atol=1e-4)


def test_a_bad_calibration_is_refused_and_leaves_nothing(subject: build.Subject, tmp_path: Path) -> None:
    """Calibrated on noise of single tokens: the ranges do not hold what questions bring."""
    noise = np.zeros_like(subject.calibration.ids[:64])
    noise[:, 0] = np.random.default_rng(1).integers(1000, 30_000, len(noise))
    bad = dataclasses.replace(subject.calibration, ids=noise, mask=(noise != 0).astype(np.int64))
    with pytest.raises(KnownError, match="no INT8 build passes"):
        build.build(dataclasses.replace(subject, calibration=bad), tmp_path, lambda _line: None, (STATIC,))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("build.json", "{"),
        ("build.json", "[]"),
        ("build.json", json.dumps({"schema": 99})),
        ("build.json", json.dumps({"schema": 1, "precision": 8})),
    ],
)
def test_a_damaged_sheet_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(KnownError, match="is damaged"):
        read_build(tmp_path)


def test_a_missing_build_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(KnownError) as told:
        BuildShelf(lambda: tmp_path / "none").find()
    assert "latencydoctor quantise" in told.value.hint


def test_a_link_in_a_build_is_refused(tmp_path: Path, built: Path) -> None:
    for path in built.iterdir():
        os.link(path, tmp_path / path.name)
    (tmp_path / "extra").symlink_to("/etc/hostname")
    with pytest.raises(KnownError, match="no plain file"):
        read_build(tmp_path)


def with_tensorrt() -> str:
    """An interpreter with TensorRT, usually in an environment of its own; "" where there is none."""
    prepared = Path(__file__).resolve().parents[2] / ".cache" / "tensorrt" / "bin" / "python"
    return os.environ.get("LATENCYDOCTOR_TENSORRT_PYTHON") or (
        str(prepared) if (prepared.parents[1] / "set-up.stamp").exists() else sys.executable if engine.runtime() else ""
    )


TENSORRT = with_tensorrt()


@pytest.mark.skipif(not TENSORRT, reason="no TensorRT here; `make setup-tests` installs it where its wheels run")
def test_tensorrt_builds_an_engine_out_of_explicit_qdq(
    subject: build.Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = encodings.location(corpus.faq_corpus(), subject.model, prepare.user_cache())
    (tmp_path / folder.name).symlink_to(folder)
    monkeypatch.setattr(prepare, "user_cache", lambda: tmp_path)
    told = shelf.make_engine(lambda _line: None, "8.9", TENSORRT)
    assert Path(str(told["path"])).stat().st_size == told["bytes"]
    assert told["int8_layers"]
    assert told["workspace_bytes"] == 1 << 30
    with pytest.raises(KnownError, match=r"builds nothing for compute capability 1\.0"):
        shelf.make_engine(lambda _line: None, "1.0", TENSORRT)


def test_without_tensorrt_the_engine_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "RUNTIMES", ("no_such_runtime",))
    with pytest.raises(engine.NoEngineError, match="can be imported"):
        engine.build_engine(tmp_path / "a.onnx", tmp_path / "b.engine", "")
