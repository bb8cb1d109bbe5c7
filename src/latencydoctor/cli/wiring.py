"""The composition root: the use cases and what they need; `cli/sources_wiring.py` is its reading half, and
`cli/targets_wiring.py` knows the targets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from latencydoctor.app.ports import Observer
from latencydoctor.app.remarks import remarks_on
from latencydoctor.app.witness import ask_queue
from latencydoctor.cli import targets_wiring as targets
from latencydoctor.cli.playbook import named_playbook, refuse_unknown_thresholds
from latencydoctor.cli.sources_wiring import (
    DiagnoseRequest,
    collect_live,
    executed_batches,
    load_configuration,
    prometheus_metrics,
    read_bundle,
    save_bundle,
    silent,
)
from latencydoctor.cli.times import length_s
from latencydoctor.content.everything import Content, read_everything
from latencydoctor.content.locate import locate
from latencydoctor.diagnosis.rank import Knowledge
from latencydoctor.diagnosis.rank import diagnose as conclude
from latencydoctor.evidence.assemble import assemble
from latencydoctor.model.configuration import Configuration
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.model.evidence import Collected, Evidence, Selection

if TYPE_CHECKING:
    from latencydoctor.app.ports import Cancelled, RunHistory, Target
    from latencydoctor.app.treat import Basis, Tools
    from latencydoctor.model.reached import Executions

__all__ = [
    "DiagnoseRequest",
    "Diagnosed",
    "Observed",
    "SystemClock",
    "Treatment",
    "basis_from",
    "basis_of",
    "diagnose",
    "history_in",
    "load_configuration",
    "load_content",
    "observe",
    "save_bundle",
    "silent",
    "treatment",
]


class SystemClock:
    """The machine's own time."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A diagnosis and what it was drawn from."""

    collected: Collected
    evidence: Evidence
    diagnosis: Diagnosis
    configuration: Configuration


def load_content(named: Path | None) -> Content:
    """Rules and playbooks, all checked."""
    return read_everything(locate(named))


@dataclass(frozen=True, slots=True)
class Observed:
    """What was collected (or replayed) and the evidence it makes."""

    collected: Collected
    evidence: Evidence


def observe(request: DiagnoseRequest, observer: Observer = silent) -> Observed:
    """Collect (or replay) and assemble; nothing is concluded."""
    content = read_everything(locate(request.content), dialects=request.bundle is None)
    return _observe(request, load_configuration(request), content, observer)


def _observe(request: DiagnoseRequest, configuration: Configuration, content: Content, observer: Observer) -> Observed:
    if request.bundle is not None:
        collected = read_bundle(request, request.bundle)
    else:
        collected = collect_live(request, configuration, content, observer)
    return Observed(collected, assemble(collected, configuration.slo, content.signals))


def diagnose(request: DiagnoseRequest, observer: Observer = silent) -> Diagnosed:
    """Collect (or replay), assemble, conclude."""
    content = read_everything(locate(request.content), dialects=request.bundle is None)
    playbook = named_playbook(content, request.playbook)
    configuration = load_configuration(request)
    refuse_unknown_thresholds(configuration, playbook, content.causes)
    observed = _observe(request, configuration, content, observer)
    collected, evidence = observed.collected, observed.evidence
    slo_p99_ms = configuration.slo.p99_ms
    diagnosis = conclude(
        evidence,
        Knowledge(playbook, content.causes, configuration.thresholds),
        lambda rule, seen: ask_queue(rule, seen, slo_p99_ms),
    )
    diagnosis = replace(diagnosis, remarks=remarks_on(evidence, configuration.slo))
    return Diagnosed(collected, evidence, diagnosis, configuration)


@dataclass(frozen=True, slots=True)
class Treatment:
    """The one target that fixes may change, with everything that a change needs."""

    target: Target
    tools: Tools
    basis: Callable[[], Basis]


def treatment(
    request: DiagnoseRequest,
    named_target: str | Path | None,
    observer: Observer,
    cancelled: Cancelled | None = None,
    effects: Effects = unwatched,
    *,
    measures: bool = True,
) -> Treatment:
    """The target named on the command line (as --target says it) or in the configuration; `UsageError` for none.

    Without `measures` nothing is verified, and a Prometheus whose credentials are not at hand is in nobody's way.
    Every change it makes, and every question it asks a server on the way, passes through `effects`.
    """
    configuration = load_configuration(request)
    clock = SystemClock()
    bound = targets.bound(configuration, str(named_target or ""), clock.now_s, effects)
    from latencydoctor.app.fresh_metrics import MetricsArms, MetricsVerifier
    from latencydoctor.app.treat import Tools, never

    selection = Selection(configuration.model or bound.model, configuration.selector)

    def batches() -> Executions | None:
        addresses = bound.tritons()
        if not addresses:
            return None
        with effects(Effect.ASK_TRITON):
            return executed_batches(addresses, selection)

    verifier = None
    metrics = prometheus_metrics(configuration, length_s(request.deadline, "--deadline")) if measures else None
    if metrics is not None:
        content = load_content(request.content)
        verifier = MetricsVerifier(metrics, content.dialects, selection)
    tools = Tools(
        bound.target,
        bound.changer,
        bound.history,
        verifier,
        clock,
        observer,
        cancelled or never,
        cache=bound.cache,
        builds=bound.builds,
        arms=MetricsArms.over(verifier) if verifier is not None and bound.canary else None,
        batches=batches,
    )
    return Treatment(bound.target, tools, lambda: basis_of(request, configuration))


def history_in(folder: Path) -> RunHistory | None:
    """The journals in that folder, for whoever only looks; None where nothing was ever changed."""
    if not folder.is_dir():
        return None
    from latencydoctor.journal import JournalFolder

    return JournalFolder(folder, SystemClock().now_s)


def basis_of(request: DiagnoseRequest, configuration: Configuration) -> Basis:
    """What a plan rests on: a fresh diagnosis where there is a source to draw it from."""
    from latencydoctor.app.treat import Basis

    if configuration.prometheus is None and request.bundle is None:
        return Basis(slo=configuration.slo)
    return basis_from(diagnose(request))


def basis_from(found: Diagnosed) -> Basis:
    """What a plan takes from a diagnosis that has been made."""
    from latencydoctor.app.treat import Basis
    from latencydoctor.evidence.stretches import bad_starts
    from latencydoctor.forecast.histogram import bounds_of
    from latencydoctor.forecast.situation import batch_times

    collected, slo = found.collected, found.configuration.slo
    return Basis(
        found.diagnosis,
        found.evidence,
        slo,
        batch_times(collected.facts),
        bounds_of(collected.facts),
        window_s=collected.window_s,
        earlier_s=bad_starts(collected, slo),
    )
