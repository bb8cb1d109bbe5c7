"""Record what TorchServe's management API answers: `PYTHONPATH=. python3 scripts/record/torchserve_management.py`.

Java 17 on PATH; ends by itself, after less than a minute. Tokens are on, as they are by default; none is recorded.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from scripts.record import real_server as real
from scripts.record import torchserve_server as torchserve
from scripts.record.torchserve_server import Answer, Server

PACKAGES = (f"torchserve=={torchserve.VERSION}", "psutil", "pyyaml")
DESCRIBE = f"/models/{torchserve.MODEL}"
CLIENTS = 24
"""Two workers with batches of four and a queue of eight hold sixteen."""


def main() -> None:
    """Record each kind of answer once."""
    pages, python = real.options("Record the answers of TorchServe's management API.", PACKAGES)
    with tempfile.TemporaryDirectory(prefix="record-torchserve-") as name:
        folder = Path(name)
        with torchserve.serving(python, folder) as server:
            answers = record(server, folder / "store")
    told = {
        "server": "torchserve",
        "version": torchserve.VERSION,
        "recipe": "PYTHONPATH=. python3 scripts/record/torchserve_management.py",
        "date": datetime.now(UTC).date().isoformat(),
        "answers": {name: asdict(answer) for name, answer in answers.items()},
    }
    recording = real.Recording(pages, "torchserve_management", "torchserve", torchserve.VERSION)
    recording.answer("answers.json", (json.dumps(told, indent=1) + "\n").encode())


def record(server: Server, store: Path) -> dict[str, Answer]:
    """A name for each situation, and what was said in it."""
    answers = {
        "one_model": server.get("/models"),
        "idle": server.get(DESCRIBE),
        "no_token": server.get(DESCRIBE, token=False),
        "absent": server.get("/models/absent"),
        "inference_port": server.get("/models", at=server.inference),
        "metrics_port": server.get("/models", at=server.metrics),
        "overloaded": overloaded(server),
        "worker_lost": worker_lost(server),
    }
    real.wait_until(lambda: server.get(DESCRIBE).body.count('"READY"') == 2, 30)
    server.register(torchserve.write_archive(store, torchserve.MODEL, "2.0"))
    answers["two_versions"] = server.get(DESCRIBE)
    server.register(torchserve.write_archive(store, "other", "1.0"))
    return answers | {"two_models": server.get("/models")}


def overloaded(server: Server, meanwhile: Callable[[], object] = lambda: None) -> Answer:
    """The description while more clients ask than the queue can hold; `meanwhile` may look for itself."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            if server.predict() != 200:
                time.sleep(real.BACK_OFF_S)

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        real.wait_until(lambda: '"remainingCapacity": 0' in server.get(DESCRIBE).body, 20)
        meanwhile()
        return server.get(DESCRIBE)
    finally:
        ended.set()
        for client in clients:
            client.join()


def worker_lost(server: Server) -> Answer:
    """The description after a worker was killed, before TorchServe has started it again."""
    (described,) = json.loads(server.get(DESCRIBE).body)
    os.kill(int(described["workers"][0]["pid"]), signal.SIGKILL)
    real.wait_until(lambda: server.get(DESCRIBE).body.count('"READY"') == 1, 20)
    return server.get(DESCRIBE)


if __name__ == "__main__":
    main()
