"""The dialects and signal names: the project's own, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.locate import ContentRoot, locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import ContentError, ContentErrors
from latencydoctor.model.rule import AbsentSignal, Arms, Family, Summary

NAMES = """
signals:
  queue_time_ms: {title: queue time, unit: ms, needs: a counter, higher_is_worse: true, family: engine}
  resets: {title: resets, needs: a counter, higher_is_worse: true, summary: largest, family: server}
"""
DIALECT = """
id: mine
title: Mine
status: experimental
prefer: 5
detect: [q_sum]
signals:
  - signal: queue_time_ms
    requires: [q_sum, q_count]
    expr: >-
      sum( rate(q_sum{{sel}}[{window}])
      )
      / sum(rate(q_count{{sel}}[{window}]))
"""


def content(folder: Path, dialect: str = DIALECT, names: str = NAMES, stem: str = "mine") -> ContentRoot:
    signals = folder / "rules" / "signals"
    signals.mkdir(parents=True)
    (signals / "_names.yaml").write_text(names)
    (signals / f"{stem}.yaml").write_text(dialect)
    return ContentRoot(folder, "checkout")


def test_the_projects_own_content_is_sound() -> None:
    names, dialects = read_signals(locate())
    assert {dialect.id for dialect in dialects} >= {"gateway", "sim", "dcgm", "triton", "controller"}
    assert dialects[0].id == "gateway"
    assert {name.id for name in names} >= {item.signal for dialect in dialects for item in dialect.signals}
    assert all(item.simulated == (dialect.id == "sim") for dialect in dialects for item in dialect.signals)
    assert len({name.id for name in names}) == len(names)


def test_a_dialect_is_read(tmp_path: Path) -> None:
    names, (dialect,) = read_signals(content(tmp_path))
    assert [(name.id, name.unit, name.summary, name.family) for name in names] == [
        ("queue_time_ms", "ms", Summary.MEDIAN, Family.ENGINE),
        ("resets", "", Summary.LARGEST, Family.SERVER),
    ]
    assert (dialect.id, dialect.status, dialect.model_label, dialect.verified) == ("mine", "experimental", "", "")
    (item,) = dialect.signals
    # Folded lines leave no blanks behind, so that the query can be read and pasted.
    assert item.expr == "sum(rate(q_sum{{sel}}[{window}])) / sum(rate(q_count{{sel}}[{window}]))"
    assert (item.unit, item.requires, item.shared, item.simulated) == ("ms", ("q_sum", "q_count"), False, False)


PARTS = """
parts:
  ours: q_sum{{sel}}
  together: sum(rate({ours}[{window}]))
"""


def test_parts_are_written_out_and_may_use_those_above(tmp_path: Path) -> None:
    short = DIALECT.replace("sum( rate(q_sum{{sel}}[{window}])\n      )", "{together}") + PARTS
    assert "{together}" in short
    _, (dialect,) = read_signals(content(tmp_path, short))
    assert dialect.signals[0].expr == "sum(rate(q_sum{{sel}}[{window}])) / sum(rate(q_count{{sel}}[{window}]))"


def test_parts_that_hide_or_are_used_nowhere_are_told(tmp_path: Path) -> None:
    with pytest.raises(ContentErrors) as caught:
        read_signals(content(tmp_path, DIALECT + "parts: {sel: x, other: y}\n"))
    assert "mine.yaml:14:14: 'sel' has a meaning of its own" in str(caught.value)
    assert "'other' is used nowhere" in str(caught.value)


ABSENT = """
missing:
  resets: no counter survives
    a restart
unrecorded:
  queue_time_ms: it needs a GPU
