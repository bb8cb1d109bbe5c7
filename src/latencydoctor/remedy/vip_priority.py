"""The fix `vip-priority`: serve VIP requests first, and turn standard ones away that have waited too long.

It makes no capacity: it decides who gets what there is. So it helps where requests wait for the server and some of
them are VIP, until there is more capacity or less traffic. A time limit for the others keeps the queue short, so that
whoever is answered is answered in time, and whoever is not hears so early and with a time to come back. Triton takes
such a limit for a level (`priority_queue_policy`); a limit on the queue's length twice collapsed the throughput when
it was tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from latencydoctor.model.configuration import Slo
from latencydoctor.model.remedy import NothingToDo, Requirement, TargetState
from latencydoctor.percent import percent
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.judge import P99, SHED, VIP_ERRORS, VIP_P99

FIX_ID = "vip-priority"

BATCHING = "inference.batching.enabled"
LEVELS = "inference.priority_levels"
VIP = "inference.priorities.vip"
STANDARD = "inference.priorities.standard"
LIMIT = "inference.priorities.standard_timeout_ms"

MAX_LIMIT_MS = 600_000

LITTLE_WAIT_MS = 50.0
"""Requests that wait less than this on average have nobody to go before; the playbook's limit of a healthy queue."""

LOADED_SHARE = 0.9
"""From this share of the capacity on, requests will wait."""

FULL_VIP_SHARE = 0.95
"""With VIP requests for more than this share of the capacity they wait for each other."""

STEP_MS = 50
"""Limits are whole multiples of this: nobody can tell them finer."""

EXECUTIONS = 2
"""Who has waited to its limit waits for the execution under way, then for its own."""

SHED_MARGIN = 0.15
"""By how much more than expected may be turned away before verification calls it a failure: those who come back are
counted again."""

MOST_SHED = 0.95


