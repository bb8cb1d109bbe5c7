"""Which services a Prometheus's answer means, and the fewest label matchers that pick each of them out.

No job name, port or label convention is assumed: a service is a distinct set of labels once those that tell replicas
apart are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from latencydoctor.evidence.presence import PLACE_LABELS
from latencydoctor.evidence.queries import quote
from latencydoctor.model.readings import Candidate
from latencydoctor.sources.answers import Labelled


def candidates_of(
    model_labels: Sequence[str], services: Sequence[tuple[Labelled, ...]], places: Sequence[tuple[Labelled, ...]]
) -> tuple[Candidate, ...]:
    """The services, each with the fewest matchers that pick it out; several front ends count as several services."""
    found: list[tuple[str, dict[str, str]]] = []
    spoken: dict[str, str] = {}
    # One server may speak two dialects, each with a label of its own for the same model.
    naming = {*model_labels, "__name__"}
    for label, elements in zip(model_labels, services, strict=True):
        for element in elements:
            rest = {name: value for name, value in element.labels.items() if name not in naming}
            model = element.labels.get(label, "")
            spoken.setdefault(model, label)
            found.append((model, rest))
    for elements in places:
        # One model behind two gateways is two services; with several models the models are asked for first.
        if len(elements) > 1 and len(found) <= 1:
            model = found[0][0] if found else ""
            found = [(model, element.labels) for element in elements]
    telling = _telling_labels([labels for _, labels in found])
    candidates = {
        Candidate(model, ",".join(f"{name}={quote(labels.get(name, ''))}" for name in telling), spoken.get(model, ""))
        for model, labels in found
    }
    return tuple(sorted(candidates, key=lambda candidate: (candidate.model, candidate.selector)))


def _telling_labels(all_labels: Sequence[Mapping[str, str]]) -> list[str]:
    """The labels whose values differ: one that alone tells all apart if there is one, else all that differ."""
    names = {name for labels in all_labels for name in labels}
    differing = [name for name in names if len({labels.get(name, "") for labels in all_labels}) > 1]
    rank = {name: index for index, name in enumerate(PLACE_LABELS)}
    differing.sort(key=lambda name: (rank.get(name, len(rank)), name))
    groups = len({tuple(labels.get(name, "") for name in differing) for labels in all_labels})
    for name in differing:
        if len({labels.get(name, "") for labels in all_labels}) == groups:
            return [name]
    return differing


def fullest_copy(label: str, elements: Sequence[Labelled]) -> str:
    """The matcher of the copy that holds the most samples; empty unless there are at least two copies."""
    held = sorted((-element.samples[-1][1], element.labels.get(label, "")) for element in elements if element.samples)
    return f"{label}={quote(held[0][1])}" if len(held) > 1 else ""
