"""The drill's patient: a bundled stack in a state folder of its own, brought up as a scenario says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from latencydoctor.app.drill_ports import Executions, Place
from latencydoctor.app.ports import Observer, Progress
from latencydoctor.errors import KnownError
from latencydoctor.model.drill import Blow, Injection, Scenario
from latencydoctor.remedy import int8
from latencydoctor.stack import faults, host, lifecycle
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.encoder.corpus import faq_corpus
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout, locate
from latencydoctor.stack.prepare import UpOptions
from latencydoctor.stack.probes import http_get


class BundledPatient:
    """Implements `app.drill_ports.Patient` with the bundled stack."""

    def __init__(self, state: Path) -> None:
        self._layout: Layout = locate(state)
        self._begun = False
        self._endpoints: Endpoints | None = None
        self._going_on: faults.CacheTrouble | faults.BusyNeighbour | None = None

    @property
    def configuration(self) -> Path:
        """The doctor's configuration for this stack, there once it is up."""
        return self._layout.doctor_config

    def up(self, scenario: Scenario, observer: Observer) -> Place:
        """Write the scenario's settings, start the stack, and wait until it answers."""
        host.refuse_unsupported(host.this_host())
        settings = scenario_settings(scenario)
        stack_settings.validate(settings, scenario.fault)
        if scenario.expected_fix == int8.FIX_ID:
            # Nobody builds a model in the middle of an incident: it lies ready, or is made before the crowd comes.
            from latencydoctor.stack.quantise import shelf

            shelf.make(lambda line: observer(_told("quantise", line)))
        self._begun = True
        self._layout.create()
        stack_settings.save(self._layout.settings, settings)
        self._endpoints = lifecycle.up(self._layout, UpOptions(), lambda part, line: observer(_told(part, line)))
        if scenario.injection is not None and scenario.injection.blow is Blow.LOSE_CACHE:
            self._going_on = faults.renew_cache(self._endpoints.valkey_socket, scenario.injection.amount)
        questions = tuple(faq_corpus().index)
        return Place(self._endpoints.gateway, settings.accelerator, questions, settings.inference.deadline_ms)

    def strike(self, injection: Injection) -> None:
        """Do the fault to the running stack; what has to be done again and again goes on until `down`."""
        socket = self._running().valkey_socket
        if injection.blow is Blow.THROTTLE:
            faults.throttle(self._layout, injection.amount)
        elif injection.blow is Blow.FLUSH_CACHE:
            self._going_on = faults.flush_cache(socket, injection.amount)
        elif injection.blow is Blow.LOSE_CACHE:
            if self._going_on is not None:
                self._going_on.end()
            faults.empty_cache(socket)
        elif injection.blow is Blow.CHANGE_SETTINGS:
            changed = stack_settings.with_values(stack_settings.load(self._layout.settings), injection.settings)
            stack_settings.save(self._layout.settings, changed.next_generation())
        elif injection.blow is Blow.STALL_CACHE:
            self._going_on = faults.stall_cache(socket, injection.amount)
        else:
            self._going_on = faults.BusyNeighbour(self._layout.device_lock(2), injection.amount)

    def firing(self) -> tuple[str, ...]:
        """Alerts of severity `page` that Prometheus says fire now."""
        data = _get(self._running().prometheus + "/api/v1/alerts")["data"]["alerts"]
        return tuple(
            alert["labels"]["alertname"]
            for alert in data
            if alert["state"] == "firing" and alert["labels"].get("severity") == "page"
        )

    def executions(self) -> Executions:
        """Counted by the device itself; a real accelerator exports neither, which is zero overruns of zero."""
        return Executions(
            self._total("sim_accelerator_executions_total"), self._total("sim_accelerator_overruns_total")
        )

    def _total(self, metric: str) -> float:
        result = _get(f"{self._running().prometheus}/api/v1/query?query=sum({metric})")["data"]["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def down(self) -> None:
        """End the fault and every part, where any was begun; the state folder stays."""
        if self._going_on is not None:
            self._going_on.end()
        if self._begun:
            lifecycle.down(self._layout)

    def _running(self) -> Endpoints:
        if self._endpoints is None:
            raise KnownError("the drill's stack is not up", hint="Run `latencydoctor stack status` to see why.")
        return self._endpoints


def scenario_settings(scenario: Scenario) -> stack_settings.Settings:
    """The stack's defaults with what the scenario changes."""
    settings = stack_settings.Settings(accelerator=scenario.accelerator)
    changed = stack_settings.with_values(settings, scenario.settings)
    return replace(changed, inference=replace(changed.inference, deadline_ms=scenario.deadline_ms))


def _told(part: str, line: str) -> Progress:
    return Progress("up", f"{part} {line}")


def _get(url: str) -> dict:  # type: ignore[type-arg]  # Prometheus' own JSON, taken apart on the spot
    answer = http_get(url)
    try:
        document = json.loads(answer.body)
    except ValueError as error:
        said = f"status {answer.status}" if answer.status else answer.body
        raise KnownError(
            f"the drill's Prometheus does not answer: {said}", hint="See `latencydoctor stack logs prometheus`."
        ) from error
    if not isinstance(document, dict) or document.get("status") != "success":
        raise KnownError(f"the drill's Prometheus refuses {url}", hint="See `latencydoctor stack logs prometheus`.")
    return document
