"""The section `canary` of the settings: what it may say, and what it makes of the settings of one replica."""

from __future__ import annotations

import pytest

from latencydoctor.errors import ContentError, ContentErrors
from latencydoctor.stack.settings import BatchingSettings, Settings, dump, parse
from latencydoctor.stack.settings_canary import CanarySettings

TWO = "inference:\n  replicas: 2\n  batching:\n    max_batch_size: 8\n    preferred_batch_size: 0\n"


def test_without_a_section_there_is_no_canary_and_none_is_written() -> None:
    assert parse(TWO).canary is None
    assert "canary" not in dump(parse(TWO))
    assert parse(TWO).of_replica(2) == parse(TWO)


def test_a_canary_of_batching_changes_the_last_replica_in_what_it_names() -> None:
    settings = parse(TWO + "canary:\n  batching:\n    max_batch_size: 64\n")
    tried = BatchingSettings(preferred_batch_size=0, max_batch_size=64)
    assert settings.canary == CanarySettings(batching=tried)
    assert settings.of_replica(2).inference.batching == tried
    assert settings.of_replica(1) == settings
    assert settings.canary.share(2) == 0.5
    assert settings.canary.told(2) == "replica 2 tries another batching, 50 % of the sessions"
    assert parse(dump(settings)) == settings


@pytest.mark.parametrize(("more", "share"), [("", 0.2), ("  share_ratio: 0.05\n", 0.05)])
def test_a_canary_of_a_precision_has_a_share(more: str, share: float) -> None:
    settings = parse(f"canary:\n  precision: fp32\n{more}")
    assert settings.canary is not None
    assert settings.canary.share(1) == share
    assert parse(dump(settings)) == settings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("canary: {}\n", "settings:1:9: canary names nothing to try"),
        ("canary:\n", "canary must be a mapping"),
        ("canary:\n  share_ratio: 0.2\n", "canary names nothing to try"),
        ("canary:\n  batching:\n    max_batch_size: 8\n", "needs at least 2 replicas, inference.replicas is 1"),
        (TWO + "canary:\n  batching: {}\n  share_ratio: 0.5\n", ":8:16: canary.share_ratio cannot be set for batching"),
        (TWO + "canary:\n  batching: {}\n  precision: fp32\n", "cannot be tried together with batching"),
        (TWO + "canary:\n  batching: {max_batch_size: 4, preferred_batch_size: 9}\n", "is 9, above max_batch_size 4"),
        (TWO + "canary:\n  batching: {max_batch_size: 900}\n", ":7:30: canary.batching.max_batch_size must be between"),
        (TWO + "canary:\n  batching: {size: 9}\n", "unknown key 'canary.batching.size'"),
        ("canary:\n  precision: fp32\n  share_ratio: 0.7\n", "must be above 0 and at most 0.5, not 0.7"),
        ("canary:\n  precision: fp32\n  share_ratio: .nan\n", "must be above 0 and at most 0.5, not nan"),
        ("canary:\n  precision: fp32\n  share_ratio: yes\n", "canary.share_ratio must be a number"),
        ("canary:\n  precision: fp16\n", ":2:14: canary.precision must be"),
        ("canary: [1]\n", "canary must be a mapping"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises((ContentError, ContentErrors)) as raised:
        parse(text)
    assert told in str(raised.value)


def test_settings_for_a_canary_keep_everything_else() -> None:
    assert Settings(canary=None) == Settings()
