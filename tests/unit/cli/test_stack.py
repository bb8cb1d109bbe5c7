"""What `stack status` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.cli import stack
from latencydoctor.stack.status import PartStatus, StackStatus


@pytest.mark.parametrize("given_up", [True, False])
def test_a_part_that_was_given_up_is_named_with_the_command_that_starts_it(
    given_up: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    part = PartStatus("triton", "down", 0, 0.0, 20, "127.0.0.1:8001", "no answer", given_up)
    found = StackStatus(Path("state"), True, "sim:small", True, 1, "", "", (part,), ())
    stack._print_status(found)
    told = [line for line in capsys.readouterr().out.splitlines() if "given up: triton;" in line]
    assert len(told) == (1 if given_up else 0)
    assert all("latencydoctor stack up" in line for line in told)
