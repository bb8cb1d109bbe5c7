"""supervisord's socket with somebody behind it who takes calls and answers none, as one that is stopped does."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack import supervisor
from latencydoctor.stack.supervisor import Supervisor


@pytest.fixture
def stopped() -> Iterator[str]:
    """The path of a socket that takes calls."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        path = str(Path(folder) / "s")
        listening.bind(path)
        listening.listen()
        yield path


def test_one_that_takes_calls_and_answers_none_is_not_waited_for(stopped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "ANSWER_S", 0.2)
    started_s = time.monotonic()
    asked = Supervisor(stopped)
    assert not asked.alive()
    with pytest.raises(KnownError, match="does not answer"):
        asked.programs()
    assert time.monotonic() - started_s < 5
