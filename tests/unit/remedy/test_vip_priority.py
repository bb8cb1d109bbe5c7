"""When VIP requests are let go first, how long the others may wait, and what verification demands then."""

from __future__ import annotations

import pytest

from latencydoctor.model.configuration import Slo
from latencydoctor.model.remedy import NothingToDo, TargetState
from latencydoctor.remedy import vip_priority as fix
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.vip_priority import Supply, propose, standard_limit_ms

SLO = Slo()
SUPPLY = Supply(capacity_rps=160.0, execution_ms=100.0)
FLOOD = {
    "arrival_rate_rps": 364.0,
    "request_rate_rps": 170.0,
    "cache_hit_ratio": 0.12,
    "vip_share_ratio": 0.06,
    "queue_time_ms": 2400.0,
    "e2e_p99_ms": 3000.0,
    "e2e_mean_ms": 2500.0,
    "server_time_ms": 2490.0,
}
PLAIN = {fix.BATCHING: "true"}


def state(settings: dict[str, str], deadline_ms: float | None = 3000.0) -> TargetState:
    return TargetState("bundled:/x", (), tuple(settings.items()), "", (), "", deadline_ms=deadline_ms)


def change(settings: dict[str, str] | None = None, **measured: float | None) -> Change:
    known = {name: value for name, value in {**FLOOD, **measured}.items() if value is not None}
    found = propose(state(settings or PLAIN), SLO, known, SUPPLY)
    assert isinstance(found, Change), found
    return found


def nothing(settings: dict[str, str] | None = None, **measured: float) -> str:
    found = propose(state(settings or PLAIN), SLO, {**FLOOD, **measured}, SUPPLY)
    assert isinstance(found, NothingToDo), found
    return found.reason


def test_levels_and_a_limit_are_set_and_what_is_so_already_is_left() -> None:
    found = change()
    # Half of 1000 ms less two executions of 100 ms and 10 ms on the way, in steps of 50.
    assert dict(found.values) == {fix.LEVELS: "true", fix.LIMIT: "350"}
    assert found.standard_limit_ms == 350
    turned = change({fix.BATCHING: "false", fix.VIP: "2", fix.STANDARD: "1"})
    assert dict(turned.values) == {
        fix.BATCHING: "true", fix.LEVELS: "true", fix.VIP: "1", fix.STANDARD: "2", fix.LIMIT: "350"
    }  # fmt: skip


def test_vip_is_what_is_judged_and_the_shed_are_allowed_for() -> None:
    found = change()
    limits = {one.signal: one.at_most for one in found.requirements}
    # 320 of 364 requests/s reach the server and 160 can be served: 44 % of all are turned away.
    assert limits == {"vip_p99_ms": 500, "vip_error_ratio": 0.005, "shed_ratio": pytest.approx(0.44 + 0.15, abs=0.005)}
    assert found.instead_of == ("e2e_p99_ms",)
    assert "about 44 % of all requests" in found.side_effects[0]
    assert "320 requests/s reach the server and 160 can be served: 200 %" in found.grounds[1]


def test_slow_executions_are_given_the_whole_slo() -> None:
    found = propose(state(PLAIN), SLO, FLOOD, Supply(160.0, 200.0))
    assert isinstance(found, Change)
    assert found.requirements[0].at_most == 1000


def test_there_is_nothing_to_do_when_it_is_so_already() -> None:
    there = {**PLAIN, fix.LEVELS: "true", fix.LIMIT: "300"}
    assert "turned away after 300 ms" in nothing(there)
    assert dict(change({**there, fix.LIMIT: "0"}).values) == {fix.LIMIT: "350"}
    assert dict(change({**there, fix.LIMIT: "5000"}).values) == {fix.LIMIT: "350"}
    assert fix.STANDARD in dict(change({**there, fix.STANDARD: "1"}).values)


def test_nobody_is_served_first_where_there_is_nobody_or_nobody_waits() -> None:
    assert "no VIP request" in nothing(vip_share_ratio=0.0)
    assert "wait 12 ms" in nothing(queue_time_ms=12.0, arrival_rate_rps=120.0)
    assert "they wait for each other" in nothing(vip_share_ratio=0.6)


def test_a_load_above_the_capacity_counts_also_before_the_queue_is_long() -> None:
    assert change(queue_time_ms=12.0).values


def test_what_is_not_known_is_said_and_not_taken_for_none() -> None:
    found = change(vip_share_ratio=None)
    assert "it was not checked that there are any" in found.grounds[0]
    blind = propose(state(PLAIN, None), SLO, {}, None)
    assert isinstance(blind, Change)
    assert "not checked that more comes" in blind.grounds[1]
    assert "how many is not known" in blind.side_effects[0]
    assert {one.signal: one.at_most for one in blind.requirements}["shed_ratio"] == 0.95
    assert dict(blind.values)[fix.LIMIT] == "500"


def test_without_a_word_on_batching_nothing_is_proposed() -> None:
    assert isinstance(propose(state({}), SLO, FLOOD, SUPPLY), NothingToDo)


def test_the_limit_fits_the_slo_the_executions_and_the_deadline() -> None:
    assert standard_limit_ms(SLO, Supply(100, 28.0), {}) == 450
    assert standard_limit_ms(SLO, Supply(100, 300.0), {}) == 600, "no less than two executions"
    assert standard_limit_ms(SLO, None, {}, deadline_ms=400.0) == 200
    assert standard_limit_ms(SLO, None, {}, deadline_ms=10.0) == 50
