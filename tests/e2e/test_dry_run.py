"""`plan` and `apply --dry-run` write nothing: by the digests of all files, and by the servers' own counters."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from valkey import Valkey

from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from tests.contract.gateway_client import admin, eventually
from tests.e2e.program import here, run
from tests.e2e.test_changes import BROKEN, Target

pytestmark = pytest.mark.stack

READS = {
    "get",
    "ttl",
    "dbsize",
    "scan",
    "info",
    "ping",
    "client|setinfo",
    "client|setname",
    "hello",
    "select",
    "command",
}
READS |= {"config|get", "mget", "exists", "type", "strlen", "command|docs"}


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def written_to_the_cache(endpoints: Endpoints) -> dict[str, int]:
    """How often each command that could change something was called, by the cache's own count."""
    with Valkey(unix_socket_path=endpoints.valkey_socket) as client:
        stats = client.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): int(told["calls"]) for name, told in stats.items()}
    return {name: count for name, count in calls.items() if name not in READS}


def loads(endpoints: Endpoints, layout: Layout) -> dict[str, object]:
    """What Triton and the controller have counted of loads and executions of the model."""
    statistics = f"{endpoints.triton_http}/v2/models/faq-encoder/stats"
    (model,) = json.loads(page(statistics))["model_stats"]
    controller = page(endpoints.controller_metrics)
    asked = re.findall(r"^(stack_settings_reloads_total|stack_settings_generation) (\S+)$", controller, re.MULTILINE)
    return {
        "executions": (model["execution_count"], model["inference_count"], model["last_inference"]),
        "loaded, by Triton's log": layout.log("triton").read_text(encoding="utf-8").count("successfully loaded"),
        **dict(asked),
    }


def answered(endpoints: Endpoints) -> list[str]:
    """The gateway's counters of what it has answered and stored."""
    lines = page(f"{endpoints.gateway}/metrics").splitlines()
    return [line for line in lines if re.match(r"gateway_(requests|cache_hits|cache_misses|events)_total", line)]


@pytest.fixture
def target(live_stack: Endpoints, live_layout: Layout, tmp_path: Path) -> Iterator[Target]:
    found = Target(live_layout, live_stack, tmp_path / "plan.json")
    before = found.settings()
    found.put(replace(before, inference=replace(before.inference, batching=BROKEN)))
    generation = stack_settings.load(live_layout.settings).generation
    eventually(lambda: gateway_state(live_stack)["generation"] == generation, "the gateway takes the settings up")
    yield found
    found.put(before)


def gateway_state(endpoints: Endpoints) -> dict[str, object]:
    """What the gateway says is in effect, and how many entries the cache has."""
    state = json.loads(admin(endpoints.admin_socket, "GET", "/state").body)
    assert isinstance(state, dict)
    return state


def counted(target: Target) -> dict[str, object]:
    """Every digest and every counter."""
    endpoints = target.endpoints
    return {
        "files": target.changeable(),
        "cache": written_to_the_cache(endpoints),
        "model": loads(endpoints, target.layout),
        "gateway": answered(endpoints),
        "admin": gateway_state(endpoints),
    }


def test_planning_and_a_dry_run_are_in_no_servers_counters(target: Target, tmp_path: Path) -> None:
    where = ("--target", target.layout.state)
    prometheus = ("--prometheus", target.endpoints.prometheus)
    before = counted(target)
    assert here("plan", "batch-floor", *where, *prometheus, "-o", target.plan, cwd=tmp_path).code == 0
    ran = run("apply", target.plan, *where, *prometheus, "--dry-run", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "dry run: nothing was changed\n")
    assert here("apply", target.plan, *where, "--dry-run", cwd=tmp_path).code == 0
    after = counted(target)
    assert after == before

    # The counters are such that a change is in them: a real apply, and an entry stored as a fix would.
    assert here("apply", target.plan, *where, "--yes", cwd=tmp_path).code == 4
    prefixes = gateway_state(target.endpoints)["key_prefixes"]
    assert isinstance(prefixes, dict)
    key = f"{prefixes['stable']}dry-run"
    values = {"answer_index": 1, "score": 0.5, "run": "dry", "ttl_s": 5}
    assert admin(target.endpoints.admin_socket, "PUT", f"/cache/{key}", values).status == 200
    assert admin(target.endpoints.admin_socket, "DELETE", f"/cache/{key}?run=dry").status == 200
    changed = counted(target)
    assert {name for name in changed if changed[name] != before[name]} >= {"files", "cache", "model"}
    assert here("rollback", *where, "--yes", cwd=tmp_path).code == 0
