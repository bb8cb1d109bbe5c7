from dataclasses import replace

from latencydoctor.stack.gateway.canary import Canary
from latencydoctor.stack.gateway.effective import combine
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings

ONE, TWO, THREE = "127.0.0.1:8001", "127.0.0.1:9001", "127.0.0.1:9101"


def test_both_arms_ask_the_same_model_without_a_canary() -> None:
    found = combine(Settings(generation=4), (ONE, TWO))
    assert {route.endpoints for route in found.routes.values()} == {(ONE, TWO)}
    assert {(route.key_version, route.version) for route in found.routes.values()} == {("fp32-1", "")}
    assert found.routes["stable"].provenance == b'"generation":4,"arm":"stable","accelerator":"sim:small"'
    assert (found.deadline_s, found.canary) == (5.0, Canary(0.0))


def test_a_canary_of_batching_is_the_last_replica_and_the_others_take_turns() -> None:
    settings = Settings(inference=InferenceSettings(replicas=2), canary=CanarySettings(BatchingSettings()))
    found = combine(settings, (ONE, TWO))
    canary, stable = found.routes["canary"], found.routes["stable"]
    assert (canary.endpoints, stable.endpoints) == ((TWO,), (ONE,))
    # One model with one answer to each question: what one arm has found, the other need not ask again.
    assert (canary.version, canary.key_version) == ("", stable.key_version)
    assert found.canary == Canary(0.5)
    three = combine(replace(settings, inference=InferenceSettings(replicas=3)), (ONE, TWO, THREE))
    turns = three.routes["stable"].turns
    assert [next(turns) for _ in range(3)] == [ONE, TWO, ONE]
    assert three.canary == Canary(1 / 3)


def test_a_canary_of_a_precision_is_a_version_on_every_replica_with_answers_of_its_own() -> None:
    found = combine(Settings(canary=CanarySettings(precision="int8")), (ONE, TWO))
    canary, stable = found.routes["canary"], found.routes["stable"]
    assert (canary.version, canary.key_version, canary.endpoints) == ("2", "int8-2", (ONE, TWO))
    assert (stable.version, stable.key_version, stable.endpoints) == ("1", "fp32-1", (ONE, TWO))
    assert found.canary == Canary(0.2)
    assert combine(Settings(canary=CanarySettings(precision="int8", share_ratio=0.1)), (ONE,)).canary == Canary(0.1)


def test_priorities_reach_triton_only_when_the_model_has_levels() -> None:
    without = combine(Settings(), (ONE,))
    levels = combine(replace(Settings(), inference=InferenceSettings(priority_levels=True)), (ONE,))
    alone = replace(Settings(), inference=InferenceSettings(priority_levels=True, batching=BatchingSettings(False)))
    assert combine(alone, (ONE,)).level("vip") == 0, "without a batcher there are no levels"
    assert (without.level("vip"), without.level("standard")) == (0, 0)
    assert (levels.level("vip"), levels.level("standard")) == (1, 2)
