"""Brings a stack's supervisord back when it was killed: `python -m latencydoctor.stack.revival --state DIR`.

Without it the parts go on, but none can be started or ended, and none comes back when it dies. What it ran cannot be
handed to a new one, so everything is ended and started again, with the settings as they are then.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from latencydoctor.errors import LatencyDoctorError
from latencydoctor.stack import lifecycle
from latencydoctor.stack.layout import Layout, locate
from latencydoctor.stack.programs import MARKER

BEGIN_S = 30.0
"""The process goes into the background as soon as its modules are read."""


def begin(layout: Layout, log: Callable[..., None]) -> None:
    """Starts the revival in a process of its own, which outlives the caller: the caller is ended by it.

    Where it cannot be started that is logged, and nothing raised.
    """
    log("CRITICAL", "supervisor_gone", "supervisord does not answer: the stack is started again")
    # Without the stack's mark, and nobody's child: it ends what carries the mark, but for itself and its parents.
    environment = {name: value for name, value in os.environ.items() if name != MARKER}
    try:
        with layout.log("revival").open("ab") as stream:
            subprocess.run(
                [sys.executable, "-m", "latencydoctor.stack.revival", "--state", str(layout.state)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                timeout=BEGIN_S,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        # The caller must outlive it: there is no supervisord to start the caller again, and only it tries once more.
        log("CRITICAL", "revival_failed", f"the stack was not started again: {error}")


def main() -> int:
    """Goes into the background, then does it; the exit status says only that it has begun."""
    parser = argparse.ArgumentParser(prog="python -m latencydoctor.stack.revival", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    layout = locate(parser.parse_args().state)
    if os.fork():
        return 0
    try:
        begun = lifecycle.revive(layout, _say)
        _say("stack", "started again" if begun else "nothing to do")
    except LatencyDoctorError as error:
        _say("stack", f"not started again: {error} {error.hint}")
    return 0


def _say(part: str, line: str) -> None:
    """One line on stdout, which is the revival's log."""
    sys.stdout.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {part} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
