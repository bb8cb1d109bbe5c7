"""A version in INT8 beside the FP32 one on a real Triton: tried by some sessions, then by all, then taken back."""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="needs the extra [stack]")

from latencydoctor.errors import KnownError
from latencydoctor.stack import int8_build, prepare
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.encoder import corpus, encodings, onnx_model
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.model_folder import write_model
from latencydoctor.stack.probes import ask_controller
from latencydoctor.stack.quantise import build
from latencydoctor.stack.quantise.recipes import FOR_CPU
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings

pytestmark = [pytest.mark.stack, pytest.mark.slow]

QUICK = BatchingSettings(preferred_batch_size=0, max_batch_size=8, timeout_micros=0)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = onnx_model.model_path()
    known = encodings.prepare(corpus.faq_corpus(), model, prepare.user_cache())
    cache = tmp_path_factory.mktemp("cache")
    shutil.copyfile(known, encodings.location(corpus.faq_corpus(), model, cache))
    subject = build.subject(model, encodings.load(known))
    build.build(subject, cache, lambda _line: None, FOR_CPU[:1])
    return int8_build.location(model, cache)


@pytest.fixture
def placed(live_layout: Layout, live_stack: Endpoints, built: Path) -> Iterator[Settings]:
    before = stack_settings.load(live_layout.settings)
    folder = live_layout.models / before.inference.model / "2"
    shutil.copytree(built, folder)
    yield replace(before, inference=replace(before.inference, batching=QUICK))
    put(live_layout, live_stack, before)
    shutil.rmtree(folder)


def put(layout: Layout, endpoints: Endpoints, settings: Settings) -> None:
    generation = stack_settings.load(layout.settings).generation + 1
    stack_settings.save(layout.settings, replace(settings, generation=generation))
    end_s = time.monotonic() + 20
    while (found := ask_controller(endpoints)) is None or found.generation != generation:
        assert time.monotonic() < end_s, found
        time.sleep(0.05)
    while ask(endpoints, "warm", "s")["generation"] != generation:
        time.sleep(0.05)
    time.sleep(0.5)  # so that Triton has counted these


def ask(endpoints: Endpoints, question: str, session: str) -> dict[str, object]:
    body = json.dumps({"question": question, "session": session}).encode()
    with urllib.request.urlopen(f"{endpoints.gateway}/v1/answer", body, timeout=10) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


def executed(endpoints: Endpoints) -> dict[str, int]:
    """Inferences by version, as Triton counts them."""
    with urllib.request.urlopen(endpoints.triton_metrics, timeout=10) as page:
        lines = page.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("nv_inference_count{")]
    return {line.partition('version="')[2][0]: int(line.rpartition(" ")[2]) for line in counted}


def counted(endpoints: Endpoints, before: dict[str, int], more: dict[str, int]) -> None:
    """So many inferences more than before; Triton counts one a moment after its answer has left."""
    end_s = time.monotonic() + 3
    found: dict[str, int] = {}
    while found != more and time.monotonic() < end_s:
        after = executed(endpoints)
        found = {version: after.get(version, 0) - before.get(version, 0) for version in more}
        time.sleep(0.05)
    assert found == more


def test_some_sessions_try_int8_then_all_then_none(
    placed: Settings, live_layout: Layout, live_stack: Endpoints
) -> None:
    put(live_layout, live_stack, replace(placed, canary=CanarySettings(precision="int8", share_ratio=0.5)))
    before = executed(live_stack)
    replies = [ask(live_stack, f"how do I cancel my order {number}?", f"s{number}") for number in range(20)]
    assert {reply["answer_id"] for reply in replies} == {"orders-cancel"}
    arms = [reply["arm"] for reply in replies if not reply["cached"]]
    assert {"stable", "canary"} == set(arms)
    counted(live_stack, before, {"1": arms.count("stable"), "2": arms.count("canary")})

    put(live_layout, live_stack, replace(placed, inference=replace(placed.inference, precision="int8")))
    before = executed(live_stack)
    assert ask(live_stack, "how long does a refund take?", "s1")["arm"] == "stable"
    counted(live_stack, before, {"1": 0, "2": 1})

    put(live_layout, live_stack, placed)
    before = executed(live_stack)
    ask(live_stack, "which payment cards do you take?", "s1")
    counted(live_stack, before, {"1": 1, "2": 0})


def test_a_stack_that_shall_serve_int8_has_its_version_from_the_build(built: Path, tmp_path: Path) -> None:
    settings = Settings(inference=InferenceSettings(precision="int8"))
    write_model(tmp_path / "m", "text", settings.versions, onnx_model.model_path(), built.parent)
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["1", "2", "config.pbtxt"]
    assert (tmp_path / "m/2/encoder.onnx").read_bytes() == (built / "encoder.onnx").read_bytes()


def test_without_a_build_such_a_stack_is_refused_and_the_folder_left(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/kept").write_text("as it was")
    with pytest.raises(KnownError, match="has not been rebuilt") as told:
        write_model(tmp_path / "m", "text", ("2",), onnx_model.model_path(), tmp_path)
    assert "latencydoctor quantise" in told.value.hint
    assert (tmp_path / "m/kept").read_text() == "as it was"
