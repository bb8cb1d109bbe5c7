"""What one piece of the check found, and how all of them are told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

Figure = float | str | None

STATES = ("ok", "skipped", "failed")


class Skipped(Exception):
    """This machine lacks what the piece needs; the message says what."""


class Failed(Exception):
    """The piece ran and what it found is not as it should be; the message says what."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One piece: its state, what it has to say, and its figures with their units in the names."""

    piece: str
    state: str
    detail: str
    seconds: float = 0.0
    figures: dict[str, Figure] = field(default_factory=dict)


def from_json(piece: str, line: str, seconds: float) -> Outcome:
    """The outcome that a piece printed as its last line; a failed one where it printed none."""
    try:
        found = json.loads(line)
        outcome = Outcome(piece, str(found["state"]), str(found["detail"]), round(seconds, 1), found["figures"])
    except (ValueError, KeyError, TypeError):
        return Outcome(piece, "failed", f"ended without an outcome: {line[-200:]!r}", round(seconds, 1))
    return outcome if outcome.state in STATES else Outcome(piece, "failed", f"no state: {outcome.state!r}")


def table(outcomes: Sequence[Outcome]) -> str:
    """A line a piece, and its figures below it."""
    lines = []
    for outcome in outcomes:
        lines.append(f"{outcome.piece:<10} {outcome.state:<8} {outcome.seconds:5.1f} s  {outcome.detail}")
        lines += [f"{'':<10} {name:<36} {_shown(value)}" for name, value in outcome.figures.items()]
    return "\n".join(lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """The last line: one JSON object with every state and figure."""
    pieces = {outcome.piece: asdict(outcome) for outcome in outcomes}
    return json.dumps({"ok": all(outcome.state != "failed" for outcome in outcomes), "pieces": pieces})


def _shown(value: Figure) -> str:
    return "unknown" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
