"""Reading, put together: the only module that knows the sources, and what a command line asks of them.

The other half of the composition root is `cli/wiring.py`, which knows the use cases and the targets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.app.ports import FactSource, LogSource, MetricsSource, Observer, Progress
from latencydoctor.cli.time_shares import Shares, share_out
from latencydoctor.cli.times import length_s, moment_s, span_s
from latencydoctor.content import configuration as configuration_file
from latencydoctor.errors import UsageError
from latencydoctor.model.configuration import Configuration, MetricsPage, PrometheusSource, TorchServeSource
from latencydoctor.model.evidence import Collected, Selection, Window

if TYPE_CHECKING:
    from latencydoctor.content.everything import Content
    from latencydoctor.model.reached import Executions
    from latencydoctor.sources.address import Address


_CLOCKS_DIFFER_S = 300.0
"""By how much the clock that a time was read from may be ahead of this machine's."""

MakeFacts = Callable[[], FactSource]
"""Makes a source; `SourceError` when it is configured wrongly."""


def silent(_progress: Progress) -> None:
    """An observer for whoever shows nothing."""


@dataclass(frozen=True, slots=True)
class DiagnoseRequest:
    """What the command line says about one diagnosis, still as text; empty means what the configuration says."""

    config: Path | None = None
    prometheus: str = ""
    metrics_urls: tuple[str, ...] = ()
    scrapes: int | None = None
    every: str = ""
    triton: str = ""
    torchserve: str = ""
    logs: tuple[str, ...] = ()
    selector: str = ""
    model: str = ""
    at: str = ""
    since: str = "30m"
    baseline: str = ""
    deadline: str = "20s"
    playbook: str = "latency-spike"
    bundle: Path | None = None
    content: Path | None = None
    redact_prompts: bool = False


def load_configuration(request: DiagnoseRequest) -> Configuration:
    """The configuration file with the flags on top: a flag beats the environment, which beats the file."""
    path = configuration_file.find(request.config)
    found = configuration_file.load(path) if path else Configuration()
    if request.prometheus:
        # Credentials belong to the address they were written for, so another address takes none along.
        found = replace(found, prometheus=PrometheusSource(request.prometheus), metrics_pages=())
    if request.metrics_urls:
        if request.prometheus:
            raise UsageError("--prometheus and --metrics-url are two ways to read the same: give one")
        from latencydoctor.sources.pages_http import named_pages

        found = replace(found, prometheus=None, metrics_pages=named_pages(request.metrics_urls, found.metrics_pages))
    return replace(
        found,
        triton_grpc=request.triton or found.triton_grpc,
        torchserve=_torchserve(request.torchserve, found.torchserve),
        logs=request.logs or found.logs,
        selector=request.selector or found.selector,
        model=request.model or found.model,
    )


def _torchserve(named: str, found: TorchServeSource | None) -> TorchServeSource | None:
    """The one named on the command line, with its token if the file knows that very address."""
    return TorchServeSource(named) if named and (found is None or found.url != named) else found


def collect_live(
    request: DiagnoseRequest, configuration: Configuration, content: Content, observer: Observer = silent
) -> Collected:
    """Read every configured source within the deadline."""
    shares = share_out(configuration, length_s(request.deadline, "--deadline"), live=not request.at)
    if configuration.metrics_pages and configuration.prometheus is None:
        return _collect_from_pages(request, configuration, content, shares, observer)
    if request.scrapes is not None or request.every:
        option = "--scrapes" if request.scrapes is not None else "--every"
        raise UsageError(f"{option} is for metrics pages, and none is read", hint="Give --metrics-url URL as well.")
    at_s = _moment_looked_at_s(request)
    rules = Rules(content.dialects, content.signals, content.log_rules)
    sources = build_sources(configuration, shares, rules, live=not request.at, redact_prompts=request.redact_prompts)
    selection = Selection(configuration.model, configuration.selector)
    baseline = Window(*span_s(request.baseline, "--baseline", at_s)) if request.baseline else None
    asked = CollectRequest(selection, at_s, length_s(request.since, "--since"), baseline=baseline)
    return collect(sources, rules, asked)


def _moment_looked_at_s(request: DiagnoseRequest) -> float:
    now_s = time.time()
    at_s = moment_s(request.at, "--at") if request.at else now_s
    if at_s > now_s + _CLOCKS_DIFFER_S:
        raise UsageError(f"--at is {request.at!r}, which is yet to come", hint="Leave it out for now.")
    return at_s


def _collect_from_pages(
    request: DiagnoseRequest, configuration: Configuration, content: Content, shares: Shares, observer: Observer
) -> Collected:
    """Read metrics pages for a while first; what is looked at then ends with the last one read."""
    from latencydoctor.sources.pages import PageMetrics

    past = {"--at": request.at, "--baseline": request.baseline, "--since": request.since != DiagnoseRequest().since}
    for option in (option for option, given in past.items() if given):
        raise UsageError(f"{option} needs a past, and metrics pages have none", hint="Give --prometheus URL instead.")
    every_s = length_s(request.every, "--every") if request.every else None
    rules = Rules(content.dialects, content.signals, content.log_rules)
    sources = build_sources(configuration, shares, rules, live=True, redact_prompts=request.redact_prompts)
    pages = PageMetrics(
        configuration.metrics_pages, request.scrapes, every_s, shares.metrics_s, share_ratio=shares.metrics_ratio
    )
    at_s = pages.record(
        content.dialects, lambda done_ratio, text: observer(Progress("metrics pages", text, done_ratio))
    )
    selection = Selection(configuration.model, configuration.selector)
    sources = replace(sources, metrics=pages)
    return collect(sources, rules, CollectRequest(selection, at_s, pages.schedule.span_s, pages.schedule.window_s))


