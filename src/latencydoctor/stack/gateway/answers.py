"""The FAQ's answers in the order of their numbers: what the model's `answer_index` stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from latencydoctor.errors import ContentError, Location

FAQ_FILE = Path(__file__).parents[1] / "faq" / "faq.yaml"


@dataclass(frozen=True, slots=True)
class FaqAnswer:
    """One answer of the FAQ."""

    answer_id: str
    text: str


def load_answers(path: Path = FAQ_FILE) -> tuple[FaqAnswer, ...]:
    """All answers, topic after topic as in the file, which is how the encoder's index numbers them.

    ContentError when the file, which comes with the program, is damaged.
    """
    try:
        topics = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["topics"]
        return tuple(FaqAnswer(entry["id"], entry["answer"]) for topic in topics for entry in topic["entries"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        hint = "Install the program again."
        raise ContentError(f"the FAQ cannot be read: {error}", hint=hint, location=Location(str(path))) from error
