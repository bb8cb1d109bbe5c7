"""The FAQ's entries as records: what the index is built from, and what accuracy is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from latencydoctor.errors import ContentError, Location

FAQ_FILE = Path(__file__).parent / "faq" / "faq.yaml"


@dataclass(frozen=True, slots=True)
class FaqEntry:
    """One answer with the ways to ask for it; its number is its place in the file."""

    answer_id: str
    topic: str
    answer: str
    indexed: tuple[str, ...]
    """The question and its paraphrases: the index is built from these."""
    held_out: tuple[str, ...]
    """Paraphrases that are never indexed: accuracy is measured on them."""


def load_entries(path: Path = FAQ_FILE) -> tuple[FaqEntry, ...]:
    """All entries in the file's order; ContentError when the file, which comes with the program, is damaged."""
    try:
        topics = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["topics"]
        return tuple(
            FaqEntry(
                answer_id=entry["id"],
                topic=topic["id"],
                answer=entry["answer"],
                indexed=(entry["question"], *entry["index"]),
                held_out=tuple(entry["held_out"]),
            )
            for topic in topics
            for entry in topic["entries"]
        )
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        hint = "Install the program again."
        raise ContentError(f"the FAQ cannot be read: {error!r}", hint=hint, location=Location(str(path))) from error
