"""Reads `latencydoctor.yaml`: where to look, what counts as bad, what may be changed.

Looked for at `--config`, then $LATENCYDOCTOR_CONFIG, then `./latencydoctor.yaml`, then the XDG configuration folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping as Environment
from pathlib import Path
from typing import TypeVar

from latencydoctor.content.reader import Mapping, Problems, load_mapping
from latencydoctor.errors import KnownError
from latencydoctor.model.configuration import (
    TARGET_WAIT_S,
    Configuration,
    Credentials,
    HttpSource,
    MetricsPage,
    PrometheusSource,
    Slo,
    Tenant,
    TorchServeModel,
    TorchServeSource,
    TritonTarget,
)

FILE_NAME = "latencydoctor.yaml"
ENVIRONMENT_NAME = "LATENCYDOCTOR_CONFIG"

_Asked = TypeVar("_Asked", bound=HttpSource)


def find(explicit: Path | None, environment: Environment[str, str] = os.environ) -> Path | None:
    """The configuration file in effect, None when there is none; `KnownError` when one was named and is not there."""
    named = explicit or (Path(environment[ENVIRONMENT_NAME]) if environment.get(ENVIRONMENT_NAME) else None)
    if named is not None:
        if not named.is_file():
            by = "--config" if explicit else f"${ENVIRONMENT_NAME}"
            raise KnownError(f"no configuration file at {named}", hint=f"Check the path given by {by}.")
        return named
    home = Path(environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".config")
    for candidate in (Path(FILE_NAME), home / "latencydoctor" / FILE_NAME):
        if candidate.is_file():
            return candidate
    return None


def load(path: Path) -> Configuration:
    """Read one file; raises `ContentErrors` with every problem and its line."""
    problems = Problems()
    top = load_mapping(path, problems)
    configuration = _read(top, path) if top else Configuration()
    problems.raise_any()
    return configuration


def _read(top: Mapping, path: Path) -> Configuration:
    sources = top.mapping("sources", None)
    targets = top.mapping("targets", None)
    slo = top.mapping("slo", None)
    bundled = targets.mapping("bundled", None) if targets else None
    torchserve = _torchserve(sources, path)
    configuration = Configuration(
        path=str(path),
        prometheus=_prometheus(sources, path),
        metrics_pages=_metrics_pages(sources, path),
        triton_grpc=_triton(sources),
        torchserve=torchserve,
        logs=_logs(sources, path),
        nvml=sources.flag("nvml", True) if sources else True,
        selector=top.text("selector", ""),
        model=top.text("model", ""),
        slo=_slo(slo) if slo else Slo(),
        thresholds=top.numbers("thresholds", None),
        bundled_state=_below(path, bundled.text("state")) if bundled else "",
        torchserve_target=_torchserve_target(targets, path, torchserve),
        triton_target=_triton_target(targets, path),
    )
    for mapping in (bundled, targets, sources, slo, top):
        if mapping:
            mapping.close()
    return configuration


def _prometheus(sources: Mapping | None, path: Path) -> PrometheusSource | None:
    node = sources.mapping("prometheus", None) if sources else None
    return _http(node, path, PrometheusSource) if node else None


def _torchserve(sources: Mapping | None, path: Path) -> TorchServeSource | None:
    node = sources.mapping("torchserve", None) if sources else None
    return _http(node, path, TorchServeSource, "management") if node else None


def _torchserve_target(targets: Mapping | None, path: Path, known: TorchServeSource | None) -> TorchServeModel | None:
    """The server is described here, or is the one that is asked anyway."""
    node = targets.mapping("torchserve", None) if targets else None
    if node is None:
        return None
    model, archives = node.text("model"), node.mapping("archives", None)
    named = tuple((version, archives.text(version)) for version in archives.names) if archives else ()
    for version, _ in named:
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", version):
            hint = "As in the archive's manifest; TorchServe reads versions as numbers."
            node.problem(f"{version!r} in {node.name}.archives is no version", "archives", hint)
    if "management" in node:
        return TorchServeModel(_http(node, path, TorchServeSource, "management"), model, named)
    node.close()
    if known is None:
        hint = "Name TorchServe's management address (port 8081 by default), here or as sources.torchserve.management."
        node.problem(f"{node.name}.management is missing", "", hint)
        return None
    return TorchServeModel(known, model, named)


def _http(node: Mapping, path: Path, kind: type[_Asked], address: str = "url") -> _Asked:
    """What is asked over HTTP, with all that it may want to see first; `address` names its URL's field."""
    credentials = Credentials(
        username=node.text("username", ""),
        password_env=node.text("password_env", ""),
        password_file=_file(node, "password_file", path),
        bearer_env=node.text("bearer_env", ""),
        bearer_file=_file(node, "bearer_file", path),
    )
    for secret in ("password", "bearer", "token"):
        if secret in node:
            hint = f"Use {'password' if secret == 'password' else 'bearer'}_env or _file to name where it lies."
            node.problem(f"a secret does not belong into this file: {secret}", secret, hint)
            node.pass_over(secret)
    source = kind(
        url=node.text(address),
        credentials=credentials,
        ca_file=_file(node, "ca_file", path),
        cert_file=_file(node, "cert_file", path),
        key_file=_file(node, "key_file", path),
        tenant=_tenant(node, path),
    )
    if source.key_file and not source.cert_file:
        node.problem(f"{node.name}.key_file needs a cert_file", "key_file", "Name the certificate of that key.")
    node.close()
    return source


