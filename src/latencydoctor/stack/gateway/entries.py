"""What the cache holds: the key of a question and the value that stands for its answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

KEY_PREFIX = "faq:"
"""Every cached answer has a key that starts so; nothing else in the cache does."""

MAX_RUN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached answer: its place in the FAQ, its score (cosine, -1..1), and the run of a fix that put it there."""

    answer_index: int
    score: float
    run: str = ""


def cache_key(model_version: str, normalised: str) -> str:
    """Key of the answer to a normalised question; `model_version` keeps the answers of two models apart."""
    return f"{KEY_PREFIX}{model_version}:{normalised}"


def dump_entry(entry: Entry) -> bytes:
    """The value to store."""
    tag = {"run": entry.run} if entry.run else {}
    return json.dumps({"answer_index": entry.answer_index, "score": round(entry.score, 4), **tag}).encode()


def read_entry(value: bytes | str) -> Entry | None:
    """The entry a stored value stands for; None for anything else, which then counts as a miss."""
    try:
        found = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    index, score, run = found.get("answer_index"), found.get("score"), found.get("run", "")
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not -1.01 <= score <= 1.01:
        return None
    if not isinstance(run, str) or len(run) > MAX_RUN_CHARACTERS:
        return None
    return Entry(index, float(score), run)
