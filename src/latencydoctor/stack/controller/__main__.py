"""Entry point of the controller process: `python -m latencydoctor.stack.controller --state DIR`."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

from latencydoctor.stack import endpoints as stack_endpoints
from latencydoctor.stack import processes, revival
from latencydoctor.stack.controller.fleet import Around, Fleet, Place
from latencydoctor.stack.controller.front import Front
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.stack.controller.loop import Controller, Served
from latencydoctor.stack.controller.page import serve
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import Triton
from latencydoctor.stack.controller_state import SharedProgress
from latencydoctor.stack.endpoints import LOOPBACK, Endpoints, TritonAddress
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.probes import probe_triton
from latencydoctor.stack.programs import triton_name
from latencydoctor.stack.supervisor import Supervisor


def log(level: str, event: str, message: str, **fields: object) -> None:
    """One JSON line on stdout, which supervisord keeps in a file."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"time": now, "level": level, "event": event, "message": message, **fields}
    # A supervisord that was killed reads no more: there is nobody left to tell, but still work to do.
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def _place(layout: Layout, address: TritonAddress, replica: int) -> Place[Triton]:
    prefix, name = layout.shm_prefix_of(replica), triton_name(replica)
    return Place(
        name=name,
        address=address.grpc,
        log=layout.log(name),
        served=Served(Triton(address.grpc), StubWatch(lambda: processes.stubs(prefix), processes.alive)),
        probe=lambda: probe_triton(address.http),
        clean=lambda: processes.clear_triton_leftovers(prefix),
    )


def _around(layout: Layout, endpoints: Endpoints) -> Around:
    return Around(
        supervisor=Supervisor(endpoints.supervisor_socket),
        gateway=Front(endpoints.admin_socket),
        endpoints=endpoints,
        serving=layout.serving,
        targets=layout.triton_targets,
        revive=lambda: revival.begin(layout, log),
    )


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
    places = [_place(layout, address, number) for number, address in enumerate(endpoints.tritons, start=1)]
    log("INFO", "controller_started", "watching the settings", path=str(layout.settings))
    try:
        fleet = Fleet(places, _around(layout, endpoints))
        kept = KeptGenerations(layout.kept_generations)
        Controller(layout.settings, layout.models, fleet, progress, log, kept).run(stopped)
    finally:
        for place in places:
            place.served.triton.close()
        page.shutdown()


if __name__ == "__main__":
    main()
