"""What is asked for against what the server says it runs."""

from __future__ import annotations

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.targets.triton import EffectiveConfig, differences

ASKED = """
name: "faq-encoder"
max_batch_size: 32
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { preferred_batch_size: 16 max_queue_delay_microseconds: 100000 }
"""
RUNS = ASKED.replace("count: 1", 'name: "faq-encoder_0" count: 1') + "version_policy { latest { num_versions: 1 } }\n"


def found(asked: str, runs: str) -> tuple[str, ...]:
    return differences(asked, EffectiveConfig((), "", runs))


def test_defaults_that_the_server_adds_are_no_difference() -> None:
    assert found(ASKED, RUNS) == ()


@pytest.mark.parametrize(
    ("asked", "runs", "told"),
    [
        (ASKED, RUNS.replace("32", "8"), "max_batch_size: 32 asked for, 8 in effect"),
        (ASKED, RUNS.replace("100000", "0"), "dynamic_batching.max_queue_delay_microseconds: 100000 asked for, 0"),
        (ASKED, RUNS.replace(": 16", ": 8"), "dynamic_batching.preferred_batch_size: [16] asked for, [8] in effect"),
        (ASKED, RUNS.replace("count: 1", "count: 2"), "instance_group: 1 asked for, 2 in effect"),
        (ASKED.replace("faq", "the"), RUNS, "name: the-encoder asked for, faq-encoder in effect"),
        ("max_batch_size: 32", RUNS, "dynamic_batching: not asked for, but the server batches"),
    ],
)
def test_every_difference_is_told(asked: str, runs: str, told: str) -> None:
    assert any(line.startswith(told) for line in found(asked, runs)), found(asked, runs)


def test_no_preferred_size_is_the_maximum_as_the_server_reports_it() -> None:
    asked = "max_batch_size: 8 dynamic_batching { }"
    assert found(asked, "max_batch_size: 8 dynamic_batching { preferred_batch_size: 8 }") == ()
    assert found(asked, "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 }") != ()


def test_a_compiled_text_that_is_none() -> None:
    with pytest.raises(KnownError, match="cannot be read"):
        found("nonsense: {", RUNS)
