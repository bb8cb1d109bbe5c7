"""A playbook that cannot be walked to an end is refused, with every problem at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.playbooks import load, load_all
from latencydoctor.errors import ContentErrors
from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, Leaf, LogLeaf, Not

GOOD = """\
id: tree
title: A tree
symptom: slow
thresholds: {limit: 50, factor: 0.5}
start: first
nodes:
  first:
    question: Slow?
    gate: true
    when:
      all:
        - {signal: queue_time_ms, above: limit}
        - any:
            - {signal: queue_time_ms, at_least: factor, than: e2e_mean_ms}
            - {log: gpu_oom, at_least: 2}
            - not: {signal: queue_time_ms, of: ratio_to_baseline, at_most: factor}
    yes: found
    no: nothing
    unknown: nothing
  found: {cause: slow}
  nothing: {title: Nothing, meaning: Nothing fits, advice: Look further}
"""


def write(folder: Path, text: str, name: str = "tree") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def problems(folder: Path, old: str, new: str) -> list[str]:
    assert old in GOOD
    with pytest.raises(ContentErrors) as caught:
        load(write(folder, GOOD.replace(old, new)))
    return [str(error) for error in caught.value.errors]


def test_conditions_become_records(tmp_path: Path) -> None:
    playbook = load(write(tmp_path, GOOD))
    (question,) = playbook.questions
    assert question.gate
    assert question.condition == All(
        (
            Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, "limit", None),
            AnyOf(
                (
                    Leaf("queue_time_ms", Comparison.AT_LEAST, Basis.VALUE, None, "e2e_mean_ms", "factor"),
                    LogLeaf("gpu_oom", 2),
                    Not(Leaf("queue_time_ms", Comparison.AT_MOST, Basis.RATIO_TO_BASELINE, "factor", None)),
                )
            ),
        )
    )
    found, nothing = playbook.verdicts
    assert (found.cause, found.title) == ("slow", "")
    assert (nothing.cause, nothing.advice) == (None, "Look further")
    assert playbook.threshold("limit") == 50


@pytest.mark.parametrize(
    ("old", "new", "expected", "line"),
    [
        ("above: limit", "above: nowhere", "no threshold is called 'nowhere'", 12),
        ("above: limit", "above: limit, below: limit", "exactly one of", 12),
        ("above: limit", "", "exactly one of", 12),
        ("of: ratio_to_baseline", "of: median", "not one of: value", 16),
        ("    unknown: nothing\n", "", "unknown is missing", 8),
        ("yes: found", "yes: elsewhere", "leads to 'elsewhere'", 7),
        ("yes: found", "yes: nothing", "'found' cannot be reached", 7),
        ("no: nothing", "no: first", "comes back", 7),
        ("start: first", "start: third", "start names 'third'", 5),
        ("found: {cause: slow}", "found: {cause: slow, title: Slow}", "unknown key", 20),
        ("id: tree", "id: bush", "the file is called 'tree'", 1),
        ("    gate: true\n", "    gates: true\n", "unknown key", 9),
        ("advice: Look further", "", "advice is missing", 21),
        ("limit: 50", "limit: much", "must be a finite number", 4),
    ],
)
def test_each_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, expected: str, line: int) -> None:
    told = [text for text in problems(tmp_path, old, new) if expected in text]
    assert told, problems(tmp_path, old, new)
    assert f"tree.yaml:{line}" in told[0]


def test_an_empty_list_of_conditions_answers_nothing(tmp_path: Path) -> None:
    start = GOOD.index("      all:")
    end = GOOD.index("    yes: found")
    text = GOOD[:start] + "      all: []\n" + GOOD[end:]
    with pytest.raises(ContentErrors, match="empty list"):
        load(write(tmp_path, text))


def test_branches_that_meet_again_and_again_are_walked_once(tmp_path: Path) -> None:
    question = "question: Slow?\n    when: {signal: queue_time_ms, above: limit}\n"
    levels = "".join(
        f"  {side}{level}:\n    {question}    yes: a{level + 1}\n    no: b{level + 1}\n    unknown: nothing\n"
        for level in range(60)
        for side in "ab"
    )
    head = "id: tree\ntitle: A tree\nsymptom: slow\nthresholds: {limit: 50}\nstart: start\nnodes:\n"
    first = f"  start:\n    {question}    yes: a0\n    no: b0\n    unknown: nothing\n"
    ends = "  a60: {cause: slow}\n  b60: {cause: slow}\n  nothing: {title: N, meaning: N, advice: N}\n"
    assert len(load(write(tmp_path, head + first + levels + ends)).questions) == 121


def test_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    write(tmp_path / "playbooks", GOOD.replace("start: first", "start: third"))
    write(tmp_path / "playbooks", GOOD, "bush")
    with pytest.raises(ContentErrors) as caught:
        load_all(tmp_path)
    assert {Path(error.location.path).name for error in caught.value.errors if error.location} == {
        "tree.yaml",
        "bush.yaml",
    }


def test_the_shipped_playbooks_are_sound() -> None:
    assert [playbook.id for playbook in load_all(Path(__file__).parents[3])] == ["latency-spike"]
