"""Where the parts of one stack listen: free loopback ports, found once and kept for the state folder."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack.files import write_atomically

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    """One TCP port on loopback for each part that listens on one."""

    gateway: int
    prometheus: int
    alertmanager: int
    triton_http: int
    triton_grpc: int
    triton_metrics: int
    controller_metrics: int
    replica_http: int = 0
    replica_grpc: int = 0
    replica_metrics: int = 0


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What `up` writes to endpoints.json: base URLs, `host:port` for gRPC, paths of Unix sockets.

    `alertmanager` is "" when the stack runs without one, `replica_*` (the second Triton) when there is but one.
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
    replica_http: str = ""
    replica_grpc: str = ""
    replica_metrics: str = ""

    @property
    def tritons_grpc(self) -> tuple[str, ...]:
        """`host:port` of every Triton."""
        return tuple(filter(None, (self.triton_grpc, self.replica_grpc)))

    def ports(self) -> Ports:
        """The ports behind the addresses; 0 where the part is absent."""
        names = [item.name for item in fields(Ports)]
        return Ports(**{name: _port_of(getattr(self, name)) for name in names})


def _port_of(address: str) -> int:
    authority = address.split("://", 1)[-1].split("/", 1)[0]
    port = authority.rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def endpoints_for(sockets: Path, ports: Ports, accelerator: str, *, alertmanager: bool, replicas: int = 1) -> Endpoints:
    """The addresses that go with `ports` and a folder of Unix sockets."""
    second = replicas > 1
    return Endpoints(
        gateway=f"http://{LOOPBACK}:{ports.gateway}",
        prometheus=f"http://{LOOPBACK}:{ports.prometheus}",
        alertmanager=f"http://{LOOPBACK}:{ports.alertmanager}" if alertmanager else "",
        triton_http=f"http://{LOOPBACK}:{ports.triton_http}",
        triton_grpc=f"{LOOPBACK}:{ports.triton_grpc}",
        triton_metrics=f"http://{LOOPBACK}:{ports.triton_metrics}/metrics",
        controller_metrics=f"http://{LOOPBACK}:{ports.controller_metrics}/metrics",
        valkey_socket=str(sockets / "valkey.sock"),
        admin_socket=str(sockets / "admin.sock"),
        supervisor_socket=str(sockets / "supervisor.sock"),
        accelerator=accelerator,
        replica_http=f"http://{LOOPBACK}:{ports.replica_http}" if second else "",
        replica_grpc=f"{LOOPBACK}:{ports.replica_grpc}" if second else "",
        replica_metrics=f"http://{LOOPBACK}:{ports.replica_metrics}/metrics" if second else "",
    )


def save(path: Path, endpoints: Endpoints) -> None:
    """Writes endpoints.json."""
    write_atomically(path, json.dumps(asdict(endpoints), indent=2) + "\n")


def load(path: Path) -> Endpoints:
    """Reads endpoints.json; KnownError when this state folder never had a stack, or the file is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        # A state folder from before there were replicas does not have them.
        found = {"replica_http": "", "replica_grpc": "", "replica_metrics": ""} | found
        return Endpoints(**{item.name: str(found[item.name]) for item in fields(Endpoints)})
    except FileNotFoundError as error:
        raise KnownError(f"no stack in {path.parent}", hint="Start one with `latencydoctor stack up`.") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KnownError(f"{path} cannot be used: {error}", hint=f"Delete {path} and run `stack up`.") from error


def free_ports() -> Ports:
    """Ports nobody listens on, all different: held together until the last one is found."""
    held = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in fields(Ports)]
    try:
        for one in held:
            one.bind((LOOPBACK, 0))
        return Ports(*(one.getsockname()[1] for one in held))
    finally:
        for one in held:
            one.close()


def refuse_taken(ports: Ports) -> None:
    """KnownError naming the first port that another process listens on."""
    for item in fields(Ports):
        port = getattr(ports, item.name)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do, so that connections of a stack that just ended do not count as taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError as error:
                raise KnownError(
                    f"port {port} ({item.name.replace('_', ' ')}) is in use by another process",
                    hint="Free it, or let the stack find other ports: `stack up --new-ports`.",
                ) from error