def _tenant(source: Mapping, path: Path) -> Tenant | None:
    node = source.mapping("tenant", None)
    if node is None:
        return None
    tenant = Tenant(node.text("header"), node.text("value_env", ""), _file(node, "value_file", path))
    if bool(tenant.value_env) == bool(tenant.value_file):
        node.problem(
            f"{node.name} needs either value_env or value_file",
            "header",
            "Name the environment variable or the file that holds the tenant.",
        )
    node.close()
    return tenant


def _file(node: Mapping, key: str, path: Path) -> str:
    text = node.text(key, "")
    return _below(path, text) if text else ""


def _metrics_pages(sources: Mapping | None, path: Path) -> tuple[MetricsPage, ...]:
    """Each is an address, or a mapping where the page wants to know who reads it."""
    items = sources.texts_or_mappings("metrics") if sources else ()
    pages = tuple(MetricsPage(item) if isinstance(item, str) else _http(item, path, MetricsPage) for item in items)
    if sources and pages and "prometheus" in sources:
        hint = "A Prometheus that scrapes the pages knows their past as well: leave out metrics."
        sources.problem("sources has both prometheus and metrics; only one is read", "metrics", hint)
    return pages


def _triton(sources: Mapping | None) -> str:
    node = sources.mapping("triton", None) if sources else None
    if node is None:
        return ""
    address = _host_port(node)
    node.close()
    return address


def _host_port(node: Mapping) -> str:
    address = node.text("grpc")
    if address and not address.rpartition(":")[2].isdigit():
        node.problem(
            f"{node.name}.grpc is {address!r}, not host:port", "grpc", "Triton's gRPC port is 8001 by default."
        )
    return address


def _triton_target(targets: Mapping | None, path: Path) -> TritonTarget | None:
    node = targets.mapping("triton", None) if targets else None
    if node is None:
        return None
    wait_s = node.number("wait_s", TARGET_WAIT_S)
    if not 1 <= wait_s <= 3600:
        node.problem(f"{node.name}.wait_s must be from 1 to 3600", "wait_s", "Seconds until a change is in effect.")
    target = TritonTarget(_below(path, node.text("repository")), _host_port(node), node.text("model", ""), wait_s)
    node.close()
    return target


def _logs(sources: Mapping | None, path: Path) -> tuple[str, ...]:
    return tuple(_below(path, text) for text in sources.texts("logs", ())) if sources else ()


def _below(path: Path, text: str) -> str:
    """Paths in the file are relative to the file, not to where the command happens to run."""
    try:
        return str(path.parent / Path(text).expanduser())
    except RuntimeError:  # nobody has that home; whoever opens it says that it is not there
        return str(path.parent / text)


def _slo(node: Mapping) -> Slo:
    defaults = Slo()
    slo = Slo(
        p99_ms=node.number("p99_ms", defaults.p99_ms),
        error_ratio=node.number("error_ratio", defaults.error_ratio),
        baseline_ratio=node.number("baseline_ratio", defaults.baseline_ratio),
    )
    if slo.p99_ms <= 0:
        node.problem("slo.p99_ms must be above 0", "p99_ms")
    if not 0 < slo.error_ratio <= 1:
        node.problem("slo.error_ratio must be above 0 and at most 1", "error_ratio", "0.005 is half a per cent.")
    if slo.baseline_ratio <= 1:
        node.problem("slo.baseline_ratio must be above 1", "baseline_ratio")
    return slo
