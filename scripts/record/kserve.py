"""Record the pages of KServe's Python model server: `PYTHONPATH=. python3 scripts/record/kserve.py` (ends by itself).

One model with a stage of its own for preprocessing (2 ms) and postprocessing (1 ms) and one prediction of 20 ms at a
time, in place of an accelerator; eight clients, one of which sends rows that preprocessing refuses and one of which
makes the prediction fail. Knative's queue-proxy is not there: it needs a cluster.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from scripts.record import real_server as real

PACKAGES = ("kserve==0.21.0",)
MODEL = """
import asyncio
import sys

from kserve import Model, ModelServer
from kserve.errors import InvalidInput


class Tiny(Model):
    def __init__(self, name):
        super().__init__(name)
        self.one_at_a_time = asyncio.Semaphore(1)
        self.ready = True

    async def preprocess(self, payload, headers=None):
        await asyncio.sleep(0.002)
        rows = payload["instances"]
        if any(len(row) != 4 for row in rows):
            raise InvalidInput("a row has four numbers")
        return rows

    async def predict(self, rows, headers=None, response_headers=None):
        async with self.one_at_a_time:
            await asyncio.sleep(0.02)
        if rows[0][0] < 0:
            raise RuntimeError("the first number is negative")
        return {"predictions": [sum(row) for row in rows]}

    async def postprocess(self, result, headers=None, response_headers=None):
        await asyncio.sleep(0.001)
        return result


ModelServer(http_port=int(sys.argv[1]), enable_grpc=False, workers=1).start([Tiny("tiny")])
"""
LOAD = (
    "6 clients in a closed loop; one sends rows of a wrong length and one makes the prediction fail, each after 0.25 s"
)
SETTINGS = "1 worker, one prediction of 20 ms at a time, 2 ms before and 1 ms after it, no batcher, CPU"


def main() -> None:
    """Record idle and under load."""
    pages, python = real.options("Record KServe's metrics pages.", PACKAGES)
    with tempfile.TemporaryDirectory(prefix="record-kserve-") as name:
        folder = Path(name)
        (folder / "model.py").write_text(MODEL)
        (port,) = real.free_ports(1)
        with real.running([python, "model.py", str(port)], folder, {"HOME": name}):
            record(pages, real.version_of(python, "kserve"), f"http://127.0.0.1:{port}")


def record(pages: Path, version: str, base: str) -> None:
    """Read the pages: after one request, and twice under load five seconds apart."""
    recording = real.Recording(pages, "kserve", "kserve", version)
    url = f"{base}/v1/models/tiny:predict"

    def ask(*row: float) -> int:
        return real.post(url, {"instances": [row]})

    real.wait_until(lambda: ask(1, 2, 3, 4) == 200, 90)
    recording.page("idle.prom", f"{base}/metrics")
    clients = [lambda: ask(1, 2, 3, 4)] * 6
    clients += [real.paced(lambda: ask(1), 0.25), real.paced(lambda: ask(-1, 2, 3, 4), 0.25)]
    with real.load(clients, 30) as asked:
        time.sleep(5)
        recording.page("load-1.prom", f"{base}/metrics")
        time.sleep(5)
        recording.page("load-2.prom", f"{base}/metrics")
    recording.close(LOAD, asked, SETTINGS)


if __name__ == "__main__":
    main()
