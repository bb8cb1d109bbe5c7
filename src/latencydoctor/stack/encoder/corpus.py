"""The texts that are encoded ahead: the FAQ's index, and every known question with and without an order number."""

from __future__ import annotations

from latencydoctor.stack.encoder.encodings import Corpus
from latencydoctor.stack.faq_entries import load_entries

ORDER_SUFFIX = " (order 0)"
"""How customers give an order number. Numbers are masked before tokenising, so this one stands for all."""


def faq_corpus() -> Corpus:
    """The corpus of the project's own FAQ."""
    index: list[str] = []
    answers: list[int] = []
    known: list[str] = []
    for number, entry in enumerate(load_entries()):
        index += entry.indexed
        answers += [number] * len(entry.indexed)
        known += [*entry.indexed, *entry.held_out]
    others = [text + suffix for text in known for suffix in ("", ORDER_SUFFIX)]
    return Corpus(tuple(index), tuple(answers), tuple(others))
