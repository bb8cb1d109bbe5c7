"""PromQL over metrics pages, for where there is no Prometheus: the part of the language that the dialects use.

It means what Prometheus 2 means by it (a range holds the samples on both of its ends); a test compares the two value by
value. Anything not evaluated here raises `UnsupportedError`: there are no approximations.
"""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.evidence.promql.evaluation import Moment
from latencydoctor.evidence.promql.page import PageError
from latencydoctor.evidence.promql.recording import PageCount, Recording
from latencydoctor.evidence.promql.syntax import Expression, RangeSelector, parse
from latencydoctor.evidence.promql.values import Element, PromqlError, Samples, UnsupportedError

__all__ = [
    "Element",
    "Expression",
    "PageCount",
    "PageError",
    "PromqlError",
    "RangeSelector",
    "Recording",
    "Samples",
    "UnsupportedError",
    "evaluate",
    "evaluate_at",
    "parse",
    "samples_at",
]


def evaluate(text_pages: Sequence[tuple[float, str, str]], expr: str, at_s: float) -> tuple[Element, ...]:
    """What an expression gives at a moment over pages of (seconds since the epoch, instance, text), in any order.

    A number comes as one element without labels. Raises `PromqlError` for an expression that Prometheus would refuse,
    `UnsupportedError` for one that is not evaluated here, and `PageError` for a page that is broken.
    """
    recording = Recording()
    for time_s, instance, page in sorted(text_pages, key=lambda one: one[0]):
        recording.add_page(time_s, instance, page)
    return evaluate_at(recording, parse(expr), at_s)


def evaluate_at(recording: Recording, tree: Expression, at_s: float) -> tuple[Element, ...]:
    """What a parsed expression gives at a moment; see `evaluate`."""
    value = Moment(recording, round(at_s * 1000)).value(tree)
    return (Element((), value),) if isinstance(value, float) else tuple(value)


def samples_at(recording: Recording, tree: RangeSelector, at_s: float) -> tuple[Samples, ...]:
    """The raw samples of a range selector."""
    return tuple(Moment(recording, round(at_s * 1000)).samples(tree))
