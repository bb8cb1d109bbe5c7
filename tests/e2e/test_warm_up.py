"""`plan cache-warmup`, `apply`, `runs` and `rollback` on a real stack with an empty cache and a time to live of 2 s."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import valkey

from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.probes import ask_controller
from latencydoctor.stack.settings import Settings
from latencydoctor.targets.answer_cache import BundledAnswerCache
from latencydoctor.targets.state_folder import StateFolder
from tests.contract.gateway_client import ask
from tests.e2e.program import Ran, clean, digest, refused, run, start

pytestmark = pytest.mark.stack

HOT = 60
PHRASE = "is my parcel with the blue ribbon number"
SCRIPTED = ("cmdstat_set", "cmdstat_del", "cmdstat_unlink", "cmdstat_expire", "cmdstat_evalsha")


@dataclass(frozen=True, slots=True)
class Scene:
    """A running stack, its cache empty, its time to live 2 s, and its popular questions asked twice of late."""

    layout: Layout
    endpoints: Endpoints
    store: valkey.Valkey
    plan: Path

    @property
    def settings(self) -> Settings:
        return stack_settings.load(self.layout.settings)

    def put(self, settings: Settings) -> None:
        """Write settings with the next generation and wait until they are in effect."""
        generation = self.settings.generation + 1
        stack_settings.save(self.layout.settings, replace(settings, generation=generation))
        end_s = time.monotonic() + 20
        while (told := ask_controller(self.endpoints)) is None or told.generation != generation:
            assert time.monotonic() < end_s
            time.sleep(0.05)

    def program(self, *arguments: str | Path, cwd: Path) -> Ran:
        ran = run(*arguments, "--target", self.layout.state, cwd=cwd)
        clean(ran)
        return ran

    def changeable(self) -> dict[str, str]:
        """Everything a change would write, but for what the servers themselves log."""
        models = digest(self.layout.models)
        return {"settings": self.layout.settings.read_text(), "runs": str(self.runs()), **models}

    def runs(self) -> list[str]:
        folder = self.layout.state / "journal"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def written(self) -> dict[str, int]:
        """How often Valkey was told to write, by its own count."""
        stats = self.store.info("commandstats")
        assert isinstance(stats, dict)
        return {name: stats[name]["calls"] for name in SCRIPTED if name in stats}

    def tagged(self, run_id: str) -> int:
        return len(BundledAnswerCache(StateFolder(self.layout.state)).tagged(run_id))


@pytest.fixture
def scene(live_stack: Endpoints, live_layout: Layout, tmp_path: Path) -> Iterator[Scene]:
    with valkey.Valkey(unix_socket_path=live_stack.valkey_socket) as store:
        found = Scene(live_layout, live_stack, store, tmp_path / "plan.json")
        before = found.settings
        found.put(replace(before, cache=replace(before.cache, ttl_seconds=2)))
        port = live_stack.ports().gateway
        with ThreadPoolExecutor(16) as many:
            for _ in range(2):
                list(many.map(lambda number: ask(port, f"{PHRASE} {number}?"), range(HOT)))
        time.sleep(0.1)
        store.flushall()
        yield found
        found.put(before)


def planned(scene: Scene, cwd: Path) -> Ran:
    ran = scene.program("plan", "cache-warmup", "-o", scene.plan, cwd=cwd)
    assert ran.code == 0, ran
    return ran


def test_from_the_plan_to_warm_answers_and_back(scene: Scene, tmp_path: Path) -> None:
    held, counted = scene.changeable(), scene.written()
    ran = planned(scene, tmp_path)
    assert "predicted cache hit ratio: " in ran.out
    assert "questions were asked more than once" in ran.out
    dry = scene.program("apply", scene.plan, "--dry-run", cwd=tmp_path)
    assert (dry.code, dry.err) == (0, "dry run: nothing was changed\n")
    assert (scene.changeable(), scene.written()) == (held, counted), "neither files nor cache were written"
    assert PHRASE not in scene.plan.read_text() + ran.out, "the text of a question never leaves the gateway"

    applied = scene.program("apply", scene.plan, "--yes", cwd=tmp_path)
    assert applied.code == 4, "without a Prometheus nothing is verified, so it is held"
    (run_id,) = {line.split()[1] for line in applied.out.splitlines() if line.startswith("run ")}
    assert scene.tagged(run_id) >= HOT
    assert ask(scene.endpoints.ports().gateway, f"{PHRASE} 7?").json["cached"] is True
    ttls = scene.store.eval(
        "local r={} for i,k in ipairs(redis.call('KEYS','*')) do r[i]=redis.call('TTL',k) end return r", 0
    )
    assert isinstance(ttls, list)
    assert min(ttls) >= 265
    assert max(ttls) <= 330
    listed = scene.program("runs", "--format", "json", cwd=tmp_path)
    assert (
        json.loads(listed.out)["runs"][0] | {"fix": "cache-warmup", "state": "held"}
        == json.loads(listed.out)["runs"][0]
    )
    assert PHRASE not in scene.program("runs", "show", run_id, cwd=tmp_path).out

    back = scene.program("rollback", "--yes", "--force", cwd=tmp_path)
    assert back.code == 0, back
    assert scene.tagged(run_id) == 0
    assert scene.settings.cache.ttl_seconds == 2


def test_killed_while_it_writes_the_whole_is_old_again_after_recovery(scene: Scene, tmp_path: Path) -> None:
    planned(scene, tmp_path)
    before = set(scene.runs())
    process = start("apply", scene.plan, "--yes", "--target", scene.layout.state, cwd=tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("warm:"):
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (name,) = set(scene.runs()) - before
    run_id = name.removesuffix(".jsonl")
    blocked = run("rollback", "--yes", "--target", scene.layout.state, cwd=tmp_path)
    refused(blocked, 5, "was never finished", "latencydoctor runs recover")
    recovered = scene.program("runs", "recover", "--yes", cwd=tmp_path)
    assert recovered.code == 0, recovered
    committed = '"event":"committed"' in (scene.layout.state / "journal" / name).read_text()
    # The kill may have come too late: then the whole is new.
    assert (scene.settings.cache.ttl_seconds, scene.tagged(run_id) > 0) == ((300, True) if committed else (2, False))
    if committed:
        assert scene.program("rollback", "--yes", "--force", cwd=tmp_path).code == 0
    assert scene.tagged(run_id) == 0


def test_with_what_is_popular_in_the_cache_there_is_nothing_to_do(scene: Scene, tmp_path: Path) -> None:
    healthy = scene.settings
    scene.put(replace(healthy, cache=replace(healthy.cache, ttl_seconds=300)))
    made = planned(scene, tmp_path)
    assert "settings\n  no difference" in made.out
    assert scene.program("apply", scene.plan, "--yes", cwd=tmp_path).code == 4
    again = scene.program("plan", "cache-warmup", "-o", scene.plan, cwd=tmp_path)
    assert (again.code, "nothing to do for cache-warmup: the cache is warm" in again.out) == (0, True)
    assert scene.program("rollback", "--yes", "--force", cwd=tmp_path).code == 0
