"""What a target keeps of the settings it ran before, and what is known of when an incident began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KeptGeneration:
    """Settings that were in effect from `in_effect_s` (seconds since the epoch) on.

    `text` is the file's, byte for byte, `digest` that of its content without the generation line, `settings` its
    scalars by dotted key. `owner` is who wrote it, empty where that is not known.
    """

    generation: int
    in_effect_s: float
    owner: str
    text: str
    digest: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Onset:
    """When an incident began: in the window of `window_s` seconds that starts at `since_s` (seconds since the epoch).

    `earlier_s` are the starts of earlier bad stretches in the range that was looked at. `baseline` holds signals by
    name as they were before the onset.
    """

    since_s: float
    window_s: float
    earlier_s: tuple[float, ...] = ()
    baseline: Mapping[str, float] = field(default_factory=dict)