@dataclass(frozen=True, slots=True)
class Supply:
    """What the server can do: requests a second, and what the execution of a batch takes that a backlog leaves in."""

    capacity_rps: float
    execution_ms: float


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of it; None where it is not known. `arrival_rps` is what reaches the server."""

    arrival_rps: float | None
    vip_ratio: float | None
    hit_ratio: float
    wait_ms: float | None

    def load_ratio(self, supply: Supply | None) -> float | None:
        """Arrivals over what can be served."""
        if supply is None or self.arrival_rps is None or supply.capacity_rps <= 0:
            return None
        return self.arrival_rps / supply.capacity_rps

    def shed_ratio(self, supply: Supply | None) -> float | None:
        """The share of all requests that cannot be served, those included that a cache answers."""
        load = self.load_ratio(supply)
        return None if load is None else max(0.0, 1 - 1 / max(load, 1e-9)) * (1 - self.hit_ratio)


def demand_of(measured: Mapping[str, float]) -> Demand:
    """The demand as it was measured. What arrives is better counted when it comes: a server at its limit finishes as
    much as it can, whatever comes."""
    hits = min(1.0, max(0.0, measured.get("cache_hit_ratio", 0.0)))
    rate = measured.get("arrival_rate_rps", measured.get("request_rate_rps"))
    return Demand(
        arrival_rps=rate * (1 - hits) if rate is not None and rate > 0 else None,
        vip_ratio=measured.get("vip_share_ratio"),
        hit_ratio=hits,
        wait_ms=measured.get("queue_time_ms"),
    )


def propose(state: TargetState, slo: Slo, measured: Mapping[str, float], supply: Supply | None) -> Change | NothingToDo:
    """Two levels and a time limit for the lower one; or why that would not help, or is there already."""
    if not _has_levels(state) and state.setting(BATCHING) is None and state.in_use(BATCHING) is None:
        return NothingToDo(FIX_ID, "it is not known whether the server batches, and priority levels are the batcher's")
    demand = demand_of(measured)
    limit_ms = standard_limit_ms(slo, supply, measured, state.deadline_ms)
    useless = _already(state, slo) or _no_use(demand, supply)
    if useless:
        return NothingToDo(FIX_ID, useless)
    wanted = ((BATCHING, "true"), (LEVELS, "true"), (VIP, "1"), (STANDARD, "2"), (LIMIT, str(limit_ms)))
    values = tuple((key, value) for key, value in wanted if (state.in_use(key) or _DEFAULTS.get(key)) != value)
    return Change(
        values=values,
        side_effects=_side_effects(limit_ms, demand.shed_ratio(supply)),
        grounds=_grounds(demand, supply, limit_ms, slo),
        requirements=_requirements(slo, demand.shed_ratio(supply), supply),
        instead_of=(P99,),
        standard_limit_ms=float(limit_ms),
    )


_DEFAULTS = {VIP: "1", STANDARD: "2", LEVELS: "false", LIMIT: "0"}


def standard_limit_ms(
    slo: Slo, supply: Supply | None, measured: Mapping[str, float], deadline_ms: float | None = None
) -> int:
    """How long a standard request may wait: half of what the SLO leaves beside execution and the way to the server.

    So whoever is answered is answered well within the SLO. No less than what executions take: within a shorter time
    hardly a request would get its turn.
    """
    execution_ms = 0.0 if supply is None else supply.execution_ms
    outside_ms = max(0.0, measured.get("e2e_mean_ms", 0.0) - measured.get("server_time_ms", math.inf))
    wait_ms = max((slo.p99_ms - EXECUTIONS * execution_ms - outside_ms) / 2, EXECUTIONS * execution_ms)
    if deadline_ms is not None:
        wait_ms = min(wait_ms, deadline_ms / 2)
    return min(MAX_LIMIT_MS, max(STEP_MS, math.floor(wait_ms / STEP_MS) * STEP_MS))


def _has_levels(state: TargetState) -> bool:
    values = {key: state.in_use(key) or value for key, value in _DEFAULTS.items()}
    return values[LEVELS] == "true" and state.in_use(BATCHING) != "false" and values[VIP] < values[STANDARD]


def _already(state: TargetState, slo: Slo) -> str:
    limit = state.in_use(LIMIT) or ""
    if not _has_levels(state) or not limit.isdecimal() or not 0 < int(limit) <= slo.p99_ms:
        return ""
    return f"VIP requests go first already, and standard ones are turned away after {limit} ms in the queue"


def _no_use(demand: Demand, supply: Supply | None) -> str:
    """Why levels would not help, as far as it is known; empty when nothing speaks against them."""
    if demand.vip_ratio == 0:
        return "no VIP request was seen, so there is nobody to serve first"
    load = demand.load_ratio(supply)
    if demand.wait_ms is not None and demand.wait_ms < LITTLE_WAIT_MS and (load is None or load < LOADED_SHARE):
        told = f"at {percent(load, 0)} of what can be served " if load is not None else ""
        return f"{told}requests wait {demand.wait_ms:.3g} ms for the server, and levels order only those who wait"
    if load is not None and demand.vip_ratio is not None and load * demand.vip_ratio > FULL_VIP_SHARE:
        alone = percent(load * demand.vip_ratio, 0)
        return f"VIP requests alone are {alone} of what can be served: they wait for each other"
    return ""


def _grounds(demand: Demand, supply: Supply | None, limit_ms: int, slo: Slo) -> tuple[str, ...]:
    load = demand.load_ratio(supply)
    told = []
    if demand.vip_ratio is None:
        told.append("Nothing tells the share of VIP requests, so it was not checked that there are any.")
    else:
        told.append(f"{percent(demand.vip_ratio, 1)} of the requests are VIP.")
    if load is None:
        told.append("What arrives or what can be served is not known, so it was not checked that more comes than can.")
    elif demand.arrival_rps is not None and supply is not None:
        reach = f"{demand.arrival_rps:.0f} requests/s reach the server"
        told.append(f"{reach} and {supply.capacity_rps:.0f} can be served: {percent(load, 0)}.")
    execution = f"{EXECUTIONS} executions of {supply.execution_ms:.0f} ms" if supply else "executions (not known)"
    told.append(
        f"A standard request may wait {limit_ms} ms: half of the SLO of {slo.p99_ms:g} ms less {execution} and the way."
    )
    return tuple(told)


def _side_effects(limit_ms: int, shed_ratio: float | None) -> tuple[str, ...]:
    ahead = (
        "A model with levels does not prepare its next batch ahead, and a backlog that nothing is added to leaves in "
        "two batches a second (Triton 2.51). Take the levels back (`rollback`) when the flood is over."
    )
    share = (
        "how many is not known"
        if shed_ratio is None
        else f"about {percent(shed_ratio, 0)} of all requests at this rate"
    )
    return (
        f"Standard requests that have waited {limit_ms} ms are turned away with 503 and Retry-After: {share}.",
        ahead,
        "The model is loaded anew while the old copy serves: for a moment memory holds both.",
        "Triton's statistics by batch size start from zero.",
    )


def _requirements(slo: Slo, shed_ratio: float | None, supply: Supply | None) -> tuple[Requirement, ...]:
    half_ms = slo.p99_ms / 2
    quick = supply is None or (EXECUTIONS + 1) * supply.execution_ms <= half_ms
    shed = MOST_SHED if shed_ratio is None else min(MOST_SHED, shed_ratio + SHED_MARGIN)
    return (
        Requirement(VIP_P99, "ms", half_ms if quick else slo.p99_ms),
        Requirement(VIP_ERRORS, "ratio", slo.error_ratio),
        Requirement(SHED, "ratio", shed),
    )
