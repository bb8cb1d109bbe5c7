"""Cause rules from YAML: every mistake is found with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.causes import load_causes
from latencydoctor.content.locate import ContentRoot
from latencydoctor.errors import ContentErrors
from latencydoctor.model.cause import CauseKind, Scaling
from latencydoctor.model.playbook import All, AnyOf, FirstKnown, Leaf, Where

RULE = """\
id: {id}
signature: B1
title: Slow
order: {order}
thresholds: {{limit: 10}}
confirm:
  all:
    - {{signal: queue_time_ms, above: limit}}
    - first:
        - {{signal: batch_size_mean, below: limit, of: rise}}
        - {{signal: config_max_batch_size, below: limit}}
refute: {{signal: network_time_ms, above: limit}}
scaling: wrong
meaning: It is slow.
advice: Make it fast.
not_this: Do not add replicas.
symptoms: [e2e_p99_ms]
explains: [{explains}]
references: [cause signature B1]
"""


def write(root: Path, rule_id: str, *, order: int = 10, explains: str = "", old: str = "", new: str = "") -> None:
    folder = root / "rules" / "causes"
    folder.mkdir(parents=True, exist_ok=True)
    text = RULE.format(id=rule_id, order=order, explains=explains)
    assert not old or old in text
    (folder / f"{rule_id}.yaml").write_text(text.replace(old, new), encoding="utf-8")


def refused(root: Path) -> str:
    with pytest.raises(ContentErrors) as caught:
        load_causes(ContentRoot(root, "checkout"))
    return str(caught.value)


def test_rules_come_upstream_first_with_all_their_fields(tmp_path: Path) -> None:
    write(tmp_path, "down", order=20)
    write(tmp_path, "up", order=10, explains="down")
    up, down = load_causes(ContentRoot(tmp_path, "checkout"))
    assert (up.id, down.id, up.explains, up.kind, up.scaling) == (
        "up",
        "down",
        ("down",),
        CauseKind.CAUSE,
        Scaling.WRONG,
    )
    assert isinstance(up.confirm, All)
    assert isinstance(up.confirm.parts[1], FirstKnown)
    assert isinstance(up.refute, Leaf)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("above: limit}\n    - first", "above: other}\n    - first", "no threshold is called 'other'"),
        ("id: slow", "id: fast", "the file is called 'slow'"),
        ("not_this: Do not add replicas.\n", "", "not_this must say what not to do"),
        ("scaling: wrong", "scaling: maybe", "not one of: cures, wrong, buys time"),
        ("order: 10", "order: early", "must be a whole number"),
        ("advice:", "advise:", "unknown key 'advise'"),
        ("[cause signature B1]", "", "references"),
        ("{signal: network_time_ms, above: limit}", "{never: true}", "never must be true and stand beside"),
        ("{signal: network_time_ms, above: limit}", "{any: []}", "an empty list of conditions"),
    ],
)
def test_each_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    write(tmp_path, "slow", old=old, new=new)
    told = refused(tmp_path)
    assert message in told
    assert "rules/causes/slow.yaml:" in told


def test_what_is_explained_exists_and_lies_downstream(tmp_path: Path) -> None:
    write(tmp_path, "first", order=10, explains="second, nowhere")
    write(tmp_path, "second", order=10)
    told = refused(tmp_path)
    assert "explains 'nowhere', which is no cause rule" in told
    assert "explains 'second', whose order 10 is not after 10" in told


def test_a_condition_may_apply_to_some_servers_only(tmp_path: Path) -> None:
    new = "{where: batch_size_mean, never: true}"
    write(tmp_path, "slow", old="{signal: network_time_ms, above: limit}", new=new)
    (found,) = load_causes(ContentRoot(tmp_path, "checkout"))
    assert found.refute == Where("batch_size_mean", AnyOf(()))
    write(tmp_path, "slow", old="{signal: network_time_ms, above: limit}", new=new.replace("never", "always"))
    (found,) = load_causes(ContentRoot(tmp_path, "checkout"))
    assert found.refute == Where("batch_size_mean", All(()))
