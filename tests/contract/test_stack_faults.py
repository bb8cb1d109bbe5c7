"""What can be in the way of a stack: each case ends in one clear line, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latencydoctor.cli.stack import app
from latencydoctor.errors import ContentError, KnownError
from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack import lifecycle, processes
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.prepare import UpOptions
from latencydoctor.stack.probes import probes
from latencydoctor.stack.status import status

pytestmark = pytest.mark.stack

cli = CliRunner()


def nothing_left(layout: Layout) -> None:
    """No process, no shared memory, no socket, no listening port."""
    assert processes.members(layout.identity) == ()
    assert processes.shared_memory(layout.shm_prefix) == ()
    assert not list(layout.socket_folder.glob("*.sock*"))
    assert layout.socket_folder == layout.run or not layout.socket_folder.exists()
    if layout.endpoints.exists():
        addresses.refuse_taken(addresses.load(layout.endpoints).ports())


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A state folder of this module's own, beside the shared stack's; its path is too long for a Unix socket."""
    made = Layout(tmp_path_factory.mktemp("faults") / ("a-rather-long-name-" * 4) / "stack")
    yield made
    lifecycle.down(made, purge=True)


def test_two_stacks_live_side_by_side(live_stack: Endpoints, live_layout: Layout, layout: Layout) -> None:
    other = lifecycle.up(layout)
    assert not set(_ports(other)) & set(_ports(live_stack))
    assert status(live_layout).ready
    assert status(layout).ready
    assert Path(other.admin_socket).parent != layout.run


def _ports(found: Endpoints) -> list[int]:
    ports = found.ports()
    return [ports.gateway, ports.prometheus, ports.triton_http, ports.triton_grpc, ports.triton_metrics]


def test_a_killed_supervisor_is_noticed_and_up_starts_anew(layout: Layout, live_layout: Layout) -> None:
    before = lifecycle.up(layout)
    os.kill(int(layout.supervisor_pid.read_text(encoding="utf-8")), signal.SIGKILL)
    shown = cli.invoke(app, ["status", "--state", str(layout.state)])
    assert shown.exit_code == 1
    assert "supervisord is gone, its programs still run" in shown.stdout
    told: list[str] = []
    after = lifecycle.up(layout, tell=lambda *words: told.extend(words))
    assert after == before
    assert any("had lost their supervisor" in line for line in told)
    assert status(layout).ready


def test_down_ends_what_is_left_of_half_a_stack(layout: Layout, live_layout: Layout) -> None:
    lifecycle.up(layout)
    gone = {found.name: found.pid for found in status(layout).parts}
    supervisor = int(layout.supervisor_pid.read_text(encoding="utf-8"))
    for pid in (supervisor, gone["triton"], gone["gateway"]):
        os.kill(pid, signal.SIGKILL)
    result = cli.invoke(app, ["down", "--state", str(layout.state)])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("stopped")
    nothing_left(layout)
    again = cli.invoke(app, ["down", "--state", str(layout.state)])
    assert again.exit_code == 0
    assert again.stdout.startswith("nothing was running")
    assert cli.invoke(app, ["status", "--state", str(layout.state)]).exit_code == 1
    assert status(live_layout).ready


def test_a_port_in_use_is_named(layout: Layout) -> None:
    port = addresses.load(layout.endpoints).ports().gateway
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((addresses.LOOPBACK, port))
        taken.listen()
        with pytest.raises(KnownError, match=rf"port {port} \(gateway\) is in use") as caught:
            lifecycle.up(layout)
    assert "--new-ports" in caught.value.hint
    nothing_left(layout)


def test_broken_settings_are_named_by_line(tmp_path: Path) -> None:
    broken = tmp_path / "mine.yaml"
    broken.write_text("inference:\n  precision: fp8\n", encoding="utf-8")
    with pytest.raises(ContentError, match=r"mine\.yaml:2:14: inference\.precision must be fp32 or int8"):
        lifecycle.up(Layout(tmp_path / "state"), UpOptions(settings_file=broken))
    assert processes.members(Layout(tmp_path / "state").identity) == ()


@pytest.mark.parametrize(
    ("accelerator", "message"),
    [("cuda", "cuda is not available"), ("sim:warp", "no simulated accelerator"), ("tpu", "must be sim:<profile>")],
)
def test_an_accelerator_that_is_not_there(tmp_path: Path, accelerator: str, message: str) -> None:
    with pytest.raises((KnownError, ContentError), match=message):
        lifecycle.up(Layout(tmp_path / "state"), UpOptions(accelerator=accelerator))


def test_a_part_that_cannot_start_ends_the_whole_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "prometheus").write_text("#!/bin/sh\necho 'level=error msg=\"no such luck\"'\nexit 1\n", encoding="utf-8")
    (tools / "prometheus").chmod(0o755)
    monkeypatch.setenv("LATENCYDOCTOR_TOOLS", str(tools))
    layout = Layout(tmp_path / "state")
    with pytest.raises(KnownError, match=r"prometheus ends as soon as it is started: .*no such luck"):
        lifecycle.up(layout)
    nothing_left(layout)


def test_a_deadline_that_passes_names_the_part(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")
    with pytest.raises(KnownError, match="was not ready within 0 s"):
        lifecycle.up(layout, UpOptions(deadline_s=0.0))
    nothing_left(layout)


def in_another_process(code: str, state: Path, without: str = "\0") -> subprocess.Popen[str]:
    """A child with a layout at hand; `without` drops variables: a child on a full disk cannot write its coverage."""
    program = (
        "from pathlib import Path\n"
        "from latencydoctor.stack.layout import Layout\n"
        f"layout = Layout(Path({str(state)!r}))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith(without)}
        | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    code = (
        "import resource\n"
        "from latencydoctor.errors import KnownError\n"
        "from latencydoctor.stack import lifecycle\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
        "try:\n    lifecycle.up(layout)\nexcept KnownError as error:\n    print(error)\n"
    )
    state = tmp_path / "state"
    with in_another_process(code, state, without="COVERAGE_") as child:
        out, err = child.communicate(timeout=60)
    assert out.startswith("the disk is full: "), out + err
    assert len(out.splitlines()) == 1
    nothing_left(Layout(state))


def test_an_interrupt_during_up_leaves_nothing(tmp_path: Path) -> None:
    code = "from latencydoctor.stack import lifecycle\nlifecycle.up(layout)\n"
    layout = Layout(tmp_path / "state")
    with in_another_process(code, layout.state) as child:
        end = time.monotonic() + 30
        while not layout.supervisor_pid.exists() and time.monotonic() < end:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert child.returncode
    nothing_left(layout)


def test_the_rest_answers_when_a_stack_is_down(layout: Layout) -> None:
    found = status(layout)
    assert not found.running
    assert {part.state for part in found.parts} == {"down"}
    assert set(probes(addresses.load(layout.endpoints))) == {part.name for part in found.parts}


def test_purge_removes_the_state_folder(layout: Layout) -> None:
    result = cli.invoke(app, ["down", "--purge", "--state", str(layout.state)])
    assert result.exit_code == 0, result.output
    assert not layout.state.exists()
    assert not layout.socket_folder.exists()


def test_down_refuses_a_folder_that_is_no_state_folder(tmp_path: Path) -> None:
    with pytest.raises(KnownError, match="is not the state folder of a stack"):
        lifecycle.down(Layout(tmp_path), purge=True)
    assert tmp_path.exists()
