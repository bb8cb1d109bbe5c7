"""The doctor's side of warming over a real socket: what it sends, and what strange answers become."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.model.popular import WarmBatch
from latencydoctor.targets.answer_cache import BundledAnswerCache
from latencydoctor.targets.state_folder import StateFolder
from tests.contract.test_target_edges import Answering, admin, answer

__all__ = ["admin", "answer"]

WARMED = {"written": ["a"], "present": [], "pending": ["b"], "gone": [], "waits_ms": 3}


@pytest.fixture
def cache(admin: str, tmp_path: Path) -> BundledAnswerCache:
    told = {"triton_grpc": "", "controller_metrics": "", "admin_socket": admin}
    (tmp_path / "endpoints.json").write_text(json.dumps(told))
    return BundledAnswerCache(StateFolder(tmp_path))


def test_a_batch_is_one_request_and_its_answer_a_record(cache: BundledAnswerCache, answer: type[Answering]) -> None:
    answer.body = json.dumps(WARMED).encode()
    done = cache.warm(WarmBatch("run-1", (("a", 290), ("b", 310)), 4, 50.0))
    assert (done.written, done.pending, done.waits_ms) == (("a",), ("b",), 3.0)
    ((head, body),) = answer.asked
    assert head == "POST /warm"
    sent = {"run": "run-1", "entries": {"a": 290, "b": 310}, "compute": 4, "wait_limit_ms": 50.0}
    assert json.loads(body) == sent


def test_a_runs_name_cannot_become_another_request(cache: BundledAnswerCache, answer: type[Answering]) -> None:
    answer.body = b'{"dropped": 2}'
    assert cache.drop("a&run=b /x") == 2
    assert answer.asked[0][0] == "DELETE /warm?run=a%26run%3Db%20%2Fx"


def test_a_refusal_is_told_in_the_gateways_words(cache: BundledAnswerCache, answer: type[Answering]) -> None:
    answer.status, answer.body = 503, b'{"error": "the cache is off", "hint": "x"}'
    with pytest.raises(KnownError, match="the gateway refuses: the cache is off"):
        cache.tagged("run-1")


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"ids": "abc"}',
        json.dumps({"questions": {}, "settings": {}}).encode(),
        json.dumps({"questions": [], "settings": {}, "window_s": "1"}).encode(),
        json.dumps({"questions": [], "settings": {}, "window_s": 1, "asked": "1"}).encode(),
    ],
)
def test_strange_answers(cache: BundledAnswerCache, answer: type[Answering], body: bytes) -> None:
    answer.body = body
    with pytest.raises(KnownError, match="something unknown"):
        cache.popularity()
    with pytest.raises(KnownError, match="something unknown"):
        cache.tagged("run-1")


def test_popularity_is_read(cache: BundledAnswerCache, answer: type[Answering]) -> None:
    questions = [
        {"id": "a", "asked": 5, "missed": 2, "known": True, "left_s": 12.5},
        {"id": "b", "asked": 2, "missed": 2, "known": False, "left_s": None},
    ]
    told = {"window_s": 60, "asked": 9, "missed": 6, "distinct": 4, "once": 2, "questions": questions}
    answer.body = json.dumps({**told, "settings": {"enabled": True, "ttl_seconds": 2}}).encode()
    found = cache.popularity()
    assert [(one.id, one.left_s, one.known) for one in found.questions] == [("a", 12.5, True), ("b", None, False)]
    assert found.settings == (("cache.enabled", "true"), ("cache.ttl_seconds", "2"))
    assert found.hit_ratio == pytest.approx(1 / 3)
