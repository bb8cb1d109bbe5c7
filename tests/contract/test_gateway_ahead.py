"""Answers written ahead: a real gateway, a real Triton and a real Valkey, spoken to as the doctor speaks to them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import valkey

from benchmarks.gateway_stack import SETTINGS, Bench, bench, gateway
from latencydoctor.errors import KnownError
from latencydoctor.model.popular import Popularity, WarmBatch
from latencydoctor.stack import host, settings
from latencydoctor.stack.gateway.popular import id_of
from latencydoctor.stack.settings import CacheSettings
from latencydoctor.targets.answer_cache import BundledAnswerCache
from latencydoctor.targets.state_folder import StateFolder
from tests.contract.gateway_client import admin, ask, eventually, metrics

pytestmark = pytest.mark.stack

SECRET = "my card is 4111-1111 and my token is hunter2"
WRITES = ("cmdstat_set", "cmdstat_del", "cmdstat_unlink", "cmdstat_expire", "cmdstat_evalsha", "cmdstat_flushall")


@pytest.fixture(scope="module")
def parts() -> Iterator[Bench]:
    """Triton and Valkey for the whole module."""
    try:
        host.refuse_unsupported(host.this_host())
    except KnownError as error:
        pytest.skip(str(error))
    with bench() as found:
        yield found


@pytest.fixture
def store(parts: Bench) -> Iterator[valkey.Valkey]:
    with valkey.Valkey(unix_socket_path=parts.endpoints.valkey_socket, decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.fixture
def port(parts: Bench, store: valkey.Valkey) -> Iterator[int]:
    """A running gateway with an empty cache, and the first settings after it."""
    with gateway(parts):
        yield parts.endpoints.ports().gateway
    settings.save(parts.layout.settings, SETTINGS)


@pytest.fixture
def cache(parts: Bench, port: int) -> BundledAnswerCache:
    return BundledAnswerCache(StateFolder(parts.layout.state))


def question(number: int) -> str:
    return f"how do i return order {number}?"


def key(number: int) -> str:
    return f"faq:fp32-1:{question(number)}"


def asked(port: int, store: valkey.Valkey, count: int, times: int = 2) -> None:
    """So many questions, each so many times, and then an empty cache."""
    with ThreadPoolExecutor(8) as many:
        for _ in range(times):
            list(many.map(lambda number: ask(port, question(number)), range(count)))
    eventually(lambda: size(store) >= count, "all answers are stored")
    time.sleep(0.1)  # Answers are stored a moment after they are given, also a second time.
    store.flushall()


def batch(run: str, *numbers: int, ttl_s: int = 300, compute: int = 0, limit_ms: float = 50.0) -> WarmBatch:
    return WarmBatch(run, tuple((id_of(key(number)), ttl_s + number) for number in numbers), compute, limit_ms)


def value(store: valkey.Valkey, number: int) -> str:
    found = store.get(key(number))
    assert isinstance(found, str)
    return found


def left_s(store: valkey.Valkey, number: int) -> int:
    found = store.ttl(key(number))
    assert isinstance(found, int)
    return found


def size(store: valkey.Valkey) -> int:
    found = store.dbsize()
    assert isinstance(found, int)
    return found


def writes(store: valkey.Valkey) -> dict[str, int]:
    """How often each command that writes was called, by Valkey's own count."""
    stats = store.info("commandstats")
    assert isinstance(stats, dict)
    return {name: stats[name]["calls"] for name in WRITES if name in stats}


def test_what_is_asked_most_is_told_by_digest_and_nothing_of_a_question_is(
    parts: Bench, port: int, store: valkey.Valkey, cache: BundledAnswerCache
) -> None:
    for _ in range(3):
        ask(port, SECRET)
    ask(port, question(1))
    ask(port, question(1))
    ask(port, question(2))
    eventually(lambda: size(store) == 3, "all answers are stored")
    counted, before = writes(store), size(store)
    found = cache.popularity()
    assert isinstance(found, Popularity)
    assert [(one.id, one.asked, one.known) for one in found.questions] == [
        (id_of(f"faq:fp32-1:{SECRET}"), 3, True),
        (id_of(key(1)), 2, True),
    ]
    assert (found.asked, found.distinct, found.once) == (6, 3, 1)
    assert 3 <= found.missed <= 6, "an answer is stored a moment after it was given"
    assert all(one.left_s is not None and 250 < one.left_s <= 300 for one in found.questions)
    assert dict(found.settings) == {
        "cache.enabled": "true",
        "cache.ttl_seconds": "300",
        "cache.max_entries": "10000",
        "cache.single_flight": "true",
    }
    raw = admin(parts.endpoints.admin_socket, "GET", "/popular?limit=5000").body.decode()
    assert "hunter2" not in raw
    assert "order" not in raw
    assert (writes(store), size(store)) == (counted, before), "looking writes nothing"


