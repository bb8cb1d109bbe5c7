"""A model rebuilt at a lower precision: what it was measured to be, and the files it consists of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

MAX_DROP_RATIO = 0.01
"""A build whose upper 95 % bound of the drop of top-1 reaches this is refused (the mission's)."""

MIN_QUESTIONS = 1000
"""Fewer held-out questions prove nothing of the kind (the mission's)."""


@dataclass(frozen=True, slots=True)
class BuildTime:
    """What one batch of this size took on one thread before and after, ms; `ratio` is before / after, side by side."""

    size: int
    before_ms: float
    after_ms: float
    ratio: float


@dataclass(frozen=True, slots=True)
class ModelBuild:
    """A version of a model ready to be placed: `files` are (name, bytes, SHA-256 in hex), `digest` covers them all.

    The drop of top-1 is measured on `questions` held-out questions; `drop_upper_ratio` is its upper 95 % bound.
    """

    folder: str
    precision: str
    recipe: str
    bytes_before: int
    bytes_after: int
    questions: int
    top1_before_ratio: float
    top1_after_ratio: float
    drop_ratio: float
    drop_upper_ratio: float
    times: tuple[BuildTime, ...]
    cpu: str
    vnni: bool
    others: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, int, str], ...]
    digest: str

    @property
    def size_ratio(self) -> float:
        """How many times smaller the model is."""
        return self.bytes_before / self.bytes_after


def files_digest(digests: Mapping[str, str]) -> str:
    """One digest (SHA-256, hex) of a folder's files, given those of their contents by name; the order says nothing."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
