"""Where to look and what counts as bad: the records behind `latencydoctor.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Credentials:
    """Names of where a secret lies (a file or an environment variable), never the secret itself."""

    username: str = ""
    password_env: str = ""
    password_file: str = ""
    bearer_env: str = ""
    bearer_file: str = ""


@dataclass(frozen=True, slots=True)
class Tenant:
    """The header that tells a store for many teams whose series are meant, and where its value lies."""

    header: str
    value_env: str = ""
    value_file: str = ""


@dataclass(frozen=True, slots=True)
class HttpSource:
    """Something to ask over HTTP at `url`, and how to be let in.

    `ca_file` is the CA that its certificate must come from; `cert_file` and `key_file` are the client's own.
    """

    url: str
    credentials: Credentials = Credentials()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    tenant: Tenant | None = None


@dataclass(frozen=True, slots=True)
class PrometheusSource(HttpSource):
    """A Prometheus, or what speaks its API (a path prefix is kept)."""


@dataclass(frozen=True, slots=True)
class MetricsPage(HttpSource):
    """One metrics page, read where there is no Prometheus; an address without a path means its `/metrics`."""


@dataclass(frozen=True, slots=True)
class TorchServeSource(HttpSource):
    """A TorchServe's management API; its `bearer_file` may be the key_file.json that TorchServe writes."""


TARGET_WAIT_S = 120.0
"""Triton polls every 15 s by default; a large model takes longer than this to load, and its owner knows how long."""


@dataclass(frozen=True, slots=True)
class TritonTarget:
    """A model of any Triton that fixes may change: its repository's folder, the server's gRPC address, its name.

    An empty `model` is the only one in the repository. `wait_s` is how long a change may take to be in effect.
    """

    repository: str
    grpc: str
    model: str = ""
    wait_s: float = TARGET_WAIT_S


@dataclass(frozen=True, slots=True)
class TorchServeModel:
    """A model of a TorchServe that fixes may change.

    `archives` are the model's archives by version, alike but for that: with a further one the old version serves until
    the new one is ready.
    """

    server: TorchServeSource
    model: str
    archives: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Slo:
    """What healthy means. Defaults from the mission: p99 below 1 s, errors below 0.5 %."""

    p99_ms: float = 1000.0
    error_ratio: float = 0.005
    baseline_ratio: float = 2.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything `latencydoctor.yaml` can say; `path` is where it was read, empty when defaults are in use.

    `metrics_pages` are read where there is no Prometheus. `triton_grpc` is host:port,
    `logs` are paths, folders or globs; `thresholds` override a playbook's by name;
    `bundled_state` is the state folder of a bundled stack that fixes may change, empty when there is none;
    `torchserve_target` is a model of a TorchServe, `triton_target` one of any other Triton that they may change.
    """

    path: str = ""
    prometheus: PrometheusSource | None = None
    metrics_pages: tuple[MetricsPage, ...] = ()
    triton_grpc: str = ""
    torchserve: TorchServeSource | None = None
    logs: tuple[str, ...] = ()
    nvml: bool = True
    selector: str = ""
    model: str = ""
    slo: Slo = field(default_factory=Slo)
    thresholds: tuple[tuple[str, float], ...] = ()
    bundled_state: str = ""
    torchserve_target: TorchServeModel | None = None
    triton_target: TritonTarget | None = None


@dataclass(frozen=True, slots=True)
class ProbedSource:
    """One source as `config check` found it: `state` is ok, wrong (the configuration is), or unreachable."""

    name: str
    address: str
    state: str
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """Every configured source, and the configuration file they come from (empty when flags alone said so)."""

    path: str
    sources: tuple[ProbedSource, ...]
