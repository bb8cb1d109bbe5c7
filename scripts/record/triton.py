"""Records metrics pages of the real Triton in the wheel nvidia-pytriton.

`PYTHONPATH=src:. python scripts/record/triton.py [FOLDER [VARIANT ...]]`

Three servers are started one after the other on loopback, each with several models (see `triton_server.py`): with the
flags' defaults, with everything on that Triton can count, and with `counter_latencies=false`. Beside each page lies
what Triton's statistics API said at that moment: it counts executions one by one, so the tests can hold the readings
of the page against it. Takes about two minutes. Nothing in the pages is edited.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import yaml

from scripts.record.triton_load import Asked, at_once, offer
from scripts.record.triton_server import Server, running

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "contract" / "pages" / "triton"
SECONDS = 6.0
"""Load between two pages."""

VARIANTS = {
    "defaults": (),
    "everything": (
        "--metrics-config=summary_latencies=true",
        "--metrics-config=histogram_latencies=true",
        "--cache-config=local,size=4194304",
    ),
    "counters-off": ("--metrics-config=counter_latencies=false", "--metrics-config=summary_latencies=true"),
}


class Recording:
    """The folder of one server's pages, and when each was taken."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server, self._folder = server, folder
        self.taken: dict[str, dict[str, object]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def page(self, name: str, asked: Asked | None = None) -> None:
        """Takes the page and the statistics of one moment; `asked` is what the clients saw since the last page."""
        at_s = time.time()
        (self._folder / f"{name}.prom").write_text(self._server.metrics(), encoding="utf-8")
        (self._folder / f"{name}.stats.json").write_text(self._server.statistics(), encoding="utf-8")
        entry: dict[str, object] = {"at_s": round(at_s, 3)}
        if asked is not None:
            entry["clients"] = asked.counted()
        self.taken[name] = entry

    def write(self, variant: str) -> None:
        """The recipe, beside the pages."""
        told = {
            "server": "tritonserver",
            "version": self._server.version(),
            "from": "PyPI nvidia-pytriton 0.7.0, python backend, no GPU",
            "recipe": "PYTHONPATH=src:. python scripts/record/triton.py",
            "flags": list(VARIANTS[variant]),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "load": f"{SECONDS:g} s between load-1 and load-2, closed loop; see scripts/record/triton_load.py",
            "trimmed": "nothing",
            "pages": self.taken,
        }
        (self._folder / "recording.yaml").write_text(yaml.safe_dump(told, sort_keys=False), encoding="utf-8")


def record(variant: str, target: Path, work: Path) -> None:
    """One server from its start to its end."""
    with running(work / variant, VARIANTS[variant], cached=variant == "everything") as server:
        recording = Recording(server, target / f"tritonserver-{server.version()}-{variant}")
        recording.page("idle")
        offer(server, 2.0)
        recording.page("load-1")
        recording.page("load-2", offer(server, SECONDS))
        if variant != "counters-off":
            _changes(server, recording, cached=variant == "everything")
        recording.write(variant)


def _changes(server: Server, recording: Recording, *, cached: bool) -> None:
    """What a hot reload, an unload and load, one burst of equal questions, and a minute of silence leave behind."""
    server.load("plain", response_cache=cached, delay_us=3000)
    recording.page("hot-reload", offer(server, SECONDS))
    # An ensemble holds on to its parts: `plain` would stay loaded.
    server.unload("pair")
    server.unload("plain")
    server.load("plain", response_cache=cached)
    server.load("pair")
    recording.page("loaded")
    recording.page("unload-load", offer(server, SECONDS))
    recording.page("equal", at_once(server, "cached", 8, rounds=20))
    if cached:
        # A summary looks back over 60 s.
        time.sleep(65.0)
        recording.page("silent")


def main(arguments: list[str]) -> None:
    """Records into the first argument, or the tests' folder; the variants named after it, or all."""
    target = Path(arguments[0]) if arguments else FOLDER
    with tempfile.TemporaryDirectory(prefix="record-triton-") as work:
        for variant in arguments[1:] or VARIANTS:
            record(variant, target, Path(work))
            sys.stderr.write(f"recorded {variant}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
