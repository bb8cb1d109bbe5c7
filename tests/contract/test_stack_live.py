"""The running stack: real answers, real metrics, settings that come into effect, and parts that come back."""

from __future__ import annotations

import functools
import json
import os
import signal
import stat
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from latencydoctor.cli.stack import app
from latencydoctor.errors import KnownError
from latencydoctor.stack import lifecycle, processes
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.compile import model_config
from latencydoctor.stack.controller.triton import Triton, in_effect
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.prepare import UpOptions
from latencydoctor.stack.probes import ask_controller
from latencydoctor.stack.settings import Settings
from latencydoctor.stack.status import PartStatus, status

pytestmark = pytest.mark.stack

cli = CliRunner()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def ask(endpoints: Endpoints, question: str) -> dict[str, object]:
    body = json.dumps({"question": question, "session": "test"}).encode()
    with urllib.request.urlopen(f"{endpoints.gateway}/v1/answer", body, timeout=10) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


def until(holds: Callable[[], bool], timeout_s: float = 15.0) -> bool:
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def part(layout: Layout, name: str) -> PartStatus:
    return next(found for found in status(layout).parts if found.name == name)


@pytest.fixture
def quick_settings(live_layout: Layout, live_stack: Endpoints) -> Iterator[Settings]:
    """No waiting for a batch, so that a single question is answered at once; the settings before come back after."""
    before = stack_settings.load(live_layout.settings)
    batching = replace(before.inference.batching, preferred_batch_size=0, max_batch_size=8, timeout_micros=0)
    changed = replace(before.next_generation(), inference=replace(before.inference, batching=batching))
    put(live_layout, live_stack, changed)
    yield changed
    restored = replace(before, generation=stack_settings.load(live_layout.settings).generation + 1)
    put(live_layout, live_stack, restored)


def put(layout: Layout, endpoints: Endpoints, settings: Settings) -> None:
    stack_settings.save(layout.settings, settings)

    def arrived() -> bool:
        progress = ask_controller(endpoints)
        return progress is not None and progress.generation == settings.generation

    assert until(arrived), ask_controller(endpoints)


def test_answers_come_from_the_real_model(live_stack: Endpoints) -> None:
    assert ask(live_stack, "How do I cancel my order 48213?")["answer_id"] == "orders-cancel"


