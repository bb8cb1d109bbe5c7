"""Starts Triton after clearing what its predecessor left: `python -m latencydoctor.stack.triton_launch`.

A Triton that was killed leaves a Python stub running for some seconds and a shared-memory segment for good. Both carry
the stack's own prefix in their name, so that nothing of another stack is touched.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from latencydoctor.stack.processes import clear_triton_leftovers


def main(arguments: list[str]) -> None:
    """Clears leftovers of `--shm-prefix PREFIX`, then becomes the command after `--`. Does not return."""
    option, prefix, separator, *command = arguments
    if option != "--shm-prefix" or separator != "--" or not command:
        sys.exit("usage: triton_launch --shm-prefix PREFIX -- COMMAND ...")
    clear_triton_leftovers(prefix)
    # The stub takes its packages from the first Python on PATH; the launcher's own is the right one.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    os.execve(command[0], command, os.environ | {"PATH": path})


if __name__ == "__main__":
    main(sys.argv[1:])
