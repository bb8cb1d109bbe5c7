"""The programs supervisord runs, and its configuration. Everything listens on loopback or on a Unix socket."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack.alertmanager import Alertmanager
from latencydoctor.stack.binaries import Binaries
from latencydoctor.stack.endpoints import LOOPBACK, Endpoints, TritonPorts
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.settings import Settings
from latencydoctor.stack.triton_tree import TritonTree

MARKER = "LATENCYDOCTOR_STACK"
"""Environment variable that every process of a stack carries, children of children included; holds its identity."""

GROUP = "stack"
"""The one group of supervisord's programs: it stops groups one after the other, a group's programs all at once."""

UNSAFE = frozenset("\"'%;#\\\n\r")
"""Characters that supervisord's configuration cannot carry in a path."""


@dataclass(frozen=True, slots=True)
class Program:
    """One line of command, what its environment adds, and whether a stop reaches its children as well."""

    name: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    stop_group: bool = True
    directory: Path | None = None
    """Where it runs; None for the state folder."""
    waits: bool = False
    """Whether it is started only when the controller asks for it."""


def triton_name(replica: int) -> str:
    """A Triton's name among the parts."""
    return "triton" if replica == 1 else f"triton-{replica}"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the programs are made from."""

    layout: Layout
    endpoints: Endpoints
    binaries: Binaries
    alertmanager: Alertmanager | None
    tree: TritonTree
    model: Path
    encodings: Path


def programs(inputs: Inputs, settings: Settings) -> tuple[Program, ...]:
    """Every program of the stack, in the order they start."""
    ports = inputs.endpoints.ports()
    first = TritonPorts(ports.triton_http, ports.triton_grpc, ports.triton_metrics)
    found = [_valkey(inputs)]
    found += [_triton(inputs, settings, *place) for place in enumerate((first, *ports.replicas), start=1)]
    state = str(inputs.layout.state)
    for name in ("controller", "gateway"):
        module = f"latencydoctor.stack.{name}"
        found.append(Program(name, (sys.executable, "-m", module, "--state", state)))
    found.append(_prometheus(inputs))
    if inputs.alertmanager is not None:
        found.append(_alertmanager(inputs, inputs.alertmanager.binary))
    return tuple(found)


def _valkey(inputs: Inputs) -> Program:
    command = (
        *(str(inputs.binaries.cache_server), "--port", "0"),
        *("--unixsocket", inputs.endpoints.valkey_socket, "--unixsocketperm", "700"),
        *("--dir", str(inputs.layout.valkey), "--save", "", "--appendonly", "no"),
        # By default it writes its title over its environment, and with it the mark by which a stack finds its own.
        *("--set-proc-title", "no"),
        *("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"),
    )
    return Program("valkey", command)


def _triton(inputs: Inputs, settings: Settings, replica: int, ports: TritonPorts) -> Program:
    layout, shm_prefix = inputs.layout, inputs.layout.shm_prefix_of(replica)
    launcher = (sys.executable, "-m", "latencydoctor.stack.triton_launch", "--shm-prefix", shm_prefix, "--")
    command = (
        *launcher,
        str(inputs.tree.server),
        f"--model-repository={layout.models}",
        f"--backend-directory={inputs.tree.root / 'backends'}",
        "--model-control-mode=explicit",
        f"--load-model={settings.inference.model}",
        # The configuration is complete, and completing it would start the model a second time: 1.2 s.
        "--disable-auto-complete-config",
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}",
        f"--http-address={LOOPBACK}",
        f"--http-port={ports.http}",
        f"--grpc-address={LOOPBACK}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-address={LOOPBACK}",
        f"--metrics-port={ports.metrics}",
        "--metrics-config=histogram_latencies=true",
        "--metrics-config=summary_latencies=true",
        "--metrics-interval-ms=1000",
        "--exit-timeout-secs=3",
    )
    environment = (
        ("LD_LIBRARY_PATH", inputs.tree.library_path),
        ("LATENCYDOCTOR_PACKAGE_FOLDER", str(package_folder())),
        ("LATENCYDOCTOR_MODEL_FILE", str(inputs.model)),
        ("LATENCYDOCTOR_ENCODINGS", str(inputs.encodings)),
        ("LATENCYDOCTOR_DEVICE_LOCK", str(layout.device_lock(replica))),
        ("LATENCYDOCTOR_DEVICE_CLOCK", str(layout.device_clock(replica))),
        # ONNX Runtime's and OpenBLAS's pools would take both cores from the rest of the stack.
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
    )
    # Triton ends its stubs itself; a stub that gets the signal first makes it report a crash.
    return Program(
        triton_name(replica), command, environment, stop_group=False, waits=replica > settings.inference.replicas
    )


def _prometheus(inputs: Inputs) -> Program:
    folder = inputs.layout.prometheus
    command = (
        str(inputs.binaries.prometheus),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=1d",
        "--storage.tsdb.retention.size=512MB",
        f"--web.listen-address={LOOPBACK}:{inputs.endpoints.ports().prometheus}",
    )
    return Program("prometheus", command)


def _alertmanager(inputs: Inputs, binary: Path) -> Program:
    folder = inputs.layout.alertmanager
    command = (
        str(binary),
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{inputs.endpoints.ports().alertmanager}",
        # Without it Alertmanager gossips on port 9094 of every address, and a second one dies of it.
        "--cluster.listen-address=",
    )
    return Program("alertmanager", command, directory=folder)


def package_folder() -> Path:
    """The folder this package is imported from."""
    return Path(__file__).resolve().parents[2]


def refuse_unsafe_path(state: Path) -> None:
    """KnownError when supervisord's configuration could not carry this path, or Triton would take it for several.

    Its Python backend hands the path to a child as one word of a line.
    """
    unsafe = (one for one in str(state) if one in UNSAFE or one.isspace() or not one.isprintable())
    bad = sorted(set(unsafe))
    if bad:
        raise KnownError(
            f"the state folder's path has {' '.join(map(repr, bad))} in it",
            hint="Choose a plainer path with --state.",
        )


def supervisord_config(layout: Layout, endpoints: Endpoints, listed: tuple[Program, ...]) -> str:
    """The text of supervisord.conf."""
    head = f"""\
; Written by `latencydoctor stack up`; edits are overwritten.
[supervisord]
identifier=latencydoctor-{layout.identity}
directory={layout.state}
logfile={layout.log("supervisord")}
logfile_maxbytes=10MB
logfile_backups=1
pidfile={layout.supervisor_pid}
childlogdir={layout.logs}
umask=077
nodaemon=false

[unix_http_server]
file={endpoints.supervisor_socket}
chmod=0600

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{endpoints.supervisor_socket}

; supervisord stops groups one after the other, the programs of one group all at once.
[group:{GROUP}]
programs={",".join(program.name for program in listed)}
"""
    return head + "".join(_section(layout, program, number) for number, program in enumerate(listed))


def _section(layout: Layout, program: Program, number: int) -> str:
    optional = ""
    if program.environment:
        optional += "environment=" + ",".join(f'{name}="{value}"' for name, value in program.environment) + "\n"
    if program.directory:
        optional += f"directory={program.directory}\n"
    return f"""
[program:{program.name}]
command={shlex.join(program.command)}
{optional}priority={number + 1}
autostart={str(not program.waits).lower()}
autorestart=true
startsecs=1
startretries=20
stopwaitsecs=6
stopasgroup={str(program.stop_group).lower()}
killasgroup=true
redirect_stderr=true
stdout_logfile={layout.log(program.name)}
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=1
"""
