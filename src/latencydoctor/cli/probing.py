"""Probes every configured source with a small question, for `config check`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from latencydoctor.cli import sources_wiring, wiring
from latencydoctor.content.everything import Content
from latencydoctor.errors import CannotTell, LatencyDoctorError
from latencydoctor.model.configuration import Configuration, MetricsPage, Probed, ProbedSource
from latencydoctor.model.evidence import Gap, GapReason, Selection, Window
from latencydoctor.model.readings import Readings

_DEADLINE_S = 5.0
_SENTENCES = (GapReason.UNREACHABLE, GapReason.BAD_ANSWER, GapReason.DEADLINE)


def probe(request: wiring.DiagnoseRequest) -> Probed:
    """Ask all sources; what goes wrong becomes a line, not an error."""
    configuration = wiring.load_configuration(request)
    return Probed(configuration.path, tuple(_probes(configuration)))


def _probes(configuration: Configuration) -> Iterator[ProbedSource]:
    content = wiring.load_content(None)
    selection = Selection(configuration.model, configuration.selector)
    if configuration.prometheus is not None:
        yield _prometheus(configuration, content, selection)
    elif configuration.metrics_pages:
        yield from (_page(page, content) for page in configuration.metrics_pages)
    for name, address, make in sources_wiring.named_fact_sources(configuration, _DEADLINE_S):
        yield _probed_facts(name, shown_address(address), make, selection)
    if configuration.logs:
        yield _logs(configuration)


def _probed_facts(name: str, address: str, make: sources_wiring.MakeFacts, selection: Selection) -> ProbedSource:
    try:
        return _facts(name, address, make().read(selection))
    except LatencyDoctorError as error:
        return ProbedSource(name, address, "wrong", error.message, error.hint)


def _prometheus(configuration: Configuration, content: Content, selection: Selection) -> ProbedSource:
    assert configuration.prometheus is not None, "the caller has checked"
    address = shown_address(configuration.prometheus.url)
    try:
        metrics = sources_wiring.prometheus_metrics(configuration, _DEADLINE_S)
        assert metrics is not None, "a Prometheus is configured"
        found = metrics.discover(content.dialects, selection, time.time())
    except CannotTell as error:
        return ProbedSource("prometheus", address, "unreachable", error.message, error.hint)
    except LatencyDoctorError as error:
        return ProbedSource("prometheus", address, "wrong", error.message, error.hint)
    services = ", ".join(f"{one.model} {{{one.selector}}}" for one in found.candidates) or "none"
    every = f", scraped every {found.scrape_interval_s:g} s" if found.scrape_interval_s else ""
    return ProbedSource(
        "prometheus", address, "ok", f"{len(found.names)} known metric names{every}; services: {services}"
    )


def _page(page: MetricsPage, content: Content) -> ProbedSource:
    address = shown_address(page.url)
    try:
        return ProbedSource("metrics page", address, "ok", sources_wiring.probe_page(page, content, _DEADLINE_S))
    except CannotTell as error:
        return ProbedSource("metrics page", address, "unreachable", error.message, error.hint)
    except LatencyDoctorError as error:
        return ProbedSource("metrics page", address, "wrong", error.message, error.hint)


def shown_address(url: str) -> str:
    """An address for the screen: without the credentials and the query that it may carry, however malformed it is."""
    scheme, separator, rest = url.partition("://")
    if scheme not in ("http", "https"):
        scheme, separator, rest = "", "", url
    return scheme + separator + rest.rpartition("@")[2].partition("?")[0].partition("#")[0]


def _logs(configuration: Configuration) -> ProbedSource:
    now_s = time.time()
    source = sources_wiring.log_source(configuration.logs, ends_s=time.monotonic() + _DEADLINE_S)
    # Without rules and in a window of no length: the files are opened and read, and nothing in them is of interest.
    readings = source.read((), Window(now_s, now_s))
    if readings.queries:
        # Files were opened, so that the time which large ones take says nothing against them.
        readings = replace(readings, gaps=tuple(gap for gap in readings.gaps if gap.reason is not GapReason.DEADLINE))
    return _facts("logs", ", ".join(configuration.logs), readings)


def _facts(name: str, address: str, readings: Readings) -> ProbedSource:
    told = len(readings.facts) + len(readings.log_events)
    usable = bool(readings.facts) or not readings.gaps
    if usable:
        return ProbedSource(name, address, "ok", f"{told} facts" if readings.facts else "readable")
    gap = readings.gaps[0]
    state = "wrong" if gap.reason is GapReason.BAD_ANSWER else "unreachable"
    # A gap that a source tells of in a whole sentence needs no reason before it.
    words = gap.detail if gap.reason in _SENTENCES else f"{gap.reason.value}: {gap.detail}"
    return ProbedSource(name, address, state, words, _next_step(gap))


def _next_step(gap: Gap) -> str:
    if not gap.needs:
        return ""
    if gap.reason in (GapReason.UNREACHABLE, GapReason.DEADLINE):
        return f"Check that it runs and that its address is right: {gap.needs}."
    return f"Give {gap.needs}."
