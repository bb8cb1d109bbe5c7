"""Reads `rules/causes/<id>.yaml`: one cause a file, every problem of the folder at once."""

from __future__ import annotations

from latencydoctor.content.conditions import NEVER, read_condition
from latencydoctor.content.locate import ContentRoot, yaml_files
from latencydoctor.content.reader import Mapping, Problems, load_mapping
from latencydoctor.model.cause import CauseKind, CauseRule, Scaling, Undo


def load_causes(root: ContentRoot) -> tuple[CauseRule, ...]:
    """All cause rules of a content root, upstream first; raises `ContentErrors` with every problem and its place."""
    problems = Problems()
    tops: dict[str, Mapping] = {}
    rules: list[CauseRule] = []
    for path in yaml_files(root.rules / "causes"):
        top = load_mapping(path, problems, root.shown(path))
        if top is None:
            continue
        rule = _rule(top)
        if rule.id and rule.id != path.stem:
            top.problem(f"id is {rule.id!r} but the file is called {path.stem!r}; they must be the same", "id")
        if rule.id in tops:
            top.problem(f"another file has the id {rule.id!r} too", "id")
        tops[rule.id] = top
        rules.append(rule)
    for rule in rules:
        _check_explained(rule, rules, tops[rule.id])
    problems.raise_any()
    return tuple(sorted(rules, key=lambda rule: (rule.order, rule.id)))


def _rule(top: Mapping) -> CauseRule:
    thresholds = top.numbers("thresholds")
    names = frozenset(name for name, _ in thresholds)
    confirm, refute = top.mapping("confirm"), top.mapping("refute", None)
    rule = CauseRule(
        id=top.text("id"),
        signature=top.text("signature", ""),
        title=top.text("title"),
        kind=CauseKind(top.choice("kind", tuple(kind.value for kind in CauseKind), CauseKind.CAUSE.value)),
        order=top.whole("order"),
        thresholds=thresholds,
        confirm=read_condition(confirm, names) if confirm else NEVER,
        refute=read_condition(refute, names) if refute else None,
        scaling=Scaling(top.choice("scaling", tuple(one.value for one in Scaling))),
        meaning=top.text("meaning"),
        advice=top.text("advice"),
        not_this=top.text("not_this", ""),
        fix=top.text("fix", ""),
        symptoms=top.texts("symptoms", ()),
        explains=top.texts("explains", ()),
        references=top.texts("references"),
        is_event=top.flag("event", False),
        is_generic=top.flag("generic", False),
        undo=_undo(top),
    )
    if rule.scaling is Scaling.WRONG and rule.kind is CauseKind.CAUSE and not rule.not_this:
        top.problem("scaling is wrong here, so not_this must say what not to do", "scaling")
    top.close()
    return rule


def _undo(top: Mapping) -> Undo | None:
    said = top.choice("undo", (*(one.value for one in Undo), ""), "")
    return Undo(said) if said else None


def _check_explained(rule: CauseRule, rules: list[CauseRule], top: Mapping) -> None:
    """What a cause explains exists and lies downstream; equal places would let two causes fold each other."""
    orders = {other.id: other.order for other in rules}
    for name in rule.explains:
        if name not in orders:
            top.problem(f"explains {name!r}, which is no cause rule", "explains")
        elif orders[name] <= rule.order:
            hint = "A cause comes before what it explains: give it a smaller order."
            top.problem(f"explains {name!r}, whose order {orders[name]} is not after {rule.order}", "explains", hint)
