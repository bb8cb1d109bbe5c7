from __future__ import annotations

import json
from dataclasses import replace

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from latencydoctor.stack.compile import model_config, to_json, to_pbtxt
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, PrioritySettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings


def compiled(**inference: object) -> pb.ModelConfig:
    changed = replace(InferenceSettings(), **inference)  # type: ignore[arg-type] # the tests name real fields
    return model_config(Settings(inference=changed))


def test_batching_is_compiled_for_triton() -> None:
    config = compiled()
    assert config.max_batch_size == 32
    assert list(config.dynamic_batching.preferred_batch_size) == [16]
    assert config.dynamic_batching.max_queue_delay_microseconds == 100_000
    assert config.parameters["accelerator"].string_value == "sim:small"
    assert {item.name: list(item.dims) for item in config.input} == {"input_ids": [16], "attention_mask": [16]}


def test_no_preferred_size_is_no_field() -> None:
    config = compiled(batching=BatchingSettings(preferred_batch_size=0, max_batch_size=8, timeout_micros=0))
    assert config.HasField("dynamic_batching")
    assert list(config.dynamic_batching.preferred_batch_size) == []


def test_batching_switched_off_has_no_batcher() -> None:
    assert not compiled(batching=BatchingSettings(enabled=False)).HasField("dynamic_batching")


def test_priorities_reach_triton_only_when_asked_for() -> None:
    assert compiled().dynamic_batching.priority_levels == 0
    config = compiled(priority_levels=True, priorities=PrioritySettings(vip=1, standard=2))
    assert config.dynamic_batching.priority_levels == 2
    assert config.dynamic_batching.default_priority_level == 2


def test_only_the_standard_level_is_given_up_after_its_time() -> None:
    priorities = PrioritySettings(standard_timeout_ms=450)
    assert not compiled(priority_levels=True).dynamic_batching.priority_queue_policy
    policies = compiled(priority_levels=True, priorities=priorities).dynamic_batching.priority_queue_policy
    assert list(policies) == [2]
    assert policies[2].timeout_action == pb.ModelQueuePolicy.REJECT
    assert policies[2].default_timeout_microseconds == 450_000
    assert not policies[2].allow_timeout_override


def test_only_the_versions_that_the_settings_name_are_served() -> None:
    assert list(compiled().version_policy.specific.versions) == [1]
    assert list(compiled(precision="int8").version_policy.specific.versions) == [2]
    tried = model_config(Settings(canary=CanarySettings(precision="int8")))
    assert list(tried.version_policy.specific.versions) == [1, 2]


def test_a_version_in_int8_is_warmed_up_before_it_answers() -> None:
    assert not compiled().model_warmup
    assert [one.batch_size for one in compiled(precision="int8").model_warmup] == [1, 32]
    alone = compiled(precision="int8", batching=BatchingSettings(max_batch_size=1, preferred_batch_size=0))
    assert [one.batch_size for one in alone.model_warmup] == [1]


def test_text_and_json_say_the_same() -> None:
    settings = Settings()
    read_back = text_format.Parse(to_pbtxt(settings), pb.ModelConfig())
    assert read_back == model_config(settings)
    document = json.loads(to_json(settings))
    assert document["name"] == "faq-encoder"
    assert document["dynamic_batching"]["preferred_batch_size"] == [16]


def test_a_change_of_the_generation_changes_nothing_for_triton() -> None:
    assert to_pbtxt(Settings(generation=1)) == to_pbtxt(Settings(generation=2))
