"""Starts the gateway of one stack: `python -m latencydoctor.stack.gateway --state DIR [--port N]`."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import uvloop

from latencydoctor.errors import LatencyDoctorError
from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack.faq_entries import load_entries
from latencydoctor.stack.gateway.app import MAX_INFLIGHT
from latencydoctor.stack.gateway.events import time_text, unhindered
from latencydoctor.stack.gateway.process import RunningGateway, listen, listen_privately, serve
from latencydoctor.stack.layout import locate

MAX_FILES = 2 * MAX_INFLIGHT


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m latencydoctor.stack.gateway", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="state folder of the stack")
    parser.add_argument("--port", type=int, help="port on loopback, 0 for a free one; default: from endpoints.json")
    parser.add_argument("--max-inflight", type=int, default=MAX_INFLIGHT, help="questions answered at once")
    return parser.parse_args()


def _allow_many_connections() -> None:
    """Each question in flight holds a connection, and the usual limit of 1024 files is met early in an incident."""
    _, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if highest == resource.RLIM_INFINITY else min(MAX_FILES, highest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, highest))


def main() -> int:
    """Serves until SIGTERM; 1 when it cannot start, with the reason as a line of the log."""
    arguments = _arguments()
    _allow_many_connections()
    sys.stdout = unhindered(sys.stdout)
    try:
        layout = locate(arguments.state)
        endpoints = addresses.load(layout.endpoints)
        port = endpoints.ports().gateway if arguments.port is None else arguments.port
        faq = load_entries()
        front = listen(port)
        admin = listen_privately(Path(endpoints.admin_socket))
        uvloop.run(serve(lambda: RunningGateway(layout, endpoints, faq, arguments.max_inflight), front, admin))
    except LatencyDoctorError as error:
        line = {"time": time_text(time.time()), "level": "CRITICAL", "event": "start_failed", "message": str(error)}
        sys.stdout.write(json.dumps({**line, "hint": error.hint}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
