"""The controller's HTTP page on loopback: /metrics for Prometheus, /state for `stack status`."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from latencydoctor.stack.controller_state import SharedProgress, metrics_page, state_page


def serve(host: str, port: int, progress: SharedProgress) -> ThreadingHTTPServer:
    """Starts the page in a thread of its own; the caller shuts the server down."""

    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            pages = {
                "/metrics": ("text/plain; version=0.0.4", metrics_page),
                "/state": ("application/json", state_page),
            }
            if self.path not in pages:
                self.send_error(404)
                return
            kind, render = pages[self.path]
            body = render(progress.current).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """A line for every scrape would bury the controller's own."""

    server = ThreadingHTTPServer((host, port), Page)
    threading.Thread(target=server.serve_forever, name="page", daemon=True).start()
    return server
