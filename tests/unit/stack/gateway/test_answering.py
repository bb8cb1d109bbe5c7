import asyncio
from dataclasses import replace

import pytest

from latencydoctor.stack.gateway.inference import InferenceError, Outcome
from latencydoctor.stack.gateway.refusals import RequestError
from latencydoctor.stack.settings import BatchingSettings, CacheSettings, InferenceSettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings
from tests.unit.stack.gateway.parts import Bench


def test_a_new_question_goes_to_the_model_and_is_kept_for_the_next() -> None:
    async def scene() -> None:
        bench = Bench()
        first = (await bench.ask("Where is my order 7?")).json
        await bench.cache.settle()
        second = (await bench.ask("  where is MY order 7?")).json
        assert len(bench.model.calls) == 1
        assert bench.store.values == {"faq:fp32-1:where is my order 7?": b'{"answer_index": 1, "score": 0.75}'}
        for answer, cached in ((first, False), (second, True)):
            assert (answer["answer_id"], answer["answer"], answer["score"]) == ("orders-late", "We are sorry.", 0.75)
            assert (answer["cached"], answer["generation"], answer["arm"]) == (cached, 1, "stable")
            assert answer["accelerator"] == "sim:small"
        assert set(first["stages_ms"]) == {"cache", "preprocess", "queue", "inference", "total"}
        assert set(second["stages_ms"]) == {"cache", "preprocess", "inference", "total"}
        assert "gateway_cache_hits_total 1" in bench.page
        assert "gateway_cache_misses_total 1" in bench.page

    asyncio.run(scene())


def test_the_same_question_at_the_same_time_makes_one_inference() -> None:
    async def scene() -> None:
        bench = Bench()
        replies = await asyncio.gather(*(bench.ask("where is my order") for _ in range(20)))
        assert [reply.status for reply in replies] == [200] * 20
        assert len(bench.model.calls) == 1
        assert "gateway_single_flight_joined_total 19" in bench.page

    asyncio.run(scene())


def test_a_vip_does_not_wait_in_the_queue_of_the_standard_level() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.settings = replace(bench.settings, inference=InferenceSettings(priority_levels=True))
        await asyncio.gather(bench.ask("a b"), bench.ask("a b", priority="vip"))
        assert sorted(level for _, level, _ in bench.model.calls) == [1, 2]

    asyncio.run(scene())


def test_without_a_cache_every_question_is_a_miss_and_nothing_is_stored() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.no_cache()
        await bench.ask("a b")
        await bench.ask("a b")
        await bench.cache.settle()
        assert len(bench.model.calls) == 2
        assert not bench.store.values
        assert "gateway_cache_misses_total 2" in bench.page

    asyncio.run(scene())


def test_a_damaged_entry_is_a_miss_and_is_replaced() -> None:
    async def scene() -> None:
        bench = Bench()
        for value in (b"\xff", b'{"answer_index": 99, "score": 0.5}'):
            bench.store.values["faq:fp32-1:a b"] = value
            assert (await bench.ask("a b")).json["cached"] is False
            await bench.cache.settle()
        assert bench.store.values["faq:fp32-1:a b"] == b'{"answer_index": 1, "score": 0.75}'

    asyncio.run(scene())


def test_a_session_of_the_canary_asks_its_version_and_has_its_own_entries() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.settings = Settings(canary=CanarySettings(precision="int8", share_ratio=1.0))
        reply = await bench.ask("a b", session="s")
        await bench.cache.settle()
        assert reply.json["arm"] == "canary"
        assert bench.model.calls[0][0] == "2"
        assert list(bench.store.values) == ["faq:int8-2:a b"]
        assert 'gateway_request_duration_seconds_count{arm="canary",priority="standard"} 1' in bench.page

    asyncio.run(scene())


def test_an_answer_of_the_model_before_is_not_kept_as_one_of_the_new() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.settings = Settings(inference=InferenceSettings(precision="int8"))
        for version, kept in (("1", False), ("2", True)):
            bench.model.outcome = Outcome(1, 0.75, version)
            assert (await bench.ask("a b")).status == 200
            await bench.cache.settle()
            assert ("faq:int8-2:a b" in bench.store.values) is kept

    asyncio.run(scene())


def test_while_a_version_is_not_loaded_the_server_decides_which_answers() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.settings = Settings(canary=CanarySettings(precision="int8", share_ratio=0.5))
        bench.model.error = InferenceError("model_load_error", 503, "unknown model version")
        reply = await bench.ask("a b")
        assert reply.status == 503
        assert [version for version, _, _ in bench.model.calls][1:] == [""]
        assert bench.model.calls[0][0] in ("1", "2")

    asyncio.run(scene())


def test_a_question_counted_for_an_arm_is_answered_by_it_although_the_other_is_asking_the_same() -> None:
    async def scene() -> None:
        bench = Bench()
        two = InferenceSettings(replicas=2)
        bench.settings = Settings(inference=two, canary=CanarySettings(BatchingSettings()))
        arms = {bench.effective().canary.arm(name): name for name in "abcdefgh"}
        replies = await asyncio.gather(*(bench.ask("a b", session=name) for name in arms.values()))
        assert {reply.json["arm"] for reply in replies} == {"stable", "canary"}
        assert sorted(bench.endpoints) == ["one:1", "two:2"]

    asyncio.run(scene())


