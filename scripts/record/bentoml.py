"""Record BentoML's pages: `PYTHONPATH=. python3 scripts/record/bentoml.py` (ends by itself).

One service with one worker whose API is batched: batches of at most 4, 20 ms a batch in place of an accelerator, at
most 10 requests in the service at once; fourteen clients, so that some are turned away with 429, one of which makes the
service fail.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from scripts.record import real_server as real

PACKAGES = ("bentoml==1.4.40",)
SERVICE = """
import time

import bentoml


@bentoml.service(name="tiny", workers=1, traffic={"timeout": 10, "max_concurrency": 10}, metrics={"enabled": True})
class Tiny:
    @bentoml.api(batchable=True, max_batch_size=4, max_latency_ms=2000)
    def predict(self, rows: list[list[float]]) -> list[float]:
        time.sleep(0.02)
        return [sum(row) for row in rows]

    @bentoml.api
    def fail(self, row: list[float]) -> float:
        raise RuntimeError("always")
"""
LOAD = "13 clients in a closed loop; one asks an API that always fails, after a pause of 0.25 s"
SETTINGS = "1 worker, max_concurrency 10, max_batch_size 4, max_latency_ms 2000, 20 ms a batch, CPU"


def main() -> None:
    """Record idle and under load."""
    pages, python = real.options("Record BentoML's metrics pages.", PACKAGES)
    with tempfile.TemporaryDirectory(prefix="record-bentoml-") as name:
        folder = Path(name)
        (folder / "service.py").write_text(SERVICE)
        (port,) = real.free_ports(1)
        command: list[str | Path] = [python.parent / "bentoml", "serve", "service:Tiny"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        quiet = {"HOME": name, "BENTOML_HOME": f"{name}/home", "BENTOML_DO_NOT_TRACK": "True"}
        with real.running(command, folder, quiet):
            record(pages, real.version_of(python, "bentoml"), f"http://127.0.0.1:{port}")


def record(pages: Path, version: str, base: str) -> None:
    """Read the pages: after one request, and twice under load five seconds apart."""
    recording = real.Recording(pages, "bentoml", "bentoml", version)

    def ask() -> int:
        return real.post(f"{base}/predict", {"rows": [[1, 2, 3, 4]]})

    real.wait_until(lambda: ask() == 200, 90)
    recording.page("idle.prom", f"{base}/metrics")
    clients = [ask] * 13
    clients.append(real.paced(lambda: real.post(f"{base}/fail", {"row": [1]}), 0.25))
    with real.load(clients, 30) as asked:
        time.sleep(5)
        recording.page("load-1.prom", f"{base}/metrics")
        time.sleep(5)
        recording.page("load-2.prom", f"{base}/metrics")
    recording.close(LOAD, asked, SETTINGS)


if __name__ == "__main__":
    main()
