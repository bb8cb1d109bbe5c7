"""kill -9 everywhere: does every killed change end in exactly the old or the new state?

1. On real files and real sockets with no model behind them, each action killed before and after every listed effect
   (`model/effects.py`): an apply of settings that is kept, one that the judge rolls back, one that is interrupted, a
   rollback, and two that a canary tries first; a warm-up of the cache, a rebuilt model, settings put back and levels,
   and their rollbacks; changes of somebody else's Triton and of a TorchServe, and their rollbacks. For every distinct
   state that leaves, its recovery is killed at every effect of its own, and every other time its successor too.
2. The journal of each change of settings cut at every byte of every record, with the target as it was when that record
   was begun.
3. On the whole bundled stack, with Triton and the controller: KILLS=50 kills at random times.

The actions of 1 and 2 run side by side, JOBS at a time (as many as there are cores), each in a folder of its own.
QUICK=1: every ninth effect of a recovery, every fortieth byte, 5 kills on the whole stack. Progress is on stderr. The
last line of stdout is one JSON object, `{"kills", "exact", "unknown"}`; the exit status is 0 when all ended exactly and
each listed effect was died at.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import crash_matrix_fixes as fixes
from benchmarks import crash_matrix_kills as settings
from benchmarks import crash_matrix_repository as repository
from benchmarks import crash_matrix_torchserve as torchserve
from benchmarks.crash_matrix_kills import Tally
from benchmarks.told import explain
from latencydoctor.model.effects import Effect

ROOT = Path(__file__).resolve().parents[1]
MOST_WORDS = 20
"""So many of the last lines of a part are shown when it breaks off."""


@dataclass(frozen=True, slots=True)
class Part:
    """One program of the matrix, its words after the folder, and what it does."""

    module: str
    words: tuple[str, ...]
    what: str


def side_by_side(quick: bool) -> tuple[Part, ...]:
    """Those that need no machine for themselves."""
    every, cut = ("9", "40") if quick else ("1", "1")
    places = (
        ("fixes", fixes.ACTIONS, ""),
        ("kills", settings.ACTIONS, ""),
        ("torchserve", torchserve.ACTIONS, ", TorchServe"),
        ("repository", repository.ACTIONS, ", another's Triton"),
    )
    kills = [Part(name, (one, every), f"{one}{where}") for name, actions, where in places for one in actions]
    return (*kills, *(Part("cuts", (one, cut), f"{one}, journal cut") for one in settings.ACTIONS))


class Board:
    """What is going on, on stderr: on a terminal one line that is written over; else only what has ended."""

    def __init__(self) -> None:
        self._anew = "\r\x1b[K" if sys.stderr.isatty() else ""
        self._lock = threading.Lock()
        self._at: dict[Part, str] = {}

    def tell(self, part: Part, line: str) -> None:
        """Where a part is, by its own words."""
        with self._lock:
            self._at[part] = line
            if self._anew:
                self._write(" | ".join(self._at.values())[: shutil.get_terminal_size().columns - 1])

    def ended(self, part: Part, line: str) -> None:
        """A part is done."""
        with self._lock:
            self._at.pop(part, None)
            self._write(f"{part.what}: {line}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{self._anew}{text}")
        sys.stderr.flush()


class Matrix:
    """All parts, each a process of its own below `folder`: what came of them, and whether one `broke_off`."""

    def __init__(self, folder: Path) -> None:
        self.tally = Tally()
        self.broke_off = False
        self._folder = folder
        self._board = Board()
        self._running: set[subprocess.Popen[str]] = set()

    def go(self, parts: Sequence[Part], jobs: int) -> None:
        """So many at a time, until all have ended. Whatever ends this early ends them as well."""
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for done in as_completed([pool.submit(self._run, part) for part in parts]):
                    told = done.result()
                    if told is None:
                        self.broke_off = True
                    else:
                        self.tally.add(told)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in tuple(self._running):
                    process.send_signal(signal.SIGINT)
                raise

    def _run(self, part: Part) -> dict[str, Any] | None:
        started_s, last = time.monotonic(), deque[str](maxlen=MOST_WORDS)
        # Triton starts in no folder with a blank in its path.
        place = self._folder / f"{part.module}-{part.words[0]}".replace(" ", "-")
        said = place.with_suffix(".said")
        command = [sys.executable, "-m", f"benchmarks.crash_matrix_{part.module}", str(place), *part.words]
        with (
            said.open("w") as out,
            subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process,
        ):
            self._running.add(process)
            for line in process.stderr or ():
                last.append(line)
                self._board.tell(part, line.rstrip())
        self._running.discard(process)
        took = f"{time.monotonic() - started_s:.0f} s"
        if process.returncode:
            self._board.ended(part, f"broke off with {process.returncode} after {took}\n{''.join(last)}")
            return None
        told: dict[str, Any] = json.loads(said.read_text(encoding="utf-8").splitlines()[-1])
        self._board.ended(part, f"{told['kills']} kills, {told['unknown']} not exact, {took}")
        shutil.rmtree(place, ignore_errors=True)
        return told


def main() -> int:
    """All three parts."""
    quick = bool(os.environ.get("QUICK"))
    kills = os.environ.get("KILLS") or ("5" if quick else "50")
    jobs = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))
    started_s = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell that starts it in the background has it ignore Ctrl-C, and each part would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="ld-crash-") as name:
        matrix = Matrix(Path(name))
        matrix.go(side_by_side(quick), jobs)
        matrix.go([Part("random", (kills,), "whole stack, at random times")], 1)
    tally = matrix.tally
    never = sorted({effect.name for effect in Effect} - tally.effects)
    for line in (*tally.wrong, *(f"never died at: {name}" for name in never)):
        sys.stderr.write(f"{line}\n")
    died = len(Effect) - len(never)
    sys.stderr.write(
        f"{died} of {len(Effect)} listed effects were died at; took {time.monotonic() - started_s:.0f} s\n"
    )
    print(json.dumps({"kills": tally.kills, "exact": tally.kills - tally.unknown, "unknown": tally.unknown}))
    return 1 if tally.unknown or never or matrix.broke_off else 0


if __name__ == "__main__":
    explain(__doc__)
    sys.exit(main())
