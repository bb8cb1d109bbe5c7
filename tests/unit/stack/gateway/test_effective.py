from dataclasses import replace

from latencydoctor.stack.gateway.canary import Canary
from latencydoctor.stack.gateway.effective import combine
from latencydoctor.stack.settings import InferenceSettings, Settings


def test_both_arms_ask_the_same_model_without_a_canary() -> None:
    found = combine(Settings(generation=4), Canary(), "127.0.0.1:8001")
    assert {route.endpoint for route in found.routes.values()} == {"127.0.0.1:8001"}
    assert {route.key_version for route in found.routes.values()} == {"fp32-1"}
    assert found.routes["stable"].provenance == b'"generation":4,"arm":"stable","accelerator":"sim:small"'
    assert found.deadline_s == 5.0


def test_the_canary_has_its_own_version_keys_and_endpoint() -> None:
    found = combine(Settings(), Canary(0.2, "2", "127.0.0.1:9001"), "127.0.0.1:8001")
    canary, stable = found.routes["canary"], found.routes["stable"]
    assert (canary.endpoint, canary.version, canary.key_version) == ("127.0.0.1:9001", "2", "fp32-2")
    assert (stable.endpoint, stable.version, stable.key_version) == ("127.0.0.1:8001", "", "fp32-1")


def test_priorities_reach_triton_only_when_the_model_has_levels() -> None:
    without = combine(Settings(), Canary(), "")
    levels = replace(Settings(), inference=InferenceSettings(priority_levels=True))
    assert (without.level("vip"), without.level("standard")) == (0, 0)
    assert (combine(levels, Canary(), "").level("vip"), combine(levels, Canary(), "").level("standard")) == (1, 2)
