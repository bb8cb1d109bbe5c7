"""Which arm answers a session: a fixed share of the sessions goes to the canary, always the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

_BUCKETS = 2**32


@dataclass(frozen=True, slots=True)
class Canary:
    """The share of the sessions that the canary answers, 0..1."""

    share_ratio: float = 0.0

    def arm(self, session: str) -> str:
        """`canary` for the share of the sessions, else `stable`; the same for a session until the share moves.

        A larger share keeps all sessions of the smaller one.
        """
        if self.share_ratio <= 0:
            return "stable"
        bucket = int.from_bytes(blake2b(session.encode(), digest_size=4).digest())
        return "canary" if bucket < self.share_ratio * _BUCKETS else "stable"
