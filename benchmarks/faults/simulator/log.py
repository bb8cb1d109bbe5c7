"""What a run leaves behind: tables of events, and samples of everything that is a state."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Table:
    """Rows of numbers under named columns, cheap to add to."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self._values = array("d")
        self.add = self._values.extend

    def arrays(self) -> dict[str, Floats]:
        """Each column as an array, in the order rows were added (not of time)."""
        rows = np.frombuffer(self._values, dtype=np.float64).reshape(-1, len(self.columns))
        return {name: rows[:, index].copy() for index, name in enumerate(self.columns)}


class Log:
    """All tables. Times are seconds after the range's start; `_ms` columns are milliseconds."""

    def __init__(self) -> None:
        # A client's request when it is over. status 499: given up by the client.
        self.requests = Table("time", "sent", "status", "e2e_ms")
        # A try of the proxy at a server; upstream_ms includes connecting. connect_ms -1: on an open connection.
        self.tries = Table("time", "replica", "status", "upstream_ms", "connect_ms")
        # The proxy's own events: kind 0 retry, 1 try timed out, 2 breaker open, 3 connection opened.
        self.proxy = Table("time", "kind")
        self.lookups = Table("time", "failed", "ms")
        # A request as its server counts it; total_ms includes a pipeline's CPU step. cached: 0 no cache, 1 hit, 2 miss,
        # 3 duplicate (local cache).
        self.served = Table(
            "time",
            "replica",
            "total_ms",
            "server_ms",
            "queue_ms",
            "input_ms",
            "infer_ms",
            "output_ms",
            "cached",
            "cache_ms",
        )
        # reason: 0 REJECTED, 1 CANCELED, 2 BACKEND, 3 OTHER, 4 uncounted (queue full), 5 wrong request
        self.failed = Table("time", "replica", "reason")
        self.executions = Table("time", "replica", "items")
        self.received = Table("time", "replica")
        # A pipeline's CPU step.
        self.prepared = Table("time", "replica", "queue_ms", "infer_ms")
        # A request of a language model. reason: 0 stop, 1 length, 2 abort, 3 error.
        self.generated = Table(
            "time", "replica", "reason", "e2e_s", "queue_s", "prefill_s", "decode_s", "prompt", "output", "hit_tokens"
        )
        self.first_tokens = Table("time", "replica", "ttft_s")
        self.steps = Table("time", "replica", "step_s", "tokens", "sequences", "count")
        self.preemptions = Table("time", "replica")
        # Redis: kind 0 hgetall hit, 1 hgetall miss, 2 hmset of a new key, 3 hmset again, 4 hmset refused, 5 eviction
        self.redis = Table("time", "kind", "ms")
        self.restarts = Table("time", "replica", "killed")
        self.model_loads = Table("time", "replica", "seconds")


class Samples:
    """One value every few seconds and name: what a gauge would show, or a counter's total."""

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = {}

    def add(self, name: str, value: float) -> None:
        self._values.setdefault(name, array("d")).append(value)

    def array(self, name: str) -> Floats:
        """The samples, the first one interval after the start of the range."""
        return np.frombuffer(self._values[name], dtype=np.float64)
