"""What PromQL computes with: labelled values, and the ways in which an expression can fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NAME = "__name__"

Labels = tuple[tuple[str, str], ...]
"""Label names with their values, sorted by name; an empty value is the same as no label, and is left out."""


class PromqlError(Exception):
    """The expression has no value here, and why: what Prometheus would refuse too."""


class UnsupportedError(PromqlError):
    """The expression uses a part of PromQL that is not evaluated here; `str()` names it."""


@dataclass(frozen=True, slots=True)
class Element:
    """One value with its labels, as in an instant vector."""

    labels: Labels
    value: float

    def get(self, name: str) -> str:
        """A label's value, empty when it is not there."""
        return get(self.labels, name)

    def without_name(self, value: float) -> Element:
        """The same series with another value, no longer what its metric name says."""
        return Element(drop(self.labels, (NAME,)), value)


Vector = list[Element]


@dataclass(frozen=True, slots=True)
class Samples:
    """One series over a stretch of time: `times_ms` ascending since the epoch, `values` beside them."""

    labels: Labels
    times_ms: tuple[int, ...]
    values: tuple[float, ...]


def make_labels(pairs: Iterable[tuple[str, str]]) -> Labels:
    """Labels from pairs in any order; empty values are left out."""
    return tuple(sorted(pair for pair in pairs if pair[1]))


def get(labels: Labels, name: str) -> str:
    """A label's value, empty when it is not there."""
    for key, value in labels:
        if key == name:
            return value
    return ""


def keep(labels: Labels, names: Sequence[str]) -> Labels:
    """Only the labels named."""
    return tuple(pair for pair in labels if pair[0] in names)


def drop(labels: Labels, names: Sequence[str]) -> Labels:
    """All labels but those named."""
    return tuple(pair for pair in labels if pair[0] not in names)


def put(labels: Labels, name: str, value: str) -> Labels:
    """The labels with one set anew, or taken away when the value is empty."""
    return make_labels([*drop(labels, (name,)), (name, value)])


def distinct(vector: Vector) -> Vector:
    """The vector itself; `PromqlError` when two of its elements carry the same labels."""
    if len({element.labels for element in vector}) < len(vector):
        raise PromqlError("the result would hold two series with the same labels")
    return vector


def shown(labels: Labels) -> str:
    """Labels as PromQL writes them, for messages."""
    return "{" + ", ".join(f"{name}={value!r}" for name, value in labels) + "}"
