"""Reads `rules/signals/`: the normalised signals and the dialects that give them."""

from __future__ import annotations

import re
from pathlib import Path

from latencydoctor.content.locate import ContentRoot, yaml_files
from latencydoctor.content.reader import Mapping, Problems, load_mapping
from latencydoctor.model.rule import AbsentSignal, Arms, Dialect, Family, SignalExpression, SignalName, Summary

NAMES_FILE = "_names.yaml"
STATUSES = ("stable", "experimental", "deprecated")

_PLACEHOLDER = re.compile(r"\{(sel|front|window|twice)\}")
_FOLD = re.compile(r"(?<=\() | (?=\))")
_LITERAL_WINDOW = re.compile(r"\[\d")
_MATCHERS = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"{}]*"')
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def read_signals(root: ContentRoot) -> tuple[tuple[SignalName, ...], tuple[Dialect, ...]]:
    """All signals in file order and all dialects, preferred ones first; `ContentErrors` with everything wrong."""
    problems = Problems()
    folder = root.rules / "signals"
    names = _read_names(folder / NAMES_FILE, root, problems)
    units = {name.id: name.unit for name in names}
    ranked: list[tuple[float, Dialect]] = []
    for path in yaml_files(folder):
        top = load_mapping(path, problems, root.shown(path))
        if top is not None:
            ranked.append(_read_dialect(top, path.stem, units))
    problems.raise_any()
    ranked.sort(key=lambda pair: (pair[0], pair[1].id))
    return names, tuple(dialect for _, dialect in ranked)


def read_signal_names(root: ContentRoot) -> tuple[SignalName, ...]:
    """The signals alone, for whoever asks no server: the dialects take far longer to read."""
    problems = Problems()
    names = _read_names(root.rules / "signals" / NAMES_FILE, root, problems)
    problems.raise_any()
    return names


def _read_names(path: Path, root: ContentRoot, problems: Problems) -> tuple[SignalName, ...]:
    top = load_mapping(path, problems, root.shown(path))
    if top is None:
        return ()
    names = tuple(_read_name(name, entry) for name, entry in top.entries("signals"))
    top.close()
    return names


def _read_name(name: str, entry: Mapping) -> SignalName:
    signal = SignalName(
        id=name,
        unit=entry.text("unit", ""),
        title=entry.text("title"),
        needs=entry.text("needs"),
        higher_is_worse=entry.flag("higher_is_worse"),
        summary=Summary(entry.choice("summary", tuple(Summary), Summary.MEDIAN)),
        family=Family(entry.choice("family", tuple(Family))),
    )
    entry.close()
    return signal


def _read_dialect(top: Mapping, stem: str, units: dict[str, str]) -> tuple[float, Dialect]:
    simulated = top.flag("simulated", False)
    parts = _Parts(top)
    expressions = tuple(_read_expression(item, units, simulated, parts) for item in top.mappings("signals"))
    parts.close()
    given = {expression.signal for expression in expressions}
    dialect = Dialect(
        id=top.text("id"),
        title=top.text("title"),
        status=top.choice("status", STATUSES),
        verified=top.text("verified", ""),
        detect=top.texts("detect"),
        model_label=top.text("model_label", ""),
        signals=expressions,
        missing=_read_absent(top, "missing", set(units) - given, "it has an expression"),
        unrecorded=_read_absent(top, "unrecorded", given, "it has no expression"),
        arms=_read_arms(top),
    )
    if dialect.id != stem:
        top.problem(f"id is {dialect.id!r} but the file is called {stem}.yaml", "id")
    prefer = top.whole("prefer")
    top.close()
    return prefer, dialect


def _read_arms(top: Mapping) -> Arms | None:
    block = top.mapping("arms", None)
    if block is None:
        return None
    arms = Arms(block.text("canary"), block.text("baseline"))
    for name, matcher in (("canary", arms.canary), ("baseline", arms.baseline)):
        if not _MATCHERS.fullmatch(matcher):
            block.problem(f"{matcher!r} is no label matcher", name, hint='For example arm="canary".')
    block.close()
    return arms


class _Parts:
    """PromQL that a dialect writes out once, under a name, and its expressions use as `{name}`."""

    def __init__(self, top: Mapping) -> None:
        self._block = top.mapping("parts", None)
        names = self._block.names if self._block else ()
        self._texts = {name: self._block.text(name) for name in names} if self._block else {}
        self._unused = set(names)

    def put_in(self, expr: str) -> str:
        """The expression written out; a part may use those above it."""
        for name in reversed(self._texts):
            if f"{{{name}}}" in expr:
                self._unused.discard(name)
                expr = expr.replace(f"{{{name}}}", self._texts[name])
        return expr

    def close(self) -> None:
        """Tell of parts that hide or are used nowhere."""
        for name in self._texts:
            if self._block and _PLACEHOLDER.fullmatch(f"{{{name}}}"):
                self._block.problem(f"{name!r} has a meaning of its own", name)
            elif self._block and name in self._unused:
                self._block.problem(f"{name!r} is used nowhere", name)


def _read_absent(top: Mapping, key: str, allowed: set[str], otherwise: str) -> tuple[AbsentSignal, ...]:
    """Signal and reason of a block of absent signals; a signal outside `allowed` is in the wrong block."""
    block = top.mapping(key, None)
    if block is None:
        return ()
    for signal in block.names:
        if signal not in allowed:
            block.problem(f"{signal!r} cannot be {key}: {otherwise}, or it is not in {NAMES_FILE}", signal)
    return tuple(AbsentSignal(signal, " ".join(block.text(signal).split())) for signal in block.names)


def _read_expression(item: Mapping, units: dict[str, str], simulated: bool, parts: _Parts) -> SignalExpression:
    signal = item.text("signal")
    expr = _FOLD.sub("", " ".join(parts.put_in(item.text("expr")).split()))
    requires = item.texts("requires")
    if signal and signal not in units:
        item.problem(f"{signal!r} is not in {NAMES_FILE}", "signal", hint="Add the signal there, with its unit.")
    if _LITERAL_WINDOW.search(expr):
        item.problem("a window is written out", "expr", hint="Write [{window}]: it depends on the scrape interval.")
    bare = _PLACEHOLDER.sub("", expr)
    for metric in requires:
        if not _METRIC.fullmatch(metric):
            item.problem(f"{metric!r} is no metric name", "requires")
        elif metric not in bare:
            item.problem(f"{metric} is required but not used", "requires")
    expression = SignalExpression(
        signal=signal,
        unit=units.get(signal, ""),
        expr=expr,
        requires=requires,
        shared=item.flag("shared", False),
        simulated=simulated,
    )
    item.close()
    return expression