"""


def test_signals_a_dialect_does_not_give_are_read_with_their_reason(tmp_path: Path) -> None:
    _, (dialect,) = read_signals(content(tmp_path, DIALECT + ABSENT))
    assert dialect.missing == (AbsentSignal("resets", "no counter survives a restart"),)
    assert dialect.unrecorded == (AbsentSignal("queue_time_ms", "it needs a GPU"),)


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        ("missing: {queue_time_ms: why}", "'queue_time_ms' cannot be missing: it has an expression"),
        ("missing: {queue_ms: why}", "'queue_ms' cannot be missing: it has an expression, or it is not in _names.yaml"),
        ("unrecorded: {resets: why}", "'resets' cannot be unrecorded: it has no expression"),
        ("missing: {resets: ''}", "missing.resets must be text"),
        ("missing: [resets]", "missing must be a mapping"),
    ],
)
def test_an_absent_signal_in_the_wrong_block_is_told(tmp_path: Path, absent: str, message: str) -> None:
    with pytest.raises(ContentErrors) as caught:
        read_signals(content(tmp_path, DIALECT + absent + "\n"))
    assert message in str(caught.value)


def test_preferred_dialects_come_first(tmp_path: Path) -> None:
    root = content(tmp_path)
    (root.rules / "signals" / "zeta.yaml").write_text(DIALECT.replace("id: mine", "id: zeta").replace("5", "1"))
    assert [dialect.id for dialect in read_signals(root)[1]] == ["zeta", "mine"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: mine", "id: other", "rules/signals/mine.yaml:2:5: id is 'other' but the file is called mine.yaml"),
        ("queue_time_ms", "queue_ms", "mine.yaml:8:13: 'queue_ms' is not in _names.yaml"),
        ("[{window}]))\n", "[5m]))\n", "mine.yaml:10:11: a window is written out"),
        ("[q_sum, q_count]", "[q_sum, absent]", "mine.yaml:9:15: absent is required but not used"),
        ("[q_sum, q_count]", "['q sum']", "mine.yaml:9:15: 'q sum' is no metric name"),
        ("prefer: 5", "prefer: soon", "mine.yaml:5:9: prefer must be a whole number, not 'soon'"),
        ("status: experimental", "status: new", "mine.yaml:4:9: status is 'new', not one of: stable"),
        ("detect: [q_sum]", "detect: [q_sum]\nmore: 1", "mine.yaml:7:7: unknown key 'more'"),
        ("    requires:", "    simulated: true\n    requires:", "unknown key 'signals[0].simulated'"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in DIALECT
    with pytest.raises(ContentErrors) as caught:
        read_signals(content(tmp_path, DIALECT.replace(old, new)))
    assert message in str(caught.value)


def test_mistakes_in_names_are_told_and_all_at_once(tmp_path: Path) -> None:
    names = NAMES.replace("summary: largest", "summary: odd").replace(
        "needs: a counter, higher_is_worse: true, family: engine}\n  res", "family: ours}\n  res"
    )
    with pytest.raises(ContentErrors) as caught:
        read_signals(content(tmp_path, DIALECT.replace("prefer: 5", ""), names))
    text = str(caught.value)
    assert "signals.queue_time_ms.needs is missing" in text
    assert "signals.queue_time_ms.higher_is_worse is missing" in text
    assert "signals.queue_time_ms.family is 'ours', not one of: front_end, server, engine" in text
    assert "signals.resets.summary is 'odd'" in text
    assert "prefer is missing" in text


def test_missing_names_are_told(tmp_path: Path) -> None:
    root = content(tmp_path)
    (root.rules / "signals" / "_names.yaml").unlink()
    with pytest.raises(ContentErrors, match=r"rules/signals/_names.yaml: cannot be read"):
        read_signals(root)


def test_arms_are_label_matchers(tmp_path: Path) -> None:
    told = DIALECT + "arms: {canary: 'track=\"canary\"', baseline: 'track!=\"canary\"'}\n"
    _, (dialect,) = read_signals(content(tmp_path, told))
    assert dialect.arms == Arms('track="canary"', 'track!="canary"')
    assert next(one for one in read_signals(locate())[1] if one.id == "gateway").arms is not None


@pytest.mark.parametrize("matcher", ["canary", '{a="b"}', 'a="b"} or up{', "", 'a="b",c="d"'])
def test_what_is_no_label_matcher_is_refused(tmp_path: Path, matcher: str) -> None:
    told = f"{DIALECT}arms: {{canary: '{matcher}', baseline: 'a=\"b\"'}}\n"
    with pytest.raises((ContentErrors, ContentError)):
        read_signals(content(tmp_path, told))
