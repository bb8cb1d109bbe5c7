"""Something about settings that is worth a look although nothing has failed yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """`what` is the case, `why` it matters, and what to `write` instead; `id` is its rule's name."""

    id: str
    what: str
    why: str
    write: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.write}"
