"""Made samples that a real Prometheus and recorded pages hold alike, and the comparison of what both say about them."""

from __future__ import annotations

import json
import math
import random
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from latencydoctor.evidence.promql import Recording, evaluate_at, parse
from latencydoctor.evidence.promql.recording import JOB
from latencydoctor.evidence.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Matcher,
    Negation,
    RangeSelector,
    Selector,
)
from latencydoctor.evidence.promql.values import NAME, PromqlError, UnsupportedError
from tests.contract.backfill import Page

RELATIVE = 1e-9
ABSOLUTE = 1e-9
BOUNDS = ("0.1", "0.5", "1", "2.5", "+Inf")

Answer = dict[tuple[tuple[str, str], ...], dict[int, float]] | None
"""Values by labels and milliseconds, None for an expression that was refused."""


@dataclass(slots=True)
class Scene:
    """Samples in both forms."""

    backfill: Page = field(default_factory=Page)
    pages: list[tuple[float, str, str]] = field(default_factory=list)

    def scrape(
        self, time_s: float, instance: str, samples: dict[tuple[str, tuple[tuple[str, str], ...]], float]
    ) -> None:
        """One page of an instance."""
        lines = []
        for (name, labels), value in samples.items():
            text = ",".join(f'{key}="{held}"' for key, held in labels)
            lines.append(f"{name}{{{text}}} {_written(value)}\n")
            self.backfill.observe(time_s, name, value, **dict(labels), instance=instance, job=JOB)
        # Of every scrape, made by whoever scrapes.
        self.backfill.observe(time_s, "up", 1.0, instance=instance, job=JOB)
        self.pages.append((time_s, instance, "".join(lines)))

    def record(self) -> Recording:
        """The pages as the evaluator holds them."""
        recording = Recording()
        for time_s, instance, page in self.pages:
            recording.add_page(time_s, instance, page)
        return recording


def _written(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)


@dataclass(slots=True)
class Walk:
    """One series' made course: a counter that sometimes starts anew, or a gauge that is sometimes no number."""

    chance: random.Random
    is_counter: bool
    value: float = 0.0

    def step(self) -> float:
        """The next value."""
        if self.is_counter:
            self.value = 0.0 if self.chance.random() < 0.06 else self.value + self.chance.randrange(50)
            return self.value
        if self.chance.random() < 0.05:
            return self.chance.choice((math.nan, math.inf, -math.inf))
        self.value = self.chance.randrange(-3, 12) / 2
        return self.value


def selectors(node: Expression) -> Iterator[Selector]:
    """Every selector of an expression."""
    match node:
        case Selector():
            yield node
        case RangeSelector(selector, _):
            yield selector
        case Call(_, arguments):
            for argument in arguments:
                yield from selectors(argument)
        case Aggregation() | Negation():
            yield from selectors(node.operand)
        case Binary():
            yield from selectors(node.left)
            yield from selectors(node.right)
        case _:
            pass


def fitting_labels(selector: Selector, base: dict[str, str]) -> dict[str, str] | None:
    """Labels that a selector accepts, on top of the given ones; None when none were found."""
    labels = dict(base)
    for matcher in selector.matchers:
        if matcher.name == NAME:
            continue
        if not matcher.accepts(labels.get(matcher.name, "")):
            value = next((text for text in _guesses(matcher) if matcher.accepts(text)), None)
            if value is None:
                return None
            labels[matcher.name] = value
    return labels


def _guesses(matcher: Matcher) -> Iterator[str]:
    yield matcher.value
    for part in re.split(r"[|()]", matcher.value):
        yield re.sub(r"\.[*+]?", "0", part).replace("\\", "")
    yield from ("", "other", "0")


@dataclass(frozen=True, slots=True)
class Steps:
    """The moments of a range query, milliseconds."""

    start_ms: int
    step_ms: int
    count: int

    @property
    def moments_ms(self) -> list[int]:
        return [self.start_ms + index * self.step_ms for index in range(self.count)]

    def only(self, count: int) -> Steps:
        return replace(self, count=count)


def asked(url: str, query: str, steps: Steps) -> Answer:
    """What Prometheus says."""
    form = urllib.parse.urlencode(
        {
            "query": query,
            "start": steps.start_ms / 1000,
            "end": steps.moments_ms[-1] / 1000,
            "step": steps.step_ms / 1000,
        }
    )
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query_range", data=form.encode(), timeout=20) as answer:
            told = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            if error.code not in (400, 422):
                raise
        return None
    result: dict[tuple[tuple[str, str], ...], dict[int, float]] = {}
    for element in told["data"]["result"]:
        labels = tuple(sorted(element["metric"].items()))
        result[labels] = {round(time_s * 1000): float(value) for time_s, value in element["values"]}
    return result


def computed(recording: Recording, query: str, steps: Steps) -> Answer:
    """What the evaluator says; `UnsupportedError` passes."""
    result: dict[tuple[tuple[str, str], ...], dict[int, float]] = {}
    try:
        tree = parse(query)
        for at_ms in steps.moments_ms:
            for element in evaluate_at(recording, tree, at_ms / 1000):
                result.setdefault(element.labels, {})[at_ms] = element.value
    except UnsupportedError:
        raise
    except PromqlError:
        return None
    return result


def differences(ours: Answer, theirs: Answer) -> str:
    """Where two answers differ, empty when they do not."""
    if ours is None or theirs is None:
        return "" if ours is theirs else f"refused by {'us' if ours is None else 'Prometheus'} only"
    if set(ours) != set(theirs):
        return f"series: only ours {set(ours) - set(theirs)}, only theirs {set(theirs) - set(ours)}"
    for labels, points in ours.items():
        if set(points) != set(theirs[labels]):
            return f"{labels}: times {sorted(set(points) ^ set(theirs[labels]))}"
        for time_ms, value in points.items():
            if not _alike(value, theirs[labels][time_ms]):
                return f"{labels} at {time_ms}: ours {value!r}, theirs {theirs[labels][time_ms]!r}"
    return ""


def _alike(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or math.isclose(left, right, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
