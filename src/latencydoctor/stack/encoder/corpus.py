"""The texts that are encoded ahead: the FAQ's index, and every known question with and without an order number."""

from __future__ import annotations

from pathlib import Path

import yaml

from latencydoctor.stack.encoder.encodings import Corpus


def faq_corpus() -> Corpus:
    """The corpus of the project's own FAQ."""
    text = (Path(__file__).parent.parent / "faq" / "faq.yaml").read_text()
    topics = yaml.load(text, yaml.CSafeLoader)["topics"]
    entries = [e for t in topics for e in t["entries"]]
    index, answers, others = [], [], []
    for n, e in enumerate(entries):
        for q in [e["question"], *e["index"]]:
            index.append(q)
            answers.append(n)
        for q in [e["question"], *e["index"], *e["held_out"]]:
            others += [q, f"{q} (order 0)"]
    return Corpus(tuple(index), tuple(answers), tuple(others))
