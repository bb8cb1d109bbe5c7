"""What the contract tests share: one bundled stack for the whole run, on free ports, in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack import host, lifecycle, processes
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout


@pytest.fixture(scope="session")
def live_layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """The state folder of the shared stack."""
    return Layout(tmp_path_factory.mktemp("live") / "stack")


@pytest.fixture(scope="session")
def live_stack(live_layout: Layout) -> Iterator[Endpoints]:
    """A whole stack on the simulated accelerator `small`; tests leave it as they found it."""
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
