"""A `config.pbtxt` edited as text: exactly the asked fields change, every other byte stays, odd files are refused."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from latencydoctor.errors import ContentError
from latencydoctor.targets import pbtxt
from latencydoctor.targets import triton_message as message

BATCHER = ((message.PREFERRED, "16"), (message.MAXIMUM, "32"), (message.WAIT, "100000"))
LIVE = text_format.Parse("instance_group { count: 1 kind: KIND_CPU }", pb.ModelConfig())


def edited(text: str, *values: tuple[str, str]) -> str:
    return message.edited(text, values, LIVE, "m/config.pbtxt")


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines that are gone, and lines that are new."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_values_are_replaced_in_place_and_comments_stay() -> None:
    text = (
        "# by hand\r\nmax_batch_size: 8, # March\r\ndynamic_batching {\r\n\t# floor\r\n"
        "\tpreferred_batch_size: [ 4, 8 ];\r\n\tmax_queue_delay_microseconds : 5\r\n}\r\n"
    )
    gone, new = changed(text, edited(text, *BATCHER))
    assert gone == [
        "max_batch_size: 8, # March\r\n",
        "\tpreferred_batch_size: [ 4, 8 ];\r\n",
        "\tmax_queue_delay_microseconds : 5\r\n",
    ]
    assert new == [
        "max_batch_size: 32, # March\r\n",
        "\tpreferred_batch_size: [ 16 ];\r\n",
        "\tmax_queue_delay_microseconds : 100000\r\n",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "dynamic_batching { preferred_batch_size: [ 16 ] }\n"),
        ('name: "m" # last', 'name: "m" # last\ndynamic_batching { preferred_batch_size: [ 16 ] }\n'),
        ("dynamic_batching {}", "dynamic_batching { preferred_batch_size: [ 16 ] }"),
        ("dynamic_batching: < >\n", "dynamic_batching: < preferred_batch_size: [ 16 ] >\n"),
        ("dynamic_batching {\n}\n", "dynamic_batching {\n  preferred_batch_size: [ 16 ]\n}\n"),
        ("dynamic_batching { # why\n}\n", "dynamic_batching { # why\n  preferred_batch_size: [ 16 ]\n}\n"),
        (
            "dynamic_batching {\n      priority_levels: 2 }\n",
            "dynamic_batching {\n      priority_levels: 2 preferred_batch_size: [ 16 ] }\n",
        ),
        (
            "dynamic_batching {\n  preferred_batch_size: 4\n  preferred_batch_size: 8 # 8\n preferred_batch_size: 9\n}",
            "dynamic_batching {\n  preferred_batch_size: [ 16 ]\n  # 8\n}",
        ),
        (
            "dynamic_batching { preferred_batch_size: 4, preferred_batch_size: 8, priority_levels: 2 }",
            "dynamic_batching { preferred_batch_size: [ 16 ], priority_levels: 2 }",
        ),
    ],
)
def test_a_field_finds_its_place(text: str, expected: str) -> None:
    assert edited(text, (message.PREFERRED, "16")) == expected


def test_what_looks_like_a_field_but_is_none_is_left_alone() -> None:
    text = (
        "# max_batch_size: 1\n"
        'parameters { key: "max_batch_size: 2 }" value { string_value: \'dynamic_batching {\' "and # more" } }\n'
        "max_batch_size:\n  # the number\n  8\n"
    )
    assert edited(text, (message.MAXIMUM, "32")) == text.replace("  8\n", "  32\n")


def test_fields_of_a_newer_triton_stay_and_are_no_hindrance() -> None:
    text = 'brand_new { knob: [ 1, 2 ] name: "x" }\nmax_batch_size: 8\n'
    assert edited(text, (message.MAXIMUM, "32")) == text.replace("8", "32")


def test_batching_priorities_and_instances_are_switched_on() -> None:
    after = edited(
        'name: "m"\n', (message.ENABLED, "true"), (message.LEVELS, "true"), (message.STANDARD_TIMEOUT, "300"),
        (message.INSTANCES, "3"),
    )  # fmt: skip
    config = message.parsed(after, "m")
    assert config.dynamic_batching.priority_levels == config.dynamic_batching.default_priority_level == 2
    policy = config.dynamic_batching.priority_queue_policy[2]
    assert (policy.timeout_action, policy.default_timeout_microseconds) == (pb.ModelQueuePolicy.REJECT, 300_000)
    assert [(group.count, group.kind) for group in config.instance_group] == [(3, pb.ModelInstanceGroup.KIND_CPU)]
    assert dict(message.stated(config)) == {
        message.ENABLED: "true", message.LEVELS: "true", message.STANDARD_TIMEOUT: "300", message.INSTANCES: "3",
    }  # fmt: skip
    assert edited(after, (message.ENABLED, "true")) == after


def test_instances_grow_in_the_form_that_is_there() -> None:
    text = "instance_group [\n  {\n    count: 1 # one\n    kind: KIND_GPU\n    gpus: [ 0, 1 ]\n  }\n]\n"
    assert edited(text, (message.INSTANCES, "4")) == text.replace("count: 1", "count: 2")
    assert dict(message.stated(message.parsed(text, "m"))) == {message.INSTANCES: "2"}
    with pytest.raises(ContentError, match="do not divide evenly"):
        edited(text, (message.INSTANCES, "3"))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ((("inference.replicas", "2"),), "cannot be set"),
        (((message.MAXIMUM, "-1"),), "cannot be set"),
        (((message.MAXIMUM, "1 } x"),), "cannot be set"),
        (((message.ENABLED, "false"),), "cannot be set"),
    ],
)
def test_values_that_no_fix_sets_are_refused(values: tuple[tuple[str, str], ...], problem: str) -> None:
    with pytest.raises(ContentError, match=problem):
        edited("max_batch_size: 8\n", *values)


def test_queue_policies_of_somebody_elses_are_not_touched() -> None:
    text = "dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 3 } } }\n"
    with pytest.raises(ContentError, match="queue policies of its own"):
        edited(text, (message.STANDARD_TIMEOUT, "300"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("max_batch_size: 8\nmax_batch_size: eight\n", 2), ('name: "m\n', 1), ("dynamic_batching {\n", 0), ("{" * 200, 1)],
)
def test_a_broken_file_is_told_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ContentError) as told:
        edited(text, (message.MAXIMUM, "8"))
    assert told.value.location is not None
    assert told.value.location.path == "m/config.pbtxt"
    assert not line or told.value.location.line == line


@pytest.mark.parametrize(
    "text", ["a: [1", "a {", "a: 'x", "a", "a: {b: 1]", ": 3", "a: [1 2]", "a {" * 100 + "}" * 100]
)
def test_the_locator_never_guesses(text: str) -> None:
    with pytest.raises(ContentError):
        pbtxt.read(text, "x")


def config(text: str) -> pb.ModelConfig:
    return message.parsed(text, "m")


@pytest.mark.parametrize(
    ("asked", "runs", "different"),
    [
        ("", "max_batch_size: 4 dynamic_batching { preferred_batch_size: 4 }", ""),
        ("max_batch_size: 8", "max_batch_size: 4", "max_batch_size: 8 asked for, 4 in effect"),
        ("dynamic_batching {}", "max_batch_size: 8 dynamic_batching { preferred_batch_size: 8 }", ""),
        ("dynamic_batching {}", "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 }", "preferred"),
        ("dynamic_batching {}", "dynamic_batching { max_queue_delay_microseconds: 5 }", "max_queue_delay"),
        ("", "dynamic_batching { max_queue_delay_microseconds: 5 }", "max_queue_delay"),
        ("", "dynamic_batching { priority_levels: 2 default_priority_level: 2 }", "priority_levels"),
        ("dynamic_batching { preferred_batch_size: 4 }", "", "asked for, not in effect"),
        ("instance_group { count: 2 }", 'instance_group { name: "m_0" count: 2 gpus: 0 }', ""),
        ("instance_group { count: 2 }", "instance_group { count: 1 }", "instance_group: 2 asked for, 1 in effect"),
        ('input { name: "x" dims: 1 }', 'input { name: "x" dims: 1 optional: true } input { name: "y" }', ""),
        ('input { name: "x" dims: 1 }', 'input { name: "x" dims: 2 }', "input x.dims"),
        ('input { name: "x" dims: 1 }', "", "input x: asked for, not in effect"),
        ('parameters { key: "a" value { string_value: "1" } }', "", "parameters"),
    ],
)
def test_what_differs_is_told_and_what_the_server_completes_is_not(asked: str, runs: str, different: str) -> None:
    found = message.differences(config(asked), config(runs))
    assert (different in " ".join(found)) if different else not found


@pytest.mark.parametrize(
    ("live", "keys", "limit"),
    [
        ("max_batch_size: 8 instance_group { count: 1 }", message.BATCHING | {message.INSTANCES}, ""),
        ("max_batch_size: 8", message.BATCHING, "0 instance groups"),
        ("instance_group { count: 1 }", {message.INSTANCES}, "takes no batches"),
        ("max_batch_size: 8 sequence_batching { } instance_group { }", {message.INSTANCES}, "batches by sequence"),
        (
            'ensemble_scheduling { step { model_name: "a" } step { model_name: "b" } step { model_name: "a" } }',
            set(),
            "treat one of a, b",
        ),
    ],
)
def test_what_a_kind_of_model_cannot_do_is_said(live: str, keys: set[str], limit: str) -> None:
    settable, limits = message.reach(config(live), "m")
    assert settable == keys
    assert (limit in " ".join(limits)) if limit else limits == ()


def test_what_runs_has_every_setting() -> None:
    assert dict(message.in_effect(config("max_batch_size: 8"))) == {
        message.ENABLED: "false", message.PREFERRED: "0", message.MAXIMUM: "8", message.WAIT: "0",
        message.LEVELS: "false", message.STANDARD_TIMEOUT: "0",
    }  # fmt: skip
