"""Which PromQL gives which signal here: the first dialect whose metrics are present, rendered for one service."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from latencydoctor.model.evidence import Gap, GapReason, Selection
from latencydoctor.model.rule import Dialect, SignalExpression, SignalName

SCRAPES_A_WINDOW = 4
"""A rate needs two samples; four tolerate a missed scrape and the unaligned edges (architecture, 'Window')."""

SHORTEST_WINDOW_S = 5.0
MOST_WINDOWS = 720
"""A range is cut into at most this many windows: an hour of 5 s windows."""

FEWEST_WINDOWS = 12
"""Five windows are judged and a baseline needs some before them: with slow scraping the range is made longer."""

ASSUMED_SCRAPE_INTERVAL_S = 15.0
"""Used when the samples do not tell; the most common configured interval."""

_PLACEHOLDER = re.compile(r"\{(sel|front|window|twice)\}")


@dataclass(frozen=True, slots=True)
class Offer:
    """An expression, and the label that names models in its dialect (empty where the dialect has none)."""

    expression: SignalExpression
    model_label: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A signal's possible expressions, best first; the others are asked only when the first gives nothing."""

    signal: str
    offers: tuple[Offer, ...]

    @property
    def expressions(self) -> tuple[SignalExpression, ...]:
        """The expressions alone."""
        return tuple(offer.expression for offer in self.offers)


@dataclass(frozen=True, slots=True)
class Present:
    """The metric names seen: `names` under the user's selector, `shared_names` without it."""

    names: Collection[str]
    shared_names: Collection[str]

    def has(self, expression: SignalExpression) -> bool:
        """Whether everything the expression requires is there."""
        names = self.shared_names if expression.shared else self.names
        return all(name in names for name in expression.requires)


def choose(
    present: Present, dialects: Sequence[Dialect], signals: Sequence[SignalName]
) -> tuple[tuple[Choice, ...], tuple[Gap, ...]]:
    """For each signal its usable expressions in the dialects' order, and a gap for each signal without any.

    Signals that no dialect offers at all come from elsewhere (configuration, NVML) and are left to those sources.
    """
    choices: list[Choice] = []
    gaps: list[Gap] = []
    for name in signals:
        offered = [
            Offer(item, dialect.model_label)
            for dialect in dialects
            for item in dialect.signals
            if item.signal == name.id
        ]
        usable = tuple(offer for offer in offered if present.has(offer.expression))
        if usable:
            choices.append(Choice(name.id, usable))
        elif offered:
            gaps.append(Gap(name.id, GapReason.NO_SERIES, "no metric for it was found", name.needs))
    return tuple(choices), tuple(gaps)


def detected(present: Present, dialects: Sequence[Dialect]) -> tuple[str, ...]:
    """The dialects spoken here, in order."""
    names = {*present.names, *present.shared_names}
    return tuple(dialect.id for dialect in dialects if names.intersection(dialect.detect))


def quote(value: str) -> str:
    """A label value as a PromQL string; label values are foreign text."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def matchers(selection: Selection, model_label: str) -> str:
    """The service's label matchers without braces, its model first; empty when nothing is selected."""
    model = f"{model_label}={quote(selection.model)}" if selection.model and model_label else ""
    return ",".join(part for part in (model, selection.selector.strip().strip(",")) if part)


def narrowed(selection: Selection, matchers_: str) -> Selection:
    """The selection with further matchers (of one copy of everything, say)."""
    return replace(selection, selector=",".join(part for part in (selection.selector.strip(" ,"), matchers_) if part))


def render(expression: SignalExpression, selection: Selection, window_s: float, model_label: str) -> str:
    """The PromQL of an expression for one service and one window length."""
    parts = {
        "sel": matchers(selection, model_label),
        "front": matchers(selection, ""),
        "window": span(window_s),
        "twice": span(2 * window_s),
    }
    template = expression.expr
    for name in [name for name, text in parts.items() if not text]:
        # `up{}` and `up{a="b",}` are valid, but people are to read and paste these.
        template = template.replace(f"{{{{{name}}}}}", "").replace(f",{{{name}}}}}", "}")
    # One pass: what a hostile model name brings along is not looked at again.
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], template)


def window_length_s(scrape_interval_s: float | None) -> float:
    """One window: four scrapes, at least 5 s, in whole seconds."""
    interval = scrape_interval_s or ASSUMED_SCRAPE_INTERVAL_S
    return max(float(math.ceil(SCRAPES_A_WINDOW * interval)), SHORTEST_WINDOW_S)


def window_count(since_s: float, window_s: float) -> int:
    """How many windows cover the range asked for, within `FEWEST_WINDOWS` and `MOST_WINDOWS`."""
    return min(max(math.floor(since_s / window_s), FEWEST_WINDOWS), MOST_WINDOWS)


def span(seconds: float) -> str:
    """A PromQL duration; milliseconds where the seconds are not whole (Prometheus knows no decimal durations)."""
    whole = round(seconds)
    return f"{whole}s" if abs(seconds - whole) < 1e-9 else f"{round(seconds * 1000)}ms"
