"""One telling of an event, on its way from a line to the count."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from latencydoctor.evidence.logs.compiled import Way

KEPT_BYTES = 4096
KEPT_CHARACTERS = 2048
"""How much of a line is kept while it is not yet sure whether it counts."""

_COMPARED_CHARACTERS = 400
_FIGURES = re.compile(r"0x[0-9a-fA-F]{1,16}|\d{1,20}(?:\.\d{1,20})?")


@dataclass(slots=True)
class At:
    """A place in a file: a moment (None where the line has none) and a line's number."""

    time_s: float | None
    number: int

    def gap_s(self, other: At) -> float | None:
        """How much later this is than another, seconds; None where one of them has no time."""
        if self.time_s is None or other.time_s is None:
            return None
        return self.time_s - other.time_s


@dataclass(slots=True)
class Told(At):
    """What one record says of one class.

    `number` is its line's in the stream, `data` that line as it stands there. `source` is where it comes from (a pod,
    a service; empty: the file), `teller` the same as a reader would name it, with its rank. `began_s` is when it began,
    as far as the line says so, and `until_s` the end of what was folded into it. `precise` says that the line's own
    stamp is finer than a second, so that lines written twice can be told from events that look alike. `only_echoes`
    marks a line that may merely tell again, `reprint` an exception that a dying process prints once more, `anywhere` an
    event that lines of any source decide on, as for the kernel's.
    """

    way: Way
    text: str
    data: bytes
    numbers: dict[str, float] = field(default_factory=dict)
    count: int = 1
    only_echoes: bool = False
    precise: bool = False
    source: str = ""
    teller: str = ""
    rank: str = ""
    program: str = ""
    reprint: bool = False
    anywhere: bool = False
    file_line: str = ""
    began_s: float | None = None
    until_s: float | None = None
    echoes: int = 0

    @property
    def rule_id(self) -> str:
        """The class."""
        return self.way.rule.id

    @property
    def words(self) -> str:
        """The message without its figures, by which tellings are compared."""
        return _FIGURES.sub("#", self.text[:_COMPARED_CHARACTERS])


def near(one: At, other: At, within_s: float, within_lines: int) -> bool:
    """Whether two places of one file lie close together; their lines say so where their times cannot."""
    gap_s = one.gap_s(other)
    return abs(one.number - other.number) <= within_lines if gap_s is None else abs(gap_s) <= within_s
