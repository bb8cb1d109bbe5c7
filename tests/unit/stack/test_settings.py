from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.errors import ContentError, ContentErrors
from latencydoctor.stack.settings import (
    BatchingSettings,
    CacheSettings,
    InferenceSettings,
    PreprocessingSettings,
    PrioritySettings,
    Settings,
    dump,
    parse,
    validate,
    with_values,
)

batchings = st.builds(
    BatchingSettings,
    enabled=st.booleans(),
    preferred_batch_size=st.integers(0, 16),
    max_batch_size=st.integers(16, 128),
    timeout_micros=st.integers(0, 1_000_000),
)
valid = st.builds(
    Settings,
    generation=st.integers(1, 10**9),
    inference=st.builds(
        InferenceSettings,
        deadline_ms=st.integers(10, 60_000),
        batching=batchings,
        priorities=st.builds(PrioritySettings, vip=st.integers(1, 2), standard=st.integers(1, 2)),
        priority_levels=st.booleans(),
    ),
    preprocessing=st.builds(PreprocessingSettings, redact_pattern=st.sampled_from(["", r"\S+@\S+", "'\"\\n# :"])),
    cache=st.builds(
        CacheSettings,
        enabled=st.booleans(),
        ttl_seconds=st.integers(1, 1000),
        single_flight=st.booleans(),
        timeout_ms=st.integers(1, 60_000),
    ),
    accelerator=st.sampled_from(["sim:small", "sim:compute-bound", "cpu"]),
)


@given(valid)
def test_what_is_dumped_is_read_back_equal(settings: Settings) -> None:
    validate(settings)
    assert parse(dump(settings)) == settings


def test_an_absent_key_has_its_default() -> None:
    assert parse("generation: 4\n") == Settings(generation=4)


def test_the_accelerator_says_whether_times_are_simulated() -> None:
    assert Settings(accelerator="sim:small").simulated
    assert Settings(accelerator="sim:small").profile == "small"
    assert not Settings(accelerator="cpu").simulated
    assert Settings(accelerator="cpu").profile == ""


def test_the_next_generation_changes_nothing_else() -> None:
    assert Settings(generation=4).next_generation() == Settings(generation=5)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("generation: x", "s:1:13", "generation must be a whole number, not 'x'"),
        ("generation: true", "s:1:13", "generation must be a whole number"),
        ("generation: 0", "s:1:13", "generation must be between 1"),
        ("inference:\n  batching: {max_batch_size: 129}", "s:2:30", "must be between 1 and 128, not 129"),
        ("inference: {batching: {timeout_micros: -1}}", "s:1:40", "must be between 0"),
        ("inference: {batching: {max_batch_size: 8}}", "s:1:23", "preferred_batch_size is 16, above max_batch_size 8"),
        ("inference: {batching: {enabled: 1}}", "s:1:33", "must be true or false, not 1"),
        ("inference: {precision: fp16}", "s:1:24", "must be fp32 or int8, not 'fp16'"),
        ("canary: {precision: int4}", "s:1:21", "must be fp32 or int8, not 'int4'"),
        ("inference: {replicas: 5}", "s:1:23", "must be between 1 and 4, not 5"),
        ("inference: {model: bert}", "s:1:20", "must be faq-encoder"),
        ("inference: {priorities: {vip: 3}}", "s:1:31", "must be between 1 and 2"),
        ("inference: {priorities: {standard_timeout_ms: -1}}", "s:1:47", "must be between 0 and 600000"),
        ("inference: {priorities: {standard_timeout_ms: 9}}", "s:1:47", "needs two priority levels in effect"),
        ("inference: [1]", "s:1:12", "inference must be a mapping"),
        ("accelerator: cuda", "s:1:14", "cuda is not available in this release"),
        ("accelerator: 'sim:'", "s:1:14", "must be sim:<profile> or cpu"),
        ("accelerator: 'sim:../../etc'", "s:1:14", "must be sim:<profile> or cpu"),
        ("accelerator: [cpu]", "s:1:14", "must be text, not a list or mapping"),
        ("cache: {ttl_seconds: 0}", "s:1:22", "must be between 1"),
        ("cache: {timeout_ms: 0}", "s:1:21", "must be between 1"),
        ("preprocessing: {redact_pattern: '('}", "s:1:33", "is no regular expression: missing )"),
        (f"preprocessing: {{redact_pattern: {'a' * 1001}}}", "s:1:33", "longer than 1000 characters"),
        ("cash: {}", "s:1:7", "unknown key 'cash'"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(text: str, where: str, message: str) -> None:
    with pytest.raises(ContentError) as caught:
        parse(text, "s")
    assert str(caught.value).startswith(f"{where}: ")
    assert message in str(caught.value)


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ContentErrors) as caught:
        parse("generation: x\ncache: {ttl: 5}\ninference: {replicas: two}\n", "s")
    assert [error.location.line for error in caught.value.errors if error.location] == [1, 3, 2]


def test_settings_made_in_code_are_checked_too() -> None:
    with pytest.raises(ContentError, match="accelerator cuda is not available"):
        validate(replace(Settings(), accelerator="cuda"))


def test_levels_take_a_batcher_and_two_different_levels() -> None:
    levels = InferenceSettings(priority_levels=True)
    assert levels.has_levels
    assert not InferenceSettings().has_levels
    assert not replace(levels, batching=BatchingSettings(enabled=False)).has_levels
    assert not replace(levels, priorities=PrioritySettings(vip=2, standard=2)).has_levels
    validate(Settings(inference=replace(levels, priorities=PrioritySettings(standard_timeout_ms=300))))


def test_values_are_set_by_their_dotted_keys() -> None:
    changed = with_values(Settings(), (("generation", "7"), ("inference.batching.enabled", "false")))
    assert changed == Settings(generation=7, inference=InferenceSettings(batching=BatchingSettings(enabled=False)))
    with pytest.raises(ContentError, match="must be a whole number, not 'x'"):
        with_values(Settings(), (("cache.timeout_ms", "x"),))
    with pytest.raises(ContentError, match=r"unknown key 'cache\.size'"):
        with_values(Settings(), (("cache.size", "1"),))


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("generation: 1", ("1",)),
        ("inference: {precision: int8}", ("2",)),
        ("canary: {precision: int8}", ("1", "2")),
        ("inference: {precision: int8}\ncanary: {precision: int8}", ("2",)),
    ],
)
def test_served_are_the_precision_and_what_is_tried(text: str, versions: tuple[str, ...]) -> None:
    assert parse(text).versions == versions