def test_every_part_is_ready_and_says_where_it_listens(live_stack: Endpoints, live_layout: Layout) -> None:
    result = cli.invoke(app, ["status", "--state", str(live_layout.state), "--format", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["ready"]
    assert found["simulated"]
    states = {one["name"]: one["state"] for one in found["parts"]}
    assert {"valkey", "triton", "controller", "gateway", "prometheus"} <= set(states)
    assert set(states.values()) == {"ready"}
    shown = cli.invoke(app, ["status", "--state", str(live_layout.state)]).stdout
    assert live_stack.gateway in shown
    assert "(simulated)" in shown


def test_up_twice_is_one_stack(live_stack: Endpoints, live_layout: Layout) -> None:
    pid = live_layout.supervisor_pid.read_text(encoding="utf-8")
    again = cli.invoke(app, ["up", "--state", str(live_layout.state)])
    assert again.exit_code == 0, again.output
    assert live_stack.gateway in again.stdout
    assert "next: latencydoctor diagnose --config" in again.stdout
    assert live_layout.supervisor_pid.read_text(encoding="utf-8") == pid


def test_up_with_other_settings_is_refused_while_it_runs(live_stack: Endpoints, live_layout: Layout) -> None:
    with pytest.raises(KnownError, match="running with other settings"):
        lifecycle.up(live_layout, UpOptions(accelerator="cpu"))


def test_only_loopback_listens(live_stack: Endpoints, live_layout: Layout) -> None:
    listening = [
        (psutil.Process(member.pid).name(), connection.laddr.ip)
        for member in processes.members(live_layout.identity)
        for connection in psutil.Process(member.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN or connection.type.name == "SOCK_DGRAM"
    ]
    assert len(listening) >= 7
    assert {ip for _, ip in listening} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, listening


def test_the_state_folder_is_private(live_stack: Endpoints, live_layout: Layout) -> None:
    assert stat.S_IMODE(live_layout.state.stat().st_mode) == 0o700
    for path in (live_stack.supervisor_socket, live_stack.admin_socket, live_stack.valkey_socket):
        assert not stat.S_IMODE(Path(path).stat().st_mode) & 0o077, path


def test_prometheus_scrapes_all_parts_and_knows_the_rules(live_stack: Endpoints) -> None:
    def all_up() -> bool:
        targets = json.loads(get(f"{live_stack.prometheus}/api/v1/targets"))["data"]["activeTargets"]
        return {one["labels"]["job"]: one["health"] for one in targets} == dict.fromkeys(
            ("gateway", "triton", "controller"), "up"
        )

    assert until(all_up)
    groups = json.loads(get(f"{live_stack.prometheus}/api/v1/rules"))["data"]["groups"]
    names = {rule["name"] for group in groups for rule in group["rules"]}
    assert {"InferenceLatencyHigh", "gateway:request_duration_seconds:p99_10s"} <= names


def test_the_simulated_device_is_on_tritons_page(live_stack: Endpoints) -> None:
    ask(live_stack, "Where is my parcel?")
    page = get(live_stack.triton_metrics)
    for name in ("busy_seconds_total", "executions_total", "overruns_total", "memory_used_bytes", "throttled"):
        assert f"sim_accelerator_{name}{{" in page
    assert 'profile="small"' in page
    assert 'model="faq-encoder"' in page


def test_new_settings_come_into_effect(live_stack: Endpoints, live_layout: Layout, quick_settings: Settings) -> None:
    triton = Triton(live_stack.triton_grpc)
    assert in_effect(triton.effective("faq-encoder"), model_config(quick_settings))
    triton.close()
    assert f"stack_settings_generation {quick_settings.generation}" in get(live_stack.controller_metrics)
    assert ask(live_stack, "Can I pay by invoice?")["answer_id"]
    page = live_layout.models / "faq-encoder" / "config.pbtxt"
    assert "max_batch_size: 8" in page.read_text(encoding="utf-8")


def test_settings_that_change_nothing_in_triton_load_nothing(
    live_stack: Endpoints, live_layout: Layout, quick_settings: Settings
) -> None:
    before = ask_controller(live_stack)
    changed = replace(quick_settings.next_generation(), cache=replace(quick_settings.cache, ttl_seconds=60))
    put(live_layout, live_stack, changed)
    after = ask_controller(live_stack)
    assert before is not None
    assert after is not None
    assert after.reloads == before.reloads


def test_broken_settings_leave_the_old_in_effect_and_say_why(
    live_stack: Endpoints, live_layout: Layout, quick_settings: Settings
) -> None:
    live_layout.settings.write_text("inference: {batching: {max_batch_size: lots}}\n", encoding="utf-8")
    assert until(lambda: bool(status(live_layout).settings_error))
    found = status(live_layout)
    assert "max_batch_size must be a whole number" in found.settings_error
    assert "settings.yaml:1:" in found.settings_error
    assert found.generation == quick_settings.generation
    assert "stack_settings_last_error 1" in get(live_stack.controller_metrics)
    shown = cli.invoke(app, ["status", "--state", str(live_layout.state)])
    assert "the newest settings are not in effect" in shown.stdout
    assert ask(live_stack, "Can I pay by card?")["answer_id"]
    put(live_layout, live_stack, quick_settings.next_generation())
    assert not status(live_layout).settings_error


def test_a_killed_part_comes_back_and_status_says_so(
    live_stack: Endpoints, live_layout: Layout, quick_settings: Settings
) -> None:
    for name in ("triton", "valkey"):
        before = part(live_layout, name)
        os.kill(before.pid, signal.SIGKILL)
        assert until(functools.partial(_back, live_layout, name, before.pid)), part(live_layout, name)
        assert part(live_layout, name).restarts == before.restarts + 1
    assert "restarted 1 time" in cli.invoke(app, ["status", "--state", str(live_layout.state)]).stdout
    assert until(lambda: status(live_layout).ready)
    # The killed server's segment was removed before the next one started.
    assert len(processes.shared_memory(live_layout.shm_prefix)) == 1
    assert ask(live_stack, "Do you ship abroad?")["answer_id"]


def _back(layout: Layout, name: str, old_pid: int) -> bool:
    found = part(layout, name)
    return found.state == "ready" and found.pid != old_pid


def test_a_killed_model_process_comes_back(
    live_stack: Endpoints, live_layout: Layout, quick_settings: Settings
) -> None:
    before = part(live_layout, "triton").restarts
    # The controller has to have seen the process that it is to miss.
    time.sleep(1.5)
    for pid in processes.stubs(live_layout.shm_prefix):
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: part(live_layout, "triton").restarts == before + 1), part(live_layout, "triton")
    assert until(lambda: status(live_layout).ready)


def test_render_shows_what_up_wrote(live_stack: Endpoints, live_layout: Layout) -> None:
    result = cli.invoke(app, ["render", "--state", str(live_layout.state), "--format", "json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["supervisord"] == live_layout.supervisor_config.read_text(encoding="utf-8")
    assert shown["prometheus"] == (live_layout.prometheus / "prometheus.yml").read_text(encoding="utf-8")
    assert shown["config_pbtxt"] == (live_layout.models / "faq-encoder" / "config.pbtxt").read_text(encoding="utf-8")
    text = cli.invoke(app, ["render", "--state", str(live_layout.state)]).stdout
    assert "# --- config.pbtxt" in text
    assert "[program:triton]" in text


def test_logs_of_one_part_and_of_all(live_stack: Endpoints, live_layout: Layout) -> None:
    one = cli.invoke(app, ["logs", "controller", "-n", "500", "--state", str(live_layout.state)])
    assert "controller_started" in one.stdout
    everything = cli.invoke(app, ["logs", "-n", "1", "--state", str(live_layout.state)]).stdout
    assert {line.split()[0] for line in everything.splitlines()} >= {"triton", "gateway", "supervisord"}


def test_the_model_process_uses_this_pythons_packages(live_stack: Endpoints, live_layout: Layout) -> None:
    pid = processes.stubs(live_layout.shm_prefix)[-1]
    assert "onnxruntime" in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
