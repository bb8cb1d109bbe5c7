"""Where the parts of one stack listen: free loopback ports, found once and kept for the state folder."""

from __future__ import annotations

import contextlib
import json
import random
import socket
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack.files import write_atomically

LOOPBACK = "127.0.0.1"

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")

LOWEST_PORT = 10_000
"""Well-known services and their neighbours listen below."""

MANY_PORTS = 200
"""So many are tried before the kernel is asked for any that is free."""


@dataclass(frozen=True, slots=True)
class TritonPorts:
    """The three TCP ports of one Triton."""

    http: int
    grpc: int
    metrics: int


@dataclass(frozen=True, slots=True)
class Ports:
    """One TCP port on loopback for each part that listens on one; `replicas` are those of the Tritons after the first.

    Every Triton that the settings may ask for has its ports from the start, so that one can be started at any time.
    """

    gateway: int
    prometheus: int
    alertmanager: int
    triton_http: int
    triton_grpc: int
    triton_metrics: int
    controller_metrics: int
    replicas: tuple[TritonPorts, ...] = ()

    def named(self) -> dict[str, int]:
        """Every port by what it is for."""
        found = {item.name.replace("_", " "): getattr(self, item.name) for item in fields(self)[:-1]}
        for number, one in enumerate(self.replicas, start=2):
            found |= {f"triton-{number} {item.name}": getattr(one, item.name) for item in fields(one)}
        return found


@dataclass(frozen=True, slots=True)
class TritonAddress:
    """Where one Triton listens: a base URL, `host:port`, and its metrics page."""

    http: str
    grpc: str
    metrics: str


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What `up` writes to endpoints.json: base URLs, `host:port` for gRPC, paths of Unix sockets.

    `alertmanager` is "" when the stack runs without one. `replicas` are the Tritons after the first, whether they run
    or not: which of them do is for the settings to say.
    """

    gateway: str
    prometheus: str
    alertmanager: str
    triton_http: str
    triton_grpc: str
    triton_metrics: str
    controller_metrics: str
    valkey_socket: str
    admin_socket: str
    supervisor_socket: str
    accelerator: str
    replicas: tuple[TritonAddress, ...] = ()

    @property
    def tritons(self) -> tuple[TritonAddress, ...]:
        """Every Triton there can be, the first one first."""
        return (TritonAddress(self.triton_http, self.triton_grpc, self.triton_metrics), *self.replicas)

    def ports(self) -> Ports:
        """The ports behind the addresses; 0 where the part is absent."""
        names = [item.name for item in fields(Ports) if item.name != "replicas"]
        others = (TritonPorts(*(_port_of(address) for address in astuple(one))) for one in self.replicas)
        return Ports(**{name: _port_of(getattr(self, name)) for name in names}, replicas=tuple(others))


def _port_of(address: str) -> int:
    authority = address.split("://", 1)[-1].split("/", 1)[0]
    port = authority.rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def endpoints_for(sockets: Path, ports: Ports, accelerator: str, *, alertmanager: bool) -> Endpoints:
    """The addresses that go with `ports` and a folder of Unix sockets."""
    first = _triton_at(TritonPorts(ports.triton_http, ports.triton_grpc, ports.triton_metrics))
    return Endpoints(
        gateway=f"http://{LOOPBACK}:{ports.gateway}",
        prometheus=f"http://{LOOPBACK}:{ports.prometheus}",
        alertmanager=f"http://{LOOPBACK}:{ports.alertmanager}" if alertmanager else "",
        triton_http=first.http,
        triton_grpc=first.grpc,
        triton_metrics=first.metrics,
        controller_metrics=f"http://{LOOPBACK}:{ports.controller_metrics}/metrics",
        valkey_socket=str(sockets / "valkey.sock"),
        admin_socket=str(sockets / "admin.sock"),
        supervisor_socket=str(sockets / "supervisor.sock"),
        accelerator=accelerator,
        replicas=tuple(_triton_at(one) for one in ports.replicas),
    )


def _triton_at(ports: TritonPorts) -> TritonAddress:
    return TritonAddress(
        http=f"http://{LOOPBACK}:{ports.http}",
        grpc=f"{LOOPBACK}:{ports.grpc}",
        metrics=f"http://{LOOPBACK}:{ports.metrics}/metrics",
    )


def save(path: Path, endpoints: Endpoints) -> None:
    """Writes endpoints.json."""
    write_atomically(path, json.dumps(asdict(endpoints), indent=2) + "\n")


def load(path: Path) -> Endpoints:
    """Reads endpoints.json; KnownError when this state folder never had a stack, or the file is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        # A state folder from before replicas could be started at any time has none listed.
        replicas = tuple(
            TritonAddress(**{item.name: str(one[item.name]) for item in fields(TritonAddress)})
            for one in found.get("replicas", ())
        )
        names = [item.name for item in fields(Endpoints) if item.name != "replicas"]
        return Endpoints(**{name: str(found[name]) for name in names}, replicas=replicas)
    except FileNotFoundError as error:
        raise KnownError(f"no stack in {path.parent}", hint="Start one with `latencydoctor stack up`.") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KnownError(
            f"{path} cannot be used: {error}", hint=f"Delete {path} and run `latencydoctor stack up`."
        ) from error


def free_ports(replicas: int = 1) -> Ports:
    """Ports nobody listens on, all different, for up to so many Tritons: held together until the last one is found.

    They are ports that the kernel gives to nobody: a connection of some client could have the port of a Triton that is
    to be started later, and crowds of clients take thousands.
    """
    plain, each = len(fields(Ports)) - 1, len(fields(TritonPorts))
    wanted = plain + each * (replicas - 1)
    quiet = _quiet_ports()
    candidates = [*random.sample(quiet, min(len(quiet), MANY_PORTS)), *[0] * wanted]
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in candidates:
            one = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            with contextlib.suppress(OSError):
                one.bind((LOOPBACK, port))
                found.append(one.getsockname()[1])
            if len(found) == wanted:
                break
    starts = range(plain, len(found), each)
    others = tuple(TritonPorts(*found[start : start + each]) for start in starts)
    named = dict(zip([item.name for item in fields(Ports)][:plain], found, strict=False))
    return Ports(**named, replicas=others)


def _quiet_ports() -> range:
    """Those below the range from which the kernel gives clients theirs; none where that begins low."""
    try:
        first = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return range(0)
    return range(LOWEST_PORT, first)


def refuse_taken(ports: Ports) -> None:
    """KnownError naming the first port that another process listens on."""
    for name, port in ports.named().items():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do, so that connections of a stack that just ended do not count as taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError as error:
                raise KnownError(
                    f"port {port} ({name}) is in use by another process",
                    hint="Free it, or let the stack find other ports: `latencydoctor stack up --new-ports`.",
                ) from error
