"""The configuration a stack would get, without starting or writing anything: what `stack render` shows."""

from __future__ import annotations

import os
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack import alertmanager, binaries, endpoints, prepare, triton_tree
from latencydoctor.stack.binaries import Binaries
from latencydoctor.stack.encoder import corpus, encodings, onnx_model
from latencydoctor.stack.endpoints import Endpoints, Ports, TritonPorts
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.prepare import Rendered, UpOptions
from latencydoctor.stack.programs import Inputs, refuse_unsafe_path
from latencydoctor.stack.settings import MAX_REPLICAS, Settings


def preview(layout: Layout, settings_file: Path | None) -> Rendered:
    """All configuration files for these settings, exactly as `up` would write them.

    ContentError(s) for broken settings, KnownError when the stack's packages are not installed.
    """
    refuse_unsafe_path(layout.state)
    settings = prepare.wanted_settings(layout, UpOptions(settings_file=settings_file))
    cache, model = prepare.user_cache(), onnx_model.model_path()
    found = _binaries(cache)
    alerting = alertmanager.runnable(found, cache)
    inputs = Inputs(
        layout=layout,
        endpoints=_endpoints(layout, settings, alertmanager=alerting is not None),
        binaries=found,
        alertmanager=alerting,
        tree=triton_tree.location(cache),
        model=model,
        encodings=encodings.location(corpus.faq_corpus(), model, cache),
    )
    return prepare.render(inputs, settings)


def _endpoints(layout: Layout, settings: Settings, *, alertmanager: bool) -> Endpoints:
    """Those of the state folder; where there was no stack yet, port 0 stands for one that `up` will choose."""
    if layout.endpoints.exists():
        return endpoints.load(layout.endpoints)
    undecided = Ports(0, 0, 0, 0, 0, 0, 0, (TritonPorts(0, 0, 0),) * (MAX_REPLICAS - 1))
    return endpoints.endpoints_for(
        layout.socket_folder,
        undecided,
        settings.accelerator,
        alertmanager=alertmanager,
    )


def _binaries(cache: Path) -> Binaries:
    try:
        return binaries.discover(binaries.tools(os.environ, cache))
    except KnownError:
        return binaries.names_only()
