"""kill -9 everywhere: does every killed change end in exactly the old or the new state?

1. On real files and real sockets with no model behind them: an apply of settings that is kept, one that the judge rolls
   back, one that is interrupted, a rollback, and two that a canary tries first (promoted, rolled back), each killed
   before and after every listed effect (`model/effects.py`); for every distinct state that leaves, its recovery killed
   at every effect of its own, and every other time its successor too.
2. The journal of each cut at every byte of every record, with the target as it was when that record was begun.
3. On the whole bundled stack, with Triton and the controller: KILLS=50 kills at random times.

QUICK=1: every ninth effect of a recovery, every fortieth byte, 5 kills on the whole stack. Progress is on stderr. The
last line of stdout is one JSON object, `{"kills", "exact", "unknown"}`; the exit status is 0 when all ended exactly.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import crash_matrix_cuts as cut
from benchmarks import crash_matrix_kills as listed
from benchmarks import crash_matrix_random as whole
from benchmarks import crash_matrix_repository as repository
from benchmarks.crash_matrix_kills import Tally
from benchmarks.told import explain


def main() -> int:
    """All three parts."""
    quick = bool(os.environ.get("QUICK"))
    kills = int(os.environ.get("KILLS") or (5 if quick else 50))
    tally, started_s = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ld-crash-") as name:
        folder = Path(name)
        for action in listed.ACTIONS:
            before = tally.kills
            listed.main(folder / f"kills {action}", action, 9 if quick else 1, tally)
            _say(f"{action}: {tally.kills - before} kills at listed effects")
        _say(f"{len(tally.effects)} of {len(listed.DIED_AT)} listed effects were died at")
        for action in repository.ACTIONS:
            before = tally.kills
            repository.main(folder / f"repository {action}", action, 9 if quick else 1, tally)
            _say(f"{action} on another's Triton: {tally.kills - before} kills at listed effects")
        for action in listed.ACTIONS:
            told = cut.main(folder / f"cuts {action}", action, 40 if quick else 1, tally)
            _say(f"{action}: {told} cuts")
        whole.main(folder / "whole", kills, tally)
        _say(f"whole stack: {kills} kills at random times")
    for line in tally.wrong:
        _say(line)
    unlisted = sorted({effect.name for effect in listed.DIED_AT | repository.DIED_AT} - tally.effects)
    if unlisted:
        _say(f"never died at: {', '.join(unlisted)}")
    _say(f"took {time.monotonic() - started_s:.0f} s")
    print(json.dumps({"kills": tally.kills, "exact": tally.kills - tally.unknown, "unknown": tally.unknown}))
    return 1 if tally.unknown or unlisted else 0


def _say(line: str) -> None:
    sys.stderr.write(f"\n{line}\n")


if __name__ == "__main__":
    explain(__doc__)
    sys.exit(main())
