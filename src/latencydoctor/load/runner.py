"""Starts the load in a child process, reads its samples while it runs, and leaves no process behind."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import latencydoctor
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.load import plan_file, shapes
from latencydoctor.load.samples import SampleLog
from latencydoctor.model.load import LoadPlan, PhaseStart, WindowStats

SAMPLES_FILE = "samples.bin"
PLAN_FILE = "plan.json"
LOG_FILE = "load.log"

_START_WITHIN_S = 20.0
_POLL_S = 0.02
_GRACE_S = 1.0


class LocustRunner:
    """Offers load with Locust, keeping the files of each run in a folder of its own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, plan: LoadPlan) -> LocustLoad:
        """The running load, its first phase begun. UsageError for a plan that cannot be offered; KnownError when Locust
        is not installed or the process does not start.
        """
        shapes.check(plan)
        if importlib.util.find_spec("locust") is None:
            raise KnownError("Locust is not installed", hint="Install with `pip install 'latencydoctor[load]'`.")
        folder = _new_folder(self._folder)
        plan_file.write(plan, folder / PLAN_FILE)
        load = LocustLoad(plan, folder, _spawn(folder))
        try:
            load.wait_until_begun()
        except BaseException:
            # An interrupt during the start must not leave the child either.
            load.stop(drain=False)
            raise
        return load


def _new_folder(parent: Path) -> Path:
    """`load-1`, `load-2` ...: the samples of earlier runs are kept."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / f"load-{number}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def _spawn(folder: Path) -> subprocess.Popen[bytes]:
    """The child: in a session of its own, so that ^C reaches only us and we end it in order; its own folder as the
    current one, and no LOCUST_* variables, so that nothing but the plan steers it.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    package_root = str(Path(latencydoctor.__file__).resolve().parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (package_root, environment.get("PYTHONPATH"))))
    module = "latencydoctor.load.locustfile"
    with (folder / LOG_FILE).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, PLAN_FILE, SAMPLES_FILE, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )


class LocustLoad:
    """A load run: its windows while it runs and after, and the way to steer and end it. Also a context manager."""

    def __init__(self, plan: LoadPlan, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._plan = plan
        self._process = process
        self._log = SampleLog(folder / SAMPLES_FILE)
        self._stopped = False
        self.folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(drain=False)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the child is still there, sending or waiting for its last answers."""
        return self._process.poll() is None

    def phases_started(self) -> tuple[PhaseStart, ...]:
        """The phases that have begun so far, with the moment each did, in order."""
        self._log.read()
        return tuple(PhaseStart(self._plan.phases[number].name, at_s) for number, at_s in self._log.phase_starts)

    def settled(self, end_s: float) -> bool:
        """Whether every request intended up to `end_s` has been answered or counted as failed.

        KnownError when the child broke down, since then they never will be.
        """
        # Asked before reading: what a child that is gone has written is all there.
        status = self._process.poll()
        self._log.read()
        done = end_s < self._log.complete_before_s
        if not done and status not in (None, 0) and not self._stopped:
            raise KnownError(f"the load generator broke down (status {status})", hint=self._see_log())
        return done

    def window(self, start_s: float, end_s: float) -> WindowStats:
        """The figures of the requests intended between two moments (seconds since the epoch), as far as they are in.

        Raises as `settled` does.
        """
        self.settled(end_s)
        return self._log.window(start_s, end_s)

    def switch(self, phase: str) -> None:
        """Begin a phase of the plan now; the phases after it follow. UsageError when the plan has none of that name."""
        names = [known.name for known in self._plan.phases]
        if phase not in names:
            raise UsageError(f"the load has no phase '{phase}'", hint=f"It has {', '.join(names)}.")
        if not self._tell(f"switch {names.index(phase)}"):
            raise KnownError("the load has ended already", hint=self._see_log())

    def stop(self, *, drain: bool = True) -> None:
        """End the load and its process; returns when it is gone, and may be called again.

        With `drain` it waits for the answers still out, at most the deadline; without, they are given up unrecorded.
        """
        # A child that broke down before stays a breakdown for `settled`.
        self._stopped = self._stopped or self.running
        self._tell("drain" if drain else "stop")
        patience_s = (self._plan.deadline_ms / 1000 if drain else 0.0) + _GRACE_S
        try:
            if not self._gone_within(patience_s):
                self._process.terminate()
                self._gone_within(_GRACE_S)
        finally:
            # After an interrupt, too: no process and no pipe is left.
            if self.running:
                self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()

    def wait_until_begun(self) -> None:
        """Returns once the first phase has begun; KnownError when that does not happen."""
        give_up_s = time.monotonic() + _START_WITHIN_S
        while not self.phases_started():
            if not self.running:
                raise KnownError(f"the load generator did not start: {self._last_words()}", hint=self._see_log())
            if time.monotonic() > give_up_s:
                raise KnownError(f"the load generator did not start within {_START_WITHIN_S:g} s", hint=self._see_log())
            time.sleep(_POLL_S)

    def _gone_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _tell(self, word: str) -> bool:
        """Whether the child can have heard."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return False
        try:
            pipe.write(f"{word}\n".encode())
        except BrokenPipeError:
            return False
        return True

    def _last_words(self) -> str:
        """The last line the child wrote, without control bytes: Python puts the reason of a traceback there."""
        lines = (self.folder / LOG_FILE).read_text(encoding="utf-8", errors="replace").split("\n")
        said = [line for line in lines if line.strip()] or [f"status {self._process.returncode}"]
        return "".join(letter for letter in said[-1] if letter.isprintable())[:300]

    def _see_log(self) -> str:
        return f"See {self.folder / LOG_FILE}."