def test_missing_answers_are_written_with_their_own_time_to_live_and_what_is_there_is_left_alone(
    port: int, store: valkey.Valkey, cache: BundledAnswerCache
) -> None:
    asked(port, store, 5)
    store.set(key(3), b'{"answer_index": 0, "score": 0.1}', ex=77)
    inferences = metrics(port)['gateway_stage_duration_seconds_count{stage="inference"}']
    done = cache.warm(batch("run-1", 0, 1, 2, 3, 99))
    assert set(done.written) == {id_of(key(number)) for number in (0, 1, 2)}
    assert done.present == (id_of(key(3)),)
    assert done.gone == (id_of(key(99)),)
    assert [300 + number - left_s(store, number) in (0, 1) for number in (0, 1, 2)] == [True] * 3
    assert json.loads(value(store, 1))["run"] == "run-1"
    assert left_s(store, 3) <= 77
    assert metrics(port)['gateway_stage_duration_seconds_count{stage="inference"}'] == inferences, "all were known"
    assert ask(port, question(1)).json["cached"] is True
    assert set(cache.tagged("run-1")) == set(done.written)


def test_a_removal_takes_only_what_is_still_the_runs_own_and_closes_the_run(
    port: int, store: valkey.Valkey, cache: BundledAnswerCache
) -> None:
    asked(port, store, 4)
    cache.warm(batch("run-1", 0, 1))
    cache.warm(batch("run-2", 2))
    ask(port, question(3))
    store.set(key(0), b'{"answer_index": 0, "score": 0.1}', ex=60)  # the gateway's own answer, stored meanwhile
    eventually(lambda: size(store) == 4, "the answer is stored")
    assert cache.drop("run-1") == 1
    assert cache.tagged("run-1") == ()
    assert sorted(store.scan_iter()) == [key(0), key(2), key(3)]
    assert cache.drop("run-1") == 0
    with pytest.raises(KnownError, match="were removed"):
        cache.warm(batch("run-1", 1))
    assert cache.tagged("run-2") == (id_of(key(2)),)


def test_an_order_that_arrives_late_writes_nothing_after_its_removal(
    port: int, store: valkey.Valkey, cache: BundledAnswerCache
) -> None:
    """The doctor is killed while the gateway works on its order; the recovery's removal comes in between."""
    asked(port, store, 60)
    with ThreadPoolExecutor(12) as many:
        orders = [many.submit(cache.warm, batch("run-1", *range(at, at + 10))) for at in range(0, 60, 10)]
        removal = many.submit(cache.drop, "run-1")
        removal.result()
        refusals = [str(error) for order in orders if (error := order.exception()) is not None]
    assert all("were removed" in refusal for refusal in refusals)
    assert cache.tagged("run-1") == ()
    assert size(store) == 0


def test_the_settings_file_is_taken_up_before_an_order_is_worked_on(
    parts: Bench, port: int, store: valkey.Valkey, cache: BundledAnswerCache
) -> None:
    asked(port, store, 1)
    settings.save(parts.layout.settings, replace(SETTINGS, generation=2, cache=CacheSettings(enabled=False)))
    with pytest.raises(KnownError, match="the cache is off"):
        cache.warm(batch("run-1", 0))
    assert size(store) == 0


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/popular?limit=0", None),
        ("GET", "/popular?limit=x", None),
        ("GET", "/warm", None),
        ("DELETE", "/warm?run=", None),
        ("POST", "/warm", []),
        ("POST", "/warm", {"run": "r", "entries": [], "compute": 0, "wait_limit_ms": 1}),
        ("POST", "/warm", {"run": "r", "entries": {"a": 0}, "compute": 0, "wait_limit_ms": 1}),
        ("POST", "/warm", {"run": "r", "entries": {}, "compute": 101, "wait_limit_ms": 1}),
        ("POST", "/warm", {"run": "r", "entries": {}, "compute": 0, "wait_limit_ms": True}),
        ("POST", "/warm", {"run": "", "entries": {}, "compute": 0, "wait_limit_ms": 1}),
    ],
)
def test_a_wrong_request_is_answered_with_what_is_wrong(
    parts: Bench, port: int, method: str, path: str, body: object
) -> None:
    reply = admin(parts.endpoints.admin_socket, method, path, body)
    assert (reply.status, bool(reply.json["error"])) == (400, True)


def test_a_cache_that_does_not_answer_is_a_known_failure(tmp_path: Path) -> None:
    with pytest.raises(KnownError):
        BundledAnswerCache(StateFolder(tmp_path)).popularity()


def test_warming_holds_up_no_live_question(port: int, store: valkey.Valkey, cache: BundledAnswerCache) -> None:
    asked(port, store, 400)
    with ThreadPoolExecutor(1) as many:
        order = many.submit(lambda: [cache.warm(batch("run-1", *range(at, at + 200))) for at in (0, 200)])
        slowest_ms = 0.0
        while not order.done():
            before_s = time.perf_counter()
            ask(port, question(1))
            slowest_ms = max(slowest_ms, (time.perf_counter() - before_s) * 1000)
    assert len(cache.tagged("run-1")) >= 399
    assert slowest_ms < 250
