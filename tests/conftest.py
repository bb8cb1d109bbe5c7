"""What every test gets: no settings of the person who runs the tests, a terminal of a known width, one shared stack."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from latencydoctor.stack.endpoints import Endpoints
    from latencydoctor.stack.layout import Layout

# The same examples in every run, and no time limit on one of them: a change is not refused for an example that it has
# nothing to do with, nor because the machine was busy. `--hypothesis-profile=default` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """A shell makes what it starts in the background ignore Ctrl-C, and with it every program that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A developer's own configuration, colours and terminal must not decide what a test sees.

    LATENCYDOCTOR_TOOLS stays: it says where the servers are, not how the program behaves. The cache folder stays too,
    so that the private Triton tree is made once and not once a test.
    """
    for name in ("LATENCYDOCTOR_CONFIG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(scope="session")
def live_layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """The state folder of the shared stack."""
    from latencydoctor.stack.layout import Layout

    return Layout(tmp_path_factory.mktemp("live") / "stack")


@pytest.fixture(scope="session")
def live_stack(live_layout: Layout) -> Iterator[Endpoints]:
    """A whole stack on the simulated accelerator `small`, for the contract and the end-to-end tests of one run.

    Tests leave it as they found it. The stack's code is loaded only where a test asks for it.
    """
    from latencydoctor.errors import KnownError
    from latencydoctor.stack import host, lifecycle, processes

    try:
        host.refuse_unsupported(host.this_host())
    except KnownError as error:
        pytest.skip(str(error))
    told: list[str] = []
    try:
        yield lifecycle.up(live_layout, tell=lambda part, line: told.append(f"{part}: {line}"))
    finally:
        lifecycle.down(live_layout)
        sys.stderr.write("\n".join(told) + "\n")
    assert processes.members(live_layout.identity) == ()
    assert processes.shared_memory(live_layout.shm_prefix) == ()
