"""Record Ray Serve's pages: `PYTHONPATH=. python3 scripts/record/ray_serve.py` (ends by itself).

One deployment of one replica whose method is batched by `@serve.batch`: batches of 4 with 50 ms of waiting, 20 ms a
batch in place of an accelerator, at most 12 requests at the replica and 4 more in the proxy's queue, and twenty
clients: some requests are turned away with 503 and some fail with 500. Ray reports its metrics every second here (its
default is ten seconds).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from scripts.record import real_server as real

PACKAGES = ("ray[serve]==2.60.0",)
APPLICATION = """
import asyncio
import sys
import time

import ray
from ray import serve
from starlette.requests import Request

PORT, METRICS_PORT = int(sys.argv[1]), int(sys.argv[2])


@serve.deployment(num_replicas=1, max_ongoing_requests=12, max_queued_requests=4, ray_actor_options={"num_cpus": 1})
class Tiny:
    @serve.batch(max_batch_size=4, batch_wait_timeout_s=0.05)
    async def answer(self, rows):
        await asyncio.sleep(0.02)
        return [sum(row) for row in rows]

    async def __call__(self, request: Request):
        row = await request.json()
        if len(row) != 4:
            raise ValueError("a row has four numbers")
        return await self.answer(row)


ray.init(
    num_cpus=2,
    include_dashboard=False,
    object_store_memory=100_000_000,
    log_to_driver=False,
    _node_ip_address="127.0.0.1",
    _metrics_export_port=METRICS_PORT,
    _temp_dir=sys.argv[3],
    _system_config={"metrics_report_interval_ms": 1000},
)
serve.start(http_options={"host": "127.0.0.1", "port": PORT})
serve.run(Tiny.bind(), name="application", route_prefix="/tiny")
while True:
    time.sleep(1)
"""
LOAD = "20 clients in a closed loop; one sends rows of a wrong length after a pause of 0.25 s"
SETTINGS = "1 replica, max_ongoing_requests 12, max_queued_requests 4, batches of 4 within 50 ms, 20 ms a batch, CPU"


def main() -> None:
    """Record idle and under load."""
    pages, python = real.options("Record Ray Serve's metrics pages.", PACKAGES)
    # Ray keeps Unix sockets below its folder, whose paths must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as name:
        folder = Path(name)
        (folder / "application.py").write_text(APPLICATION)
        port, metrics_port = real.free_ports(2)
        command: list[str | Path] = [python, "application.py", str(port), str(metrics_port), name]
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "HOME": name}
        with real.running(command, folder, quiet):
            version = real.version_of(python, "ray")
            record(pages, version, f"http://127.0.0.1:{port}/tiny", f"http://127.0.0.1:{metrics_port}/metrics")


def record(pages: Path, version: str, url: str, metrics: str) -> None:
    """Read the pages: after one request, and twice under load ten seconds apart."""
    recording = real.Recording(pages, "ray_serve", "ray", version, keep="ray_serve_")
    row = [0.1, 0.2, 0.3, 0.4]
    real.wait_until(lambda: real.post(url, row) == 200, 120)
    real.wait_until(lambda: b"ray_serve_deployment_request_counter" in real.get(metrics), 60)
    time.sleep(12)
    recording.page("idle.prom", metrics)
    clients = [lambda: real.post(url, row)] * 20
    clients.append(real.paced(lambda: real.post(url, [0.1]), 0.25))
    with real.load(clients, 60) as asked:
        time.sleep(12)
        recording.page("load-1.prom", metrics)
        time.sleep(10)
        recording.page("load-2.prom", metrics)
    recording.close(LOAD, asked, SETTINGS)


if __name__ == "__main__":
    main()
