"""Twenty operators who apply one plan in the same moment, each the shipped program in a process of its own.

    python -m tests.fakes.rivals FOLDER COUNT

On a small stack: they pass every check, wait for each other in front of the lock, and go for it at once; the one that
got it waits in the middle of its change until all others have ended. Prints one JSON object: how each ended (exit code,
process, what it said), and the runs that were journalled.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.crash_matrix_kills import prepared, small_stack
from benchmarks.crash_matrix_patient import JOURNAL, Patient
from benchmarks.crash_matrix_program import GOOD, WRITTEN, Crossings, Moment, fork, run, warm
from latencydoctor.model.effects import Effect

AT_THE_LOCK = Moment(Effect.LOCK_FILE, after=False, nth=1)
WAIT_S = 60.0


def wait_for(there: Callable[[], bool]) -> None:
    """Until it is; a rival that waits in vain ends as a bug would."""
    end_s = time.monotonic() + WAIT_S
    while not there():
        if time.monotonic() > end_s:
            raise TimeoutError("a rival waited in vain")
        time.sleep(0.005)


def main(folder: Path, count: int) -> dict[str, object]:
    """All of them, from the plan to the last one's end."""
    folder.mkdir(parents=True)
    start, end = folder / "start", folder / "end"

    def rival(number: int) -> Callable[[int], None]:
        def at(moment: Moment) -> None:
            if moment == AT_THE_LOCK:
                (folder / f"ready-{number}").touch()
                wait_for(start.exists)
            if moment == WRITTEN:
                wait_for(end.exists)

        return lambda _: run(trial.arguments, Crossings(at), GOOD)

    with small_stack(folder / "stack"):
        patient = Patient(folder / "stack", folder / "shelf")
        warm(patient.which)
        trial = prepared(patient, "apply")
        patient.restore(trial.start)
        logs = [folder / f"rival-{number}.log" for number in range(count)]
        children = {child.pid: number for number in range(count) for child in [fork(rival(number), logs[number])]}
        wait_for(lambda: all((folder / f"ready-{number}").exists() for number in range(count)))
        start.touch()
        codes: dict[int, int] = {}
        while len(codes) < count:
            if len(codes) == count - 1:
                end.touch()
            pid, status = os.wait()
            if pid in children:
                codes[pid] = os.waitstatus_to_exitcode(status)
        told = [
            {"code": code, "pid": pid, "said": logs[children[pid]].read_text(encoding="utf-8")}
            for pid, code in codes.items()
        ]
        return {"rivals": told, "runs": [path.stem for path in (patient.state / JOURNAL).iterdir()]}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
