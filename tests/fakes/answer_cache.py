"""An answer cache in one file, so that it outlives the process that writes to it, as the real one does."""

from __future__ import annotations

import json
import os
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.model.popular import Popularity, PopularQuestion, WarmBatch, WarmedBatch

ONCE, ASKED = 900, 20


def name(number: int) -> str:
    """The id of a popular question."""
    return f"{number:016x}"


class FakeAnswerCache:
    """Implements `AnswerCache` for `hot` popular questions, of which the last `unknown` have no known answer.

    `waits_ms` is how long questions queue; above an order's limit nothing is computed. `fails_at` makes the call with
    that number fail.
    """

    def __init__(self, path: Path, hot: int = 450, unknown: int = 0) -> None:
        self.path = path
        self.hot, self.unknown = hot, unknown
        self.waits_ms = 0.0
        self.fails_at = 0
        self.calls: list[str] = []
        self.batches: list[WarmBatch] = []

    @property
    def entries(self) -> dict[str, str]:
        """Run by id; "" for an entry that is nobody's."""
        found: dict[str, str] = json.loads(self.path.read_text()) if self.path.exists() else {}
        return found

    def put(self, entries: dict[str, str]) -> None:
        """Everything that is in the cache now."""
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(entries, sort_keys=True))
        os.replace(temporary, self.path)  # noqa: PTH105  (the crash driver dies at calls of `os`)

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if len(self.calls) == self.fails_at:
            raise KnownError("the gateway does not answer")

    def popularity(self) -> Popularity:
        self._called("popularity")
        known = self.hot - self.unknown
        here = self.entries
        questions = tuple(
            PopularQuestion(name(n), ASKED, ASKED, n < known, 250.0 if name(n) in here else None)
            for n in range(self.hot)
        )
        asked = self.hot * ASKED + ONCE
        missed = asked - ASKED * sum(one.left_s is not None for one in questions)
        return Popularity(60.0, asked, missed, self.hot + ONCE, ONCE, questions, (("cache.ttl_seconds", "300"),))

    def warm(self, batch: WarmBatch) -> WarmedBatch:
        self._called("warm")
        self.batches.append(batch)
        entries, left = self.entries, batch.compute
        written, present, pending = [], [], []
        for one, _ in batch.entries:
            if int(one, 16) >= self.hot - self.unknown:
                if left == 0 or self.waits_ms > batch.wait_limit_ms:
                    pending.append(one)
                    continue
                left -= 1
            if one in entries:
                present.append(one)
            else:
                entries[one] = batch.run_id
                written.append(one)
        self.put(entries)
        return WarmedBatch(tuple(written), tuple(present), tuple(pending), (), self.waits_ms)

    def tagged(self, run_id: str) -> tuple[str, ...]:
        self._called("tagged")
        return tuple(sorted(one for one, run in self.entries.items() if run == run_id))

    def drop(self, run_id: str) -> int:
        self._called("drop")
        before = self.entries
        self.put({one: run for one, run in before.items() if run != run_id})
        return len(before) - len(self.entries)
