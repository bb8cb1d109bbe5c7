"""Records metrics pages of a real nginx through the real prometheus-nginx-exporter.

`PYTHONPATH=src:. python scripts/record/nginx_exporter.py NGINX EXPORTER [FOLDER]`

Both programs come from Debian, downloaded and unpacked without installing: `apt-get download nginx
prometheus-nginx-exporter`, `dpkg-deb -x FILE unpacked`, then `unpacked/usr/sbin/nginx` and
`unpacked/usr/bin/prometheus-nginx-exporter`. nginx has room for few connections, so that some are turned away.
Everything is on loopback. Nothing in the pages is edited.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import yaml

from scripts.record.redis_exporter import free_port, page, started

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "contract" / "pages" / "nginx"
SECONDS = 6.0
"""Load between two pages."""

ROOM = 12
"""Connections that nginx holds at most, its own listening socket among them."""

CONFIGURATION = """worker_processes 1; pid {work}/nginx.pid; error_log {work}/error.log; daemon off; master_process off;
events {{ worker_connections {room}; }}
http {{
  access_log off;
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /stub_status {{ stub_status; }}
    location / {{ return 200 "ok"; }}
  }}
}}
"""


@contextlib.contextmanager
def observed(nginx: Path, exporter: Path, work: Path) -> Iterator[tuple[int, str]]:
    """nginx and its exporter: the one's port and the other's page."""
    port, exporter_port = free_port(), free_port()
    configuration = work / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(work=work, port=port, room=ROOM), encoding="utf-8")
    status = f"http://127.0.0.1:{port}/stub_status"
    watcher = [str(exporter), "-nginx.scrape-uri", status, "-web.listen-address", f"127.0.0.1:{exporter_port}"]
    with started([str(nginx), "-c", str(configuration), "-p", str(work)], work / "nginx.log"):
        page(status)
        with started(watcher, work / "exporter.log"):
            yield port, f"http://127.0.0.1:{exporter_port}/metrics"


def load(port: int, seconds: float) -> dict[str, int]:
    """Some requests a second, and now and then a crowd of connections that finds no room for its last."""
    counts = {"requests": 0, "crowds": 0}
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
        counts["requests"] += 1
        if counts["requests"] % 50 == 0:
            with contextlib.ExitStack() as crowd, contextlib.suppress(OSError):
                for _ in range(2 * ROOM):
                    crowd.enter_context(socket.create_connection(("127.0.0.1", port), timeout=1))
            counts["crowds"] += 1
            time.sleep(0.2)
        time.sleep(0.02)
    return counts


def main(arguments: list[str]) -> None:
    """Records into the third argument, or the tests' folder."""
    nginx, exporter = (Path(argument).resolve() for argument in arguments[:2])
    told = subprocess.run([exporter, "-version"], capture_output=True, text=True)
    version = next(word.split("=")[-1] for word in (told.stdout + told.stderr).split() if word[:9] == "version=0")
    folder = (Path(arguments[2]) if len(arguments) > 2 else FOLDER) / f"nginx_exporter-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="record-nginx-") as work, observed(nginx, exporter, Path(work)) as running:
        port, url = running
        page(url)
        for name, seconds in (("idle", 0.0), ("load-1", 3.0), ("load-2", SECONDS)):
            counts = load(port, seconds) if seconds else {}
            taken[name] = {"at_s": round(time.time(), 3), "clients": counts}
            (folder / f"{name}.prom").write_text(page(url), encoding="utf-8")
    recording = {
        "server": "nginx_exporter",
        "version": version,
        "from": "Debian prometheus-nginx-exporter and nginx",
        "recipe": "PYTHONPATH=src:. python scripts/record/nginx_exporter.py NGINX EXPORTER",
        "flags": [],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load": f"{SECONDS:g} s between load-1 and load-2, one client, and crowds of {2 * ROOM} connections",
        "trimmed": "nothing",
        "pages": taken,
    }
    (folder / "recording.yaml").write_text(yaml.safe_dump(recording, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
