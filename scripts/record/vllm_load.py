"""Load for a vLLM: a number of clients that ask one request after the other, among them impatient and mistaken ones.

PYTHONPATH=. python -m scripts.record.vllm_load PORT CLIENTS      until its input ends; says what the clients saw
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from scripts.record.vllm_environment import MODEL

GIVE_UP_S = 0.5
PREFIX = "You are an assistant that answers questions about the delivery of parcels. Be brief and polite. "
"""96 bytes and as many tokens: three blocks that later requests find in the prefix cache."""


@dataclass(slots=True)
class Load:
    """Clients at work; counts what became of their requests."""

    port: int
    outcomes: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, clients: int, *, mixed: bool = True) -> None:
        """Set `clients` to work; `mixed` has some of their requests given up or refused."""
        for number in range(clients):
            thread = threading.Thread(target=self._work, args=(random.Random(number), mixed), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Let every client end its request and wait for all."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        self._threads.clear()

    def _work(self, numbers: random.Random, mixed: bool) -> None:
        for turn in itertools.count(1):
            if self._stop.is_set():
                return
            kind = numbers.choices(("plain", "given up", "too long"), (90, 6, 4))[0] if mixed and turn > 1 else "plain"
            outcome = self._ask(kind, numbers)
            self.outcomes[outcome] += 1

    def _ask(self, kind: str, numbers: random.Random) -> str:
        """One request; what came of it in a word."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        tail = "".join(numbers.choices("abcdefgh ", k=numbers.randrange(8, 48)))
        body = {
            "model": MODEL,
            "prompt": PREFIX * (20 if kind == "too long" else 1) + tail,
            "max_tokens": numbers.choice((16, 32, 64, 96)),
            "temperature": 1.0,
        }
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            if kind == "given up":
                time.sleep(GIVE_UP_S)
                return kind
            answer = connection.getresponse()
            answer.read()
            return str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            with contextlib.suppress(OSError):
                connection.close()


def main() -> None:
    """Load the server on a port until standard input ends."""
    port, clients = (int(argument) for argument in sys.argv[1:3])
    load = Load(port)
    load.start(clients)
    sys.stdin.read()
    load.stop()
    print(f"{clients} clients saw {dict(sorted(load.outcomes.items()))}", file=sys.stderr)


if __name__ == "__main__":
    main()
