"""The load under which Triton's pages are recorded: a few clients a model, each asking again once it is answered."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from scripts.record.triton_server import Server

QUEUE_FULL = "Exceeds maximum queue size"


@dataclass(slots=True)
class Asked:
    """What the clients saw: by model, how many requests were answered, failed, timed out or found the queue full."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, model: str, outcome: str) -> None:
        """One more."""
        with self.lock:
            self.outcomes[model, outcome] += 1

    def counted(self) -> dict[str, dict[str, int]]:
        """The counts by model and outcome, in order."""
        by_model: dict[str, dict[str, int]] = {}
        for (model, outcome), count in sorted(self.outcomes.items()):
            by_model.setdefault(model, {})[outcome] = count
        return by_model


def ask(server: Server, model: str, values: list[int], version: str = "") -> str:
    """One request for a batch of `values`; how it went."""
    tensor = {"name": "x", "datatype": "INT64", "shape": [len(values), 1], "data": values}
    if model == "stream":
        return _post(f"{server.http}/v2/models/stream/generate_stream", {"x": values[0]})
    place = f"{model}/versions/{version}" if version else model
    return _post(f"{server.http}/v2/models/{place}/infer", {"inputs": [tensor]})


def _post(url: str, body: object) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            answer.read()
        return "ok"
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        if QUEUE_FULL in text:
            return "queue_full"
        return "timed_out" if "timeout" in text.lower() else "failed"


Client = Callable[[Server, int], tuple[str, str]]


def _plain(server: Server, number: int) -> tuple[str, str]:
    # Two items a request, so that items and requests cannot be taken for each other.
    return "plain", ask(server, "plain", [number, number + 1], "1" if number % 3 else "2")


def _cached(server: Server, number: int) -> tuple[str, str]:
    return "cached", ask(server, "cached", [number // 3])


def _narrow(server: Server, number: int) -> tuple[str, str]:
    outcome = ask(server, "narrow", [number])
    # Who is turned away comes back a little later, or the refusals alone would keep the machine busy.
    time.sleep(0.02 if outcome == "queue_full" else 0)
    return "narrow", outcome


def _failing(server: Server, number: int) -> tuple[str, str]:
    time.sleep(0.02)
    return "broken", ask(server, "broken", [(number, -number, -1)[number % 3]])


def _pair(server: Server, number: int) -> tuple[str, str]:
    time.sleep(0.05)
    # The first step refuses one in four.
    return "pair", ask(server, "pair", [number, number + 1] if number % 4 else [-number, number])


def _stream(server: Server, number: int) -> tuple[str, str]:
    return "stream", ask(server, "stream", [number])


CLIENTS: tuple[tuple[Client, int], ...] = (
    (_plain, 10), (_cached, 4), (_narrow, 6), (_failing, 1), (_pair, 1), (_stream, 2),
)  # fmt: skip


def offer(server: Server, seconds: float) -> Asked:
    """All clients at work for so long; returns once the last is answered."""
    asked = Asked()
    # Other questions than in the round before, or the cache would know them all.
    first = int(time.time()) % 100_000 * 1000

    def work(client: Client) -> None:
        ends_s = time.monotonic() + seconds
        number = first
        while time.monotonic() < ends_s:
            number += 1
            asked.add(*client(server, number))

    threads = [threading.Thread(target=work, args=(client,)) for client, count in CLIENTS for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return asked


def at_once(server: Server, model: str, clients: int, rounds: int) -> Asked:
    """Rounds of one new question that all clients ask at the same time."""
    asked = Asked()
    gate = threading.Barrier(clients)
    first = int(time.time()) % 100_000 * 1000 + 500

    def work() -> None:
        for turn in range(rounds):
            gate.wait()
            asked.add(model, ask(server, model, [first + turn]))

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return asked