def test_a_question_without_a_word_is_a_preprocessing_failure() -> None:
    async def scene() -> None:
        bench = Bench()
        reply = await bench.ask("?!")
        assert reply.status == 400
        assert [line["event"] for line in bench.logged] == ["data_preprocess_fail"]

    asyncio.run(scene())


def test_what_the_pattern_matches_never_reaches_the_model() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.redact(r"\S+@\S+ ")
        assert (await bench.ask("mail me@example.org about my order")).status == 200
        assert sum(bench.model.tokens[0].mask) == 5, "mail, my, order (*about is no word), and the two marks"

    asyncio.run(scene())


def test_a_redaction_that_breaks_down_is_a_failure_and_no_answer() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.redact("broken")
        assert (await bench.ask("a b")).status == 500
        assert [line["event"] for line in bench.logged] == ["data_preprocess_fail"]
        assert not bench.model.calls

    asyncio.run(scene())


def test_time_lost_in_preprocessing_is_counted_there_also_when_the_deadline_ends_it() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.redact("x")
        bench.deadline(30)
        bench.redaction = asyncio.Event()
        assert (await bench.ask("a b")).status == 504
        await asyncio.sleep(0.01)
        assert not bench.model.calls
        assert 'gateway_stage_duration_seconds_count{stage="preprocess"} 1' in bench.page
        assert 'gateway_stage_duration_seconds_bucket{stage="preprocess",le="0.01"} 0' in bench.page

    asyncio.run(scene())


def test_failures_of_the_model_have_their_status_and_their_event() -> None:
    async def scene() -> None:
        cases = (
            (InferenceError("gpu_oom", 503, "out of memory"), 503, "CRITICAL"),
            (InferenceError("model_load_error", 503, "not ready"), 503, "ERROR"),
            (InferenceError("inference_failed", 500, "broken"), 500, "ERROR"),
            (InferenceError("batch_size_mismatch", 500, "batch", limit=8), 500, "WARNING"),
        )
        for error, status, level in cases:
            bench = Bench()
            bench.model.error = error
            replies = await asyncio.gather(bench.ask("a b"), bench.ask("a b"))
            assert [reply.status for reply in replies] == [status] * 2
            assert (b"retry-after" in replies[0].headers) == (status == 503)
            assert [(line["event"], line["level"], line["count"]) for line in bench.logged] == [(error.event, level, 1)]
            if error.limit:
                assert (bench.logged[0]["requested"], bench.logged[0]["max_batch_size"]) == (1, 8)
            assert not bench.store.values

    asyncio.run(scene())


def test_an_answer_that_is_not_in_the_faq_is_a_failure() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.model.outcome = Outcome(99, 0.5)
        assert (await bench.ask("a b")).status == 500

    asyncio.run(scene())


def test_a_flight_that_another_deadline_ended_is_flown_again_for_those_with_time_left() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.model.gate = asyncio.Event()
        first = asyncio.create_task(bench.ask("a b"))
        for _ in range(6):
            await asyncio.sleep(0)
        second = asyncio.create_task(bench.ask("a b"))
        for _ in range(6):
            await asyncio.sleep(0)
        first.cancel()
        bench.model.error = InferenceError("inference_timeout", 504, "late")
        bench.model.gate.set()
        for _ in range(3):
            await asyncio.sleep(0)
        bench.model.error = None
        assert (await second).status == 200
        assert len(bench.model.calls) >= 2

    asyncio.run(scene())


def test_without_single_flight_each_question_is_an_inference_of_its_own() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.settings = replace(bench.settings, cache=CacheSettings(single_flight=False))
        await asyncio.gather(*(bench.ask("where is my order") for _ in range(5)))
        assert len(bench.model.calls) == 5
        assert "gateway_single_flight_joined_total 0" in bench.page

    asyncio.run(scene())


def test_hits_misses_and_answers_are_counted_by_question() -> None:
    async def scene() -> None:
        bench = Bench()
        await bench.ask("a b")
        await bench.cache.settle()
        await bench.ask("A B")
        ((question,),) = [bench.answerer.popular.ranking("faq:fp32-1:").repeated]
        assert (question.key, question.asked, question.missed) == ("faq:fp32-1:a b", 2, 1)
        assert question.value == b'{"answer_index": 1, "score": 0.75}'

    asyncio.run(scene())


def test_an_answer_computed_ahead_is_asked_at_the_lowest_level_and_not_stored() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.settings = replace(bench.settings, inference=InferenceSettings(priority_levels=True))
        effective = bench.effective()
        entry = await bench.answerer.compute("faq:fp32-1:a b", effective.routes["stable"], effective)
        assert (entry.answer_index, entry.score) == (1, 0.75)
        assert bench.model.calls[0][1] == 2
        assert not bench.store.values
        assert bench.answerer.waits_ms >= 0

    asyncio.run(scene())


def test_nothing_is_computed_ahead_while_the_model_is_exchanged() -> None:
    async def scene() -> None:
        bench = Bench()
        effective = bench.effective()
        bench.model.outcome = Outcome(1, 0.75, "2")
        with pytest.raises(RequestError, match="being exchanged"):
            await bench.answerer.compute("faq:fp32-1:a b", effective.routes["stable"], effective)
        with pytest.raises(RequestError, match="was exchanged"):
            await bench.answerer.compute("faq:int8-2:a b", effective.routes["stable"], effective)
        assert len(bench.model.calls) == 1, "a key of another version is not asked as if it were a question"

    asyncio.run(scene())
