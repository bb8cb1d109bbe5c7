"""Record TorchServe's pages: `PYTHONPATH=. python3 scripts/record/torchserve.py` (Java 17 on PATH; ends by itself).

A model of one linear layer behind TorchServe's own base handler, which sleeps 20 ms for each batch in place of an
accelerator. One worker, batches of 4 with 50 ms of delay, a queue of 8 jobs, and sixteen clients: some requests are
turned away with 503, some are broken, and one model does not exist.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from scripts.record import real_server as real

VERSION = "0.12.0"
PACKAGES = (
    "torch==2.13.0",
    f"torchserve=={VERSION}",
    "torch-model-archiver==0.12.0",
    "setuptools<81",
    "pyyaml",
    "psutil",
)
MODEL = "tiny"

HANDLER = """
import time
import torch
from ts.torch_handler.base_handler import BaseHandler


class Tiny(BaseHandler):
    def initialize(self, context):
        self.context = context
        self.manifest = context.manifest
        self.device = torch.device("cpu")
        self.model = torch.nn.Linear(4, 2).eval()
        self.initialized = True

    def preprocess(self, rows):
        return torch.tensor([row.get("data") or row.get("body") for row in rows], dtype=torch.float32)

    def inference(self, data, *args, **kwargs):
        time.sleep(0.02)
        with torch.inference_mode():
            return self.model(data)

    def postprocess(self, data):
        return data.tolist()
"""
MODEL_CONFIG = """
minWorkers: 1
maxWorkers: 1
batchSize: 4
maxBatchDelay: 50
jobQueueSize: 8
responseTimeout: 30
"""
LOAD = "16 clients in a closed loop, batch size 4, a queue of 8 jobs; one client sends rows of a wrong length and one"
LOAD += " asks for a model that does not exist, each after a pause of 0.25 s"


def prepare(folder: Path, python: Path, ports: list[int]) -> Path:
    """Write the handler, pack it, and write the server's settings."""
    (folder / "handler.py").write_text(HANDLER)
    (folder / "model-config.yaml").write_text(MODEL_CONFIG)
    (folder / "store").mkdir()
    archiver = python.parent / "torch-model-archiver"
    arguments = ["--model-name", MODEL, "--version", "1.0", "--handler", "handler.py"]
    arguments += ["--config-file", "model-config.yaml", "--export-path", "store"]
    subprocess.run([archiver, *arguments], cwd=folder, check=True)
    settings = folder / "config.properties"
    settings.write_text(
        f"""inference_address=http://127.0.0.1:{ports[0]}
management_address=http://127.0.0.1:{ports[1]}
metrics_address=http://127.0.0.1:{ports[2]}
grpc_inference_port={ports[3]}
grpc_management_port={ports[4]}
initial_worker_port={ports[5]}
metrics_mode=prometheus
metric_time_interval=2
disable_token_authorization=true
job_queue_size=8
"""
    )
    return settings


def main() -> None:
    """Record idle and under load."""
    pages, python = real.options("Record TorchServe's metrics pages.", PACKAGES)
    with tempfile.TemporaryDirectory(prefix="record-torchserve-") as name:
        folder = Path(name)
        ports = real.free_ports(6)
        settings = prepare(folder, python, ports)
        command: list[str | Path] = [python.parent / "torchserve", "--start", "--foreground", "--disable-token-auth"]
        command += ["--model-store", folder / "store", "--models", f"{MODEL}={MODEL}.mar", "--ts-config", settings]
        base, management, metrics = (f"http://127.0.0.1:{port}" for port in ports[:3])
        with real.running(command, folder, {"LOG_LOCATION": name, "METRICS_LOCATION": name}):
            record(pages, base, management, f"{metrics}/metrics")


def record(pages: Path, base: str, management: str, metrics: str) -> None:
    """Read the pages: after one request, and twice under load five seconds apart."""
    recording = real.Recording(pages, "torchserve", "torchserve", VERSION)
    predict = f"{base}/predictions/{MODEL}"
    row = [0.1, 0.2, 0.3, 0.4]
    real.wait_until(lambda: real.post(predict, row) == 200, 90)
    time.sleep(4)
    recording.page("idle.prom", metrics)
    recording.answer("describe-idle.json", real.get(f"{management}/models/{MODEL}"))

    clients = [lambda: real.post(predict, row)] * 16
    clients.append(real.paced(lambda: real.post(predict, [0.1]), 0.25))
    clients.append(real.paced(lambda: real.post(f"{base}/predictions/absent", row), 0.25))
    with real.load(clients, 30) as asked:
        time.sleep(5)
        recording.page("load-1.prom", metrics)
        time.sleep(5)
        recording.page("load-2.prom", metrics)
        recording.answer("describe-load.json", real.get(f"{management}/models/{MODEL}"))
    recording.close(LOAD, asked, "batchSize 4, maxBatchDelay 50 ms, 1 worker, 20 ms a batch, CPU")


if __name__ == "__main__":
    main()
