"""Entry point of the controller process: `python -m latencydoctor.stack.controller --state DIR`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

from latencydoctor.stack import endpoints as stack_endpoints
from latencydoctor.stack import processes
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.stack.controller.loop import Controller, Served
from latencydoctor.stack.controller.page import serve
from latencydoctor.stack.controller.state import SharedProgress
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import Triton
from latencydoctor.stack.endpoints import LOOPBACK
from latencydoctor.stack.layout import Layout


def log(level: str, event: str, message: str, **fields: object) -> None:
    """One JSON line on stdout, which supervisord keeps in a file."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"time": now, "level": level, "event": event, "message": message, **fields}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _served(layout: Layout, address: str, replica: int) -> Served[Triton]:
    prefix = layout.shm_prefix_of(replica)
    return Served(Triton(address), StubWatch(lambda: processes.stubs(prefix), processes.alive))


def main() -> None:
    """Runs until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="latencydoctor.stack.controller")
    parser.add_argument("--state", type=Path, required=True)
    layout = Layout(parser.parse_args().state)
    endpoints = stack_endpoints.load(layout.endpoints)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    progress = SharedProgress()
    page = serve(LOOPBACK, endpoints.ports().controller_metrics, progress)
    servers = [_served(layout, address, number) for number, address in enumerate(endpoints.tritons_grpc, start=1)]
    log("INFO", "controller_started", "watching the settings", path=str(layout.settings))
    try:
        kept = KeptGenerations(layout.kept_generations)
        Controller(layout.settings, layout.models, servers, progress, log, kept).run(stopped)
    finally:
        for server in servers:
            server.triton.close()
        page.shutdown()


if __name__ == "__main__":
    main()
