"""What the recording scripts share: a private environment, a server on loopback, load on it, and its pages on disk.

Standard library only, so that a script runs with any Python from 3.11. A page is written as the server sent it. Host
names never get onto one because the whole recording runs in name spaces of its own in which the machine is called
"localhost" and has no other network; `Recording` refuses to keep a page that holds the real name all the same.
"""

from __future__ import annotations

import argparse
import fcntl
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import venv
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "tests" / "contract" / "pages"
LARGEST_BYTES = 300_000
ISOLATED = "RECORDING_ON_MACHINE"
"""Set to the machine's real name once the script runs in its own name spaces."""

SET_FLAGS, INTERFACE_UP = 0x8914, 0x1
"""SIOCSIFFLAGS and IFF_UP of Linux: a new network name space has loopback, but down."""

BACK_OFF_S = 0.1
"""A client's pause after anything but a 200: turned away at once, it would only burn the processor."""

UNANSWERED = 0


def options(description: str, packages: tuple[str, ...]) -> tuple[Path, Path]:
    """The folder to record into and the Python of an environment that has the packages (made when it is not there)."""
    parser = argparse.ArgumentParser(description=description)
    default = Path(tempfile.gettempdir()) / f"record-{Path(sys.argv[0]).stem}"
    parser.add_argument("--environment", type=Path, default=default, help="virtual environment to make or use")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder that holds <dialect>/<server>-<version>")
    chosen = parser.parse_args()
    python = Path(chosen.environment).resolve() / "bin" / "python"
    if ISOLATED not in os.environ:
        if not python.exists():
            venv.create(chosen.environment, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    isolate()
    return Path(chosen.pages), python


def isolate() -> None:
    """Start this script again in name spaces of its own (Linux; no root needed).

    The machine is called "localhost" there, since servers put its name in labels; there is no network but loopback,
    whatever a server would like to listen on; and every process that a server leaves behind ends with the script.
    """
    if ISOLATED not in os.environ:
        os.environ[ISOLATED] = socket.gethostname()
        spaces = ["--user", "--map-root-user", "--uts", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        rename = 'hostname localhost && exec "$@"'
        os.execvp("unshare", ["unshare", *spaces, "sh", "-c", rename, "sh", sys.executable, *sys.argv])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SET_FLAGS, struct.pack("16sh", b"lo", INTERFACE_UP))


def version_of(python: Path, package: str) -> str:
    """The installed version of a package."""
    show = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", show], check=True, capture_output=True, text=True).stdout.strip()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens on, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def running(command: list[str | Path], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A server in a process group of its own, which ends with the block; its output goes to server.log of `folder`."""
    settings = {**os.environ, "TMPDIR": str(folder), "PATH": f"{Path(command[0]).parent}:{os.environ['PATH']}"}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**settings, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield
        except BaseException:
            log.flush()
            sys.stderr.write((folder / "server.log").read_text(errors="replace")[-4000:])
            raise
        finally:
            end_group(server)


def end_group(server: subprocess.Popen[bytes]) -> None:
    """End a server and what it started: politely, then not."""
    for sign, patience_s in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(server.pid, sign)
        except ProcessLookupError:
            return
        ends_s = time.monotonic() + patience_s
        while time.monotonic() < ends_s:
            server.poll()
            try:
                os.killpg(server.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)


def get(url: str) -> bytes:
    """The body of an answer."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def post(url: str, value: object) -> int:
    """Send JSON; the status, or `UNANSWERED`."""
    body = json.dumps(value).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return int(error.code)
    except (OSError, http.client.HTTPException):
        return UNANSWERED


def wait_until(ready: Callable[[], object], patience_s: float) -> None:
    """Wait until a call succeeds with something true."""
    ends_s = time.monotonic() + patience_s
    while True:
        try:
            if ready():
                return
        except (OSError, ValueError, http.client.HTTPException) as error:
            if time.monotonic() > ends_s:
                raise TimeoutError(f"not ready within {patience_s:g} s: {error}") from error
        if time.monotonic() > ends_s:
            raise TimeoutError(f"not ready within {patience_s:g} s")
        time.sleep(0.3)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as its client saw it: when it ended (seconds since the epoch), how long it took, its status."""

    ended_s: float
    took_s: float
    status: int


@contextmanager
def load(calls: list[Callable[[], int]], seconds: float) -> Iterator[list[Asked]]:
    """Each call again and again in a thread of its own until the block or the time ends; gives what was asked."""
    asked: list[Asked] = []
    ended = threading.Event()
    last_s = time.monotonic() + seconds

    def repeat(call: Callable[[], int]) -> None:
        while not ended.is_set() and time.monotonic() < last_s:
            began_s = time.monotonic()
            status = call()
            asked.append(Asked(time.time(), time.monotonic() - began_s, status))
            if status != 200:
                time.sleep(BACK_OFF_S)

    threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield asked
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def paced(call: Callable[[], int], pause_s: float) -> Callable[[], int]:
    """A call with a pause before it."""

    def later() -> int:
        time.sleep(pause_s)
        return call()

    return later


def families(page: bytes, beginning: str) -> bytes:
    """The lines of a page's families whose names begin so; each is a comment on, or a sample of, a family."""
    lines = page.splitlines(keepends=True)
    marks = tuple(f"{before}{beginning}".encode() for before in ("# HELP ", "# TYPE ", ""))
    return b"".join(line for line in lines if line.startswith(marks)) if beginning else page


class Recording:
    """The folder of one server's pages: what was read, when, and how it was made."""

    def __init__(self, pages: Path, dialect: str, server: str, version: str, keep: str = "") -> None:
        """`keep` is what the names of the metric families worth keeping begin with, where a page is too long."""
        self.folder = pages / dialect / f"{server}-{version}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._facts: dict[str, object] = {"dialect": dialect, "server": server, "version": version}
        self._keep = keep
        self._scrapes: list[dict[str, object]] = []

    def page(self, name: str, url: str) -> None:
        """Read a metrics page and note when."""
        body = get(url)
        time_s = round(time.time(), 3)
        self._scrapes.append({"file": self.answer(name, families(body, self._keep)), "time_s": time_s})

    def answer(self, name: str, body: bytes) -> str:
        """Keep an answer as it is."""
        own = os.environ.get(ISOLATED, socket.gethostname())
        if own != "localhost" and own.encode() in body:
            raise ValueError(f"{name} holds this machine's name: nothing kept")
        if len(body) > LARGEST_BYTES:
            raise ValueError(f"{name} has {len(body)} bytes, more than {LARGEST_BYTES}")
        (self.folder / name).write_bytes(body)
        return name

    def close(self, load_text: str, asked: list[Asked], settings: str) -> None:
        """Write recording.yaml, with what the clients saw between the last two pages.

        Each value is written as JSON, which YAML is a superset of.
        """
        facts = self._facts | {
            "recipe": f"PYTHONPATH=. python3 scripts/record/{Path(sys.argv[0]).name}",
            "date": datetime.now(UTC).date().isoformat(),
            "settings": settings,
            "load": load_text,
            "clients": self._clients(asked),
            "trimmed": f"whole families whose names do not begin with {self._keep}" if self._keep else "nothing",
        }
        lines = [f"{name}: {json.dumps(value)}" for name, value in facts.items()]
        lines += ["scrapes:", *(f"  - {json.dumps(scrape)}" for scrape in self._scrapes)]
        (self.folder / "recording.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _clients(self, asked: list[Asked]) -> dict[str, object]:
        first_s, last_s = (float(str(scrape["time_s"])) for scrape in self._scrapes[-2:])
        between = [one for one in asked if first_s <= one.ended_s < last_s]
        good_ms = sorted(1000 * one.took_s for one in between if one.status == 200)
        return {
            "answers": {
                str(status or "none"): count for status, count in sorted(Counter(o.status for o in between).items())
            },
            "seconds": round(last_s - first_s, 3),
            "mean_ms": round(sum(good_ms) / len(good_ms), 1),
            "p50_ms": round(good_ms[len(good_ms) // 2], 1),
            "p99_ms": round(good_ms[int(0.99 * len(good_ms))], 1),
        }
