"""What one diagnosis may cost a Prometheus: so many requests, so many bytes of answers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

MOST_REQUESTS = 20
MOST_BYTES = 5 * 1024 * 1024
"""Both from the issue tracker: a doctor must not add to the load of a stack that is ill already."""


@dataclass(slots=True)
class Allowance:
    """Counts down from both limits; threads share it. Bytes are those of unpacked answers."""

    requests: int = MOST_REQUESTS
    bytes: int = MOST_BYTES
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_request(self) -> bool:
        """Whether one more request may be sent; counts it."""
        with self._lock:
            self.requests -= 1
            return self.requests >= 0

    def take_bytes(self, count: int) -> bool:
        """Whether so many more bytes may be kept; counts them."""
        with self._lock:
            self.bytes -= count
            return self.bytes >= 0
