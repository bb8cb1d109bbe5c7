"""Reads `playbooks/*.yaml` into decision trees and checks that each can be walked to an end."""

from __future__ import annotations

from pathlib import Path

from latencydoctor.content.conditions import NEVER, read_condition
from latencydoctor.content.reader import Mapping, Problems, load_mapping
from latencydoctor.model.playbook import Playbook, Question, Verdict


def load(path: Path) -> Playbook:
    """One playbook; raises `ContentErrors` with every problem and its line."""
    problems = Problems()
    playbook = _read(path, problems)
    problems.raise_any()
    assert playbook is not None, "a file without a playbook has noted a problem"
    return playbook


def load_all(root: Path) -> tuple[Playbook, ...]:
    """Every playbook of a content root, by id; raises `ContentErrors` with the problems of all files at once."""
    problems = Problems()
    found = [_read(path, problems) for path in sorted((root / "playbooks").glob("*.yaml"))]
    problems.raise_any()
    return tuple(playbook for playbook in found if playbook is not None)


def _read(path: Path, problems: Problems) -> Playbook | None:
    top = load_mapping(path, problems)
    if top is None:
        return None
    playbook_id = top.text("id")
    if playbook_id and playbook_id != path.stem:
        top.problem(f"id is {playbook_id!r} but the file is called {path.stem!r}; they must be the same", "id")
    thresholds = top.numbers("thresholds")
    names = frozenset(name for name, _ in thresholds)
    questions: list[Question] = []
    verdicts: list[Verdict] = []
    for node_id, node in top.entries("nodes"):
        if "when" in node:
            questions.append(_question(node_id, node, names))
        else:
            verdicts.append(_verdict(node_id, node))
        node.close()
    playbook = Playbook(
        id=playbook_id,
        title=top.text("title"),
        symptom=top.text("symptom"),
        start=top.text("start"),
        thresholds=thresholds,
        questions=tuple(questions),
        verdicts=tuple(verdicts),
    )
    top.close()
    _check_branches(playbook, top)
    return playbook


def _question(node_id: str, node: Mapping, thresholds: frozenset[str]) -> Question:
    when = node.mapping("when")
    return Question(
        id=node_id,
        text=node.text("question"),
        condition=read_condition(when, thresholds) if when else NEVER,
        yes=node.text("yes"),
        no=node.text("no"),
        unknown=node.text("unknown"),
        gate=node.flag("gate", False),
    )


def _verdict(node_id: str, node: Mapping) -> Verdict:
    """A cause, whose words are in its rule, or the words that say why none is named."""
    if "cause" in node:
        return Verdict(node_id, node.text("cause"))
    return Verdict(node_id, None, node.text("title"), node.text("meaning"), node.text("advice"))


def _check_branches(playbook: Playbook, top: Mapping) -> None:
    """Every branch leads to a node, every node is reached, and no path comes back to where it was."""
    questions = {one.id: one for one in playbook.questions}
    known = set(questions) | {one.id for one in playbook.verdicts}
    if playbook.start and playbook.start not in known:
        top.problem(f"start names {playbook.start!r}, which is no node", "start")
    for question in playbook.questions:
        for branch in (question.yes, question.no, question.unknown):
            if branch and branch not in known:
                top.problem(f"node {question.id!r} leads to {branch!r}, which is no node", "nodes")
    reached: set[str] = set()
    _reach(playbook.start, questions, top, (), reached)
    for node_id in sorted(known - reached):
        top.problem(f"node {node_id!r} cannot be reached from {playbook.start!r}", "nodes")


def _reach(
    node_id: str, questions: dict[str, Question], top: Mapping, path: tuple[str, ...], reached: set[str]
) -> None:
    """Add to `reached` what a node leads to. Each node is looked at once: branches that meet again are many paths."""
    if node_id in path:
        top.problem(f"the path {' > '.join((*path, node_id))} comes back to where it was", "nodes")
        return
    question = questions.get(node_id)
    if question is not None and node_id not in reached:
        for branch in dict.fromkeys((question.yes, question.no, question.unknown)):
            _reach(branch, questions, top, (*path, node_id), reached)
    reached.add(node_id)