def probe_page(page: MetricsPage, content: Content, deadline_s: float) -> str:
    """What one metrics page holds, in words."""
    from latencydoctor.sources import pages_probe

    return pages_probe.probe_page(page, content.dialects, deadline_s)


def build_sources(
    configuration: Configuration, shares: Shares, rules: Rules, *, live: bool, redact_prompts: bool = False
) -> Sources:
    """The edges behind the configuration. Only `live` may ask what has no history: facts are of now."""
    metrics = prometheus_metrics(configuration, shares.metrics_s)
    logs = None
    if configuration.logs:
        from latencydoctor.sources.logfiles import LogFiles, LogOptions

        options = LogOptions(redact_prompts=redact_prompts)
        logs = LogFiles(configuration.logs, time.time, ends_s=shares.logs_end_s, options=options)
        logs.prepare(rules.logs)
    named = named_fact_sources(configuration, shares.facts_each_s) if live else ()
    facts = tuple(make() for _, _, make in named)
    return Sources(metrics, facts, logs)


def prometheus_metrics(configuration: Configuration, deadline_s: float) -> MetricsSource | None:
    """The Prometheus that is configured, None when there is none."""
    if configuration.prometheus is None:
        return None
    from latencydoctor.sources.prometheus import PrometheusMetrics

    return PrometheusMetrics(configuration.prometheus, deadline_s)


def log_source(paths: Sequence[str], standard_input: BinaryIO | None = None, ends_s: float | None = None) -> LogSource:
    """Log files, folders and globs; `-` among the paths is `standard_input`. `ends_s` is when to stop, if at all."""
    from latencydoctor.sources.logfiles import LogFiles

    return LogFiles(paths, time.time, standard_input, ends_s)


def named_fact_sources(configuration: Configuration, deadline_s: float) -> tuple[tuple[str, str, MakeFacts], ...]:
    """What is true now and has no history: name, address, and what makes the source that may take `deadline_s`."""
    found: list[tuple[str, str, MakeFacts]] = []
    if configuration.triton_grpc:
        found.append(("triton", configuration.triton_grpc, partial(_triton_facts, configuration, deadline_s)))
    if configuration.torchserve is not None:
        asked = configuration.torchserve
        found.append(("torchserve", asked.url, partial(_torchserve_facts, asked, deadline_s)))
    if configuration.nvml and _is_local(configuration):
        found.append(("nvml", "this machine", _nvml_facts))
    return tuple(found)


def _triton_facts(configuration: Configuration, deadline_s: float) -> FactSource:
    from latencydoctor.sources.triton_stats import TritonStatistics

    return TritonStatistics(configuration.triton_grpc, deadline_s)


def executed_batches(addresses: Sequence[str], selection: Selection) -> Executions | None:
    """Executions by batch size on these Tritons; None where one does not tell."""
    from latencydoctor.app.batches import executed
    from latencydoctor.sources.triton_stats import TritonStatistics

    return executed([TritonStatistics(address) for address in addresses], selection)


def _torchserve_facts(asked: TorchServeSource, deadline_s: float) -> FactSource:
    from latencydoctor.sources.torchserve_management import TorchServeManagement

    return TorchServeManagement(asked, deadline_s)


def torchserve_server(asked: TorchServeSource) -> Address:
    """Where a TorchServe is, checked, with the headers that let one in; `SourceError` says what to correct."""
    from latencydoctor.sources.torchserve_address import torchserve_address

    return torchserve_address(asked, os.environ)


def _nvml_facts() -> FactSource:
    from latencydoctor.sources.nvml import NvmlDevices

    return NvmlDevices()


def _is_local(configuration: Configuration) -> bool:
    """Whether the service runs on this machine; this machine's devices say nothing about another's."""
    address = configuration.triton_grpc.rpartition(":")[0]
    if not address and configuration.torchserve is not None:
        address = _host(configuration.torchserve.url)
    if not address and configuration.prometheus is not None:
        address = _host(configuration.prometheus.url)
    elif not address and len(configuration.metrics_pages) == 1:
        address = _host(configuration.metrics_pages[0].url)
    return address.strip("[]") in ("localhost", "127.0.0.1", "::1")


def _host(url: str) -> str:
    """An address's host; empty where it has none. Its source says what is wrong with one that is malformed."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


_OF_SOURCES = {
    "prometheus": "--prometheus",
    "metrics_urls": "--metrics-url",
    "scrapes": "--scrapes",
    "every": "--every",
    "triton": "--triton",
    "torchserve": "--torchserve",
    "logs": "--log",
    "selector": "--selector",
    "model": "--model",
    "at": "--at",
    "since": "--since",
    "baseline": "--baseline",
    "redact_prompts": "--redact-prompts",
}
"""What is asked of sources, and so settled for good in a bundle: the option by its field of a request."""


def read_bundle(request: DiagnoseRequest, path: Path) -> Collected:
    """What `--save` stored; `UsageError` for an option that would seem to have chosen something in it."""
    from latencydoctor.sources.bundle import read

    plain = DiagnoseRequest()
    asked = [option for field, option in _OF_SOURCES.items() if getattr(request, field) != getattr(plain, field)]
    if asked:
        raise UsageError(
            f"{', '.join(asked)} {'needs' if len(asked) == 1 else 'need'} a source to ask",
            hint="A bundle holds what it was saved with: leave out the one or the other.",
        )
    return read(path)


def save_bundle(path: Path, collected: Collected) -> None:
    """Store what was collected, for `--bundle`."""
    from latencydoctor.sources.bundle import write

    write(path, collected)
