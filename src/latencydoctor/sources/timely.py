"""Takes from what may block for ever only as long as there is time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")

AHEAD = 8
"""Items that are fetched before they are asked for; more would only take memory."""

_LOOK_AGAIN_S = 0.1


class Timely(Generic[Item]):
    """Iterates once over what `start` yields, until `ends_s` (monotonic); `is_over` says whether that cut it short.

    The items are fetched by a thread of their own, because nothing can interrupt an open or a read that waits for a
    pipe's other end or a network folder. It is a daemon: what it waits for must not keep the program from ending.
    """

    def __init__(self, start: Callable[[], Iterable[Item]], ends_s: float) -> None:
        self._start = start
        self._ends_s = ends_s
        self._fetched: Queue[Item | None] = Queue(AHEAD)
        self._given_up = threading.Event()
        self._is_whole = False
        self.is_over = False

    def __iter__(self) -> Iterator[Item]:
        threading.Thread(target=self._fetch, daemon=True).start()
        try:
            while (left_s := self._ends_s - time.monotonic()) > 0:
                try:
                    item = self._fetched.get(timeout=left_s)
                except Empty:
                    break
                if item is None:
                    if not self._is_whole:
                        raise RuntimeError("what was to be read broke off: that is not its end")
                    return
                yield item
            self.is_over = True
        finally:
            self._given_up.set()

    def _fetch(self) -> None:
        try:
            # Held by the loop alone, so that it ends, and closes what it has open, as soon as the loop does.
            for item in self._start():
                self._hand_over(item)
                if self._given_up.is_set():
                    return
            self._is_whole = True
        finally:
            self._hand_over(None)

    def _hand_over(self, item: Item | None) -> None:
        while not self._given_up.is_set():
            try:
                self._fetched.put(item, timeout=_LOOK_AGAIN_S)
            except Full:
                continue
            return
