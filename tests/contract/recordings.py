"""Recorded metrics pages of real servers, and what the dialects read from them as a diagnosis would."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.promql import Recording, evaluate_at, parse
from latencydoctor.evidence.queries import render
from latencydoctor.model.evidence import Selection
from latencydoctor.model.rule import Dialect, SignalExpression

PAGES = Path(__file__).parent / "pages"
SIGNALS, DIALECTS = read_signals(locate())

Scrape = tuple[float, str, str]
"""When (seconds since the epoch), which instance, and the text of the page."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording: its folder and what its recipe says of the pages in it."""

    folder: Path
    told: dict[str, Any]

    def scrape(self, name: str, instance: str = "it:8002") -> Scrape:
        """One page as a scrape."""
        return float(self.told["pages"][name]["at_s"]), instance, self.text(name)

    def text(self, name: str) -> str:
        """One page."""
        return (self.folder / f"{name}.prom").read_text(encoding="utf-8")

    def clients(self, name: str) -> Any:
        """What the clients saw between the page before and this one."""
        return self.told["pages"][name]["clients"]

    def statistics(self, name: str) -> list[dict[str, Any]]:
        """What Triton's statistics API said at that moment, a record for each version of each model."""
        text = (self.folder / f"{name}.stats.json").read_text(encoding="utf-8")
        return list(json.loads(text)["model_stats"])


def recorded(dialect: str, name: str) -> Recorded:
    """A recording by the name of its folder."""
    folder = PAGES / dialect / name
    return Recorded(folder, yaml.safe_load((folder / "recording.yaml").read_text(encoding="utf-8")))


def dialect(name: str) -> Dialect:
    """A dialect by its id."""
    return next(item for item in DIALECTS if item.id == name)


def expressions(name: str, signal: str) -> tuple[SignalExpression, ...]:
    """A dialect's expressions for a signal, best first."""
    return tuple(item for item in dialect(name).signals if item.signal == signal)


def names_on(scrapes: Sequence[Scrape]) -> frozenset[str]:
    """The metric names that have samples."""
    lines = (line for _, _, text in scrapes for line in text.splitlines() if line and not line.startswith("#"))
    return frozenset(line.split("{")[0].split(" ")[0] for line in lines)


@functools.lru_cache(maxsize=8)
def _held(scrapes: tuple[Scrape, ...]) -> Recording:
    """The pages as the evaluator holds them; parsing them takes longer than a query."""
    recording = Recording()
    for time_s, instance, text in sorted(scrapes):
        recording.add_page(time_s, instance, text)
    return recording


def ask(scrapes: Sequence[Scrape], query: str) -> float | None:
    """A query's single value at the time of the last scrape, None where it gives nothing or no number."""
    at_s = max(time_s for time_s, _, _ in scrapes)
    elements = evaluate_at(_held(tuple(scrapes)), parse(query), at_s)
    assert len(elements) < 2, f"{len(elements)} series: {query}"
    return elements[0].value if elements and math.isfinite(elements[0].value) else None


def window_of(scrapes: Sequence[Scrape]) -> float:
    """A window that holds all scrapes and hardly more, so that a rate is the growth between first and last."""
    times = [time_s for time_s, _, _ in scrapes]
    return math.ceil((max(times) - min(times)) * 1000 + 1) / 1000


def ask_template(
    scrapes: Sequence[Scrape], template: str, selection: Selection, model_label: str = "model"
) -> float | None:
    """The value of an expression with placeholders over a window of all scrapes."""
    expression = SignalExpression("", "", template, (), False, False)
    return ask(scrapes, render(expression, selection, window_of(scrapes), model_label))


def read(scrapes: Sequence[Scrape], name: str, signal: str, selection: Selection) -> float | None:
    """What a dialect reads for a signal: its first expression that gives something; None is a gap."""
    present = names_on(scrapes)
    for item in expressions(name, signal):
        if all(metric in present for metric in item.requires):
            value = ask_template(scrapes, item.expr, selection, dialect(name).model_label or "model")
            if value is not None:
                return value
    return None


Sample = tuple[str, dict[str, str], float]
"""A metric's name, its labels, its value."""

_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="([^"]*)"')


def samples(text: str) -> list[Sample]:
    """The samples of a page; the recorded ones have no quotes or timestamps in them."""
    found: list[Sample] = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = _LINE.match(line)
            assert match is not None, line
            found.append((match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])))
    return found


def page_of(items: Iterable[Sample]) -> str:
    """The page that has these samples."""
    lines = []
    for name, labels, value in items:
        inner = ",".join(f'{label}="{held}"' for label, held in labels.items())
        lines.append(f"{name}{{{inner}}} {'NaN' if math.isnan(value) else repr(value)}\n")
    return "".join(lines)


def derived(scrape: Scrape, change: Callable[[Sample], Iterable[Sample]], more: Iterable[Sample] = ()) -> Scrape:
    """A recorded scrape with each of its samples changed by one rule, and some added."""
    time_s, instance, text = scrape
    return time_s, instance, page_of([*(new for one in samples(text) for new in change(one)), *more])


def total(text: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that carry these labels, read without PromQL."""
    return sum(
        value
        for held, found, value in samples(text)
        if held == name and all(found.get(label) == wanted for label, wanted in labels.items())
    )


def growth(scrapes: Sequence[Scrape], name: str, **labels: str) -> float:
    """By how much that sum grew from the first scrape to the last."""
    ordered = sorted(scrapes, key=lambda one: one[0])
    return total(ordered[-1][2], name, **labels) - total(ordered[0][2], name, **labels)


def seconds(scrapes: Sequence[Scrape]) -> float:
    """The time from the first scrape to the last."""
    times = [time_s for time_s, _, _ in scrapes]
    return max(times) - min(times)
