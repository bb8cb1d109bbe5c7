"""All content together: errors of every kind at once, and references that lead nowhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from latencydoctor.content.everything import read_everything
from latencydoctor.content.locate import ContentRoot, locate
from latencydoctor.errors import ContentErrors


@pytest.fixture
def copy(tmp_path: Path) -> ContentRoot:
    origin = locate()
    shutil.copytree(origin.rules, tmp_path / "rules")
    shutil.copytree(origin.playbooks, tmp_path / "playbooks")
    return ContentRoot(tmp_path, "checkout")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_shipped_content_is_in_order() -> None:
    content = read_everything(locate(), compiled=True)
    assert content.log_rules
    assert content.dialects
    assert content.playbooks


def test_errors_of_rules_dialects_and_playbooks_come_together(copy: ContentRoot) -> None:
    edit(copy.rules / "logs" / "batching" / "queue_delay.yaml", "level: WARNING", "level: LOUD")
    edit(copy.rules / "signals" / "triton.yaml", "id: triton", "id: tritium")
    edit(copy.playbooks / "latency-spike.yaml", "start:", "begin:")
    with pytest.raises(ContentErrors) as caught:
        read_everything(copy)
    places = {error.location.path.rsplit("/", 1)[-1] for error in caught.value.errors if error.location}
    assert places == {"queue_delay.yaml", "triton.yaml", "latency-spike.yaml"}


def test_playbook_that_asks_for_an_unknown_signal(copy: ContentRoot) -> None:
    edit(copy.rules / "signals" / "_names.yaml", "accelerator_throttled_ratio:", "accelerator_cold_ratio:")
    with pytest.raises(ContentErrors, match="accelerator_throttled_ratio"):
        read_everything(copy)
