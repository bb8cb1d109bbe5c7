"""Everything `up` gets ready before it starts a process: settings, programs, encodings, configuration files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from latencydoctor.errors import LatencyDoctorError
from latencydoctor.stack import alertmanager, binaries, endpoints, host, monitoring, profile, replicas, triton_tree
from latencydoctor.stack import compile as compiler
from latencydoctor.stack import programs as listing
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Ports
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.model_folder import write_model
from latencydoctor.stack.programs import Inputs, Program
from latencydoctor.stack.settings import Settings

Observer = Callable[[str, str], None]
"""Told what happens: the part it is about ("stack" for the whole) and one line."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `stack up` can be told."""

    settings_file: Path | None = None
    """Settings to start with; None keeps those of the state folder, or takes the defaults."""
    accelerator: str | None = None
    """Replaces the settings' accelerator."""
    new_ports: bool = False
    """Look for other ports instead of keeping those of the state folder."""
    cache_server: str = "valkey"
    """"valkey" for the one in the wheel, "redis" for the system's redis-server."""
    deadline_s: float = 60.0
    """How long the parts may take until all are ready."""


def wanted_settings(layout: Layout, options: UpOptions) -> Settings:
    """The settings `up` is asked for; ContentError(s) when they are broken, KnownError for an unknown profile."""
    if options.settings_file is not None:
        settings = stack_settings.load(options.settings_file)
    elif layout.settings.exists():
        settings = stack_settings.load(layout.settings)
    else:
        settings = Settings()
    if options.accelerator is not None and options.accelerator != settings.accelerator:
        kept = options.settings_file is None and layout.settings.exists()
        settings = replace(settings.next_generation() if kept else settings, accelerator=options.accelerator)
        stack_settings.validate(settings, "--accelerator")
    if settings.simulated:
        profile.load(settings.profile)
    return settings


def user_cache() -> Path:
    """The folder of what all stacks of this user share: Triton's tree, encodings, downloaded tools."""
    from platformdirs import user_cache_path  # noqa: PLC0415 - only where the stack is used

    return user_cache_path("latencydoctor", appauthor=False)


def gather(
    layout: Layout, settings: Settings, options: UpOptions, environment: Mapping[str, str], tell: Observer
) -> Inputs:
    """Finds the programs, makes what is missing in the user's cache, and chooses the ports. Starts nothing."""
    from latencydoctor.stack.encoder import corpus, encodings, onnx_model  # noqa: PLC0415 - loads ONNX Runtime

    cache = user_cache()
    found = binaries.discover(binaries.tools(environment, cache), options.cache_server)
    alerting = alertmanager.runnable(found, cache)
    if alerting is None:
        tell("alertmanager", "not found: alerts are shown by Prometheus only")
    tree = triton_tree.prepare(cache)
    model = onnx_model.model_path()

    def progress(done: int, total: int) -> None:
        if done == total or done % (64 * encodings.BATCH) == encodings.BATCH:
            tell("stack", f"encoding the FAQ, once for this user: {done} of {total} texts")

    encoded = encodings.prepare(corpus.faq_corpus(), model, cache, progress)
    ports = _ports(layout, options)
    addresses = endpoints.endpoints_for(
        layout.sockets(),
        ports,
        settings.accelerator,
        alertmanager=alerting is not None,
    )
    return Inputs(layout, addresses, found, alerting, tree, model, encoded)


def _ports(layout: Layout, options: UpOptions) -> Ports:
    ports = endpoints.free_ports(stack_settings.MAX_REPLICAS)
    if options.new_ports or not layout.endpoints.exists():
        return ports
    kept = endpoints.load(layout.endpoints).ports()
    endpoints.refuse_taken(kept)
    # A part that the stack did not have before: 0, or fewer Tritons.
    new = {item.name: getattr(ports, item.name) for item in fields(Ports) if not getattr(kept, item.name)}
    more = ports.replicas[len(kept.replicas) :]
    return replace(kept, **{**new, "replicas": (*kept.replicas, *more)})


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of every configuration file of a stack."""

    config_pbtxt: str
    prometheus: str
    alertmanager: str
    supervisord: str
    doctor: str


def render(inputs: Inputs, settings: Settings) -> Rendered:
    """All configuration files of the stack, as text."""
    layout, addresses = inputs.layout, inputs.endpoints
    listed: tuple[Program, ...] = listing.programs(inputs, settings)
    return Rendered(
        config_pbtxt=compiler.to_pbtxt(settings),
        prometheus=monitoring.prometheus_config(
            addresses, str(layout.prometheus / "rules" / "*.yaml"), layout.triton_targets
        ),
        alertmanager=monitoring.alertmanager_config(),
        supervisord=listing.supervisord_config(layout, addresses, listed),
        doctor=monitoring.doctor_config(addresses, layout.logs),
    )


def write_files(inputs: Inputs, settings: Settings) -> None:
    """Writes every file the parts read at their start. OSError passes, for the caller to name the folder."""
    layout, rendered = inputs.layout, render(inputs, settings)
    for replica in range(1, stack_settings.MAX_REPLICAS + 1):
        layout.device_clock(replica).unlink(missing_ok=True)
    model = layout.models / settings.inference.model
    write_model(model, rendered.config_pbtxt, settings.versions, inputs.model, inputs.encodings.parent)
    rules = layout.prometheus / "rules"
    shutil.rmtree(rules, ignore_errors=True)
    rules.mkdir(mode=0o700)
    for path in monitoring.rule_files():
        shutil.copyfile(path, rules / path.name)
    write_atomically(layout.prometheus / "prometheus.yml", rendered.prometheus)
    write_atomically(layout.alertmanager / "alertmanager.yml", rendered.alertmanager)
    if inputs.alertmanager is not None:
        alertmanager.place_templates(inputs.alertmanager, layout.alertmanager)
    write_atomically(layout.supervisor_config, rendered.supervisord)
    write_atomically(layout.doctor_config, rendered.doctor)
    replicas.start_with(layout, inputs.endpoints, settings.inference.replicas)
    _save_settings(layout.settings, settings)
    endpoints.save(layout.endpoints, inputs.endpoints)


def _save_settings(path: Path, settings: Settings) -> None:
    """Leaves a file that says the same as it is: its comments are somebody's, and its digest is in plans."""
    try:
        if stack_settings.load(path) == settings:
            return
    except LatencyDoctorError:
        pass
    stack_settings.save(path, settings)


def check_host(layout: Layout) -> None:
    """KnownError when this machine, the state folder's path or the room on its disk rule a stack out."""
    host.refuse_unsupported(host.this_host())
    listing.refuse_unsafe_path(layout.state)
    layout.create()
    host.refuse_full_disk(layout.state)
