"""Runs the shipped program and writes down each system call that changes something, with the effect it was done inside.

    python -m tests.fakes.effect_recorder FOLDER [rogue]

On small stacks of its own: an apply, its rollback, an apply that is killed and its recovery; a warm-up of the cache, a
rebuilt model, and their rollbacks; on a TorchServe and on somebody else's Triton, an apply and its rollback. Prints one
JSON object: `{"inside": {effect: [calls]}, "outside": [calls]}`. With `rogue` one file is renamed behind the program's
back, as an effect would be that nobody listed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from benchmarks.crash_matrix_fixes import prepared as prepared_fix
from benchmarks.crash_matrix_fixes import small_ward
from benchmarks.crash_matrix_kills import planned, prepared, small_stack
from benchmarks.crash_matrix_patient import Patient
from benchmarks.crash_matrix_program import GOOD, Moment, command, dying, in_child, run, warm
from benchmarks.crash_matrix_repository import small_triton
from latencydoctor.model.effects import Effect
from latencydoctor.model.remedy import Reading
from tests.fakes import torchserve_case

AUDITED = {
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown",
    "os.utime", "fcntl.flock", "fcntl.lockf", "socket.connect", "socket.sendto", "subprocess.Popen", "os.posix_spawn",
    "os.system", "shutil.move", "shutil.copyfile",
}  # fmt: skip
UNAUDITED = ("fsync", "fdatasync", "write", "pwrite", "writev", "pwritev", "sendfile", "copy_file_range")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Recorder(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc is untyped
    """The hook of the composition root, the interpreter's audit hook, and a watch over what neither sees."""

    def __init__(self, state: Path, tell: int) -> None:
        self._state = str(state)
        self._tell = tell
        self._inside: list[Effect] = []
        self._write = os.write

    @contextmanager
    def effects(self, effect: Effect) -> Iterator[None]:
        """An effect of the program; what is called in here belongs to it."""
        self._inside.append(effect)
        try:
            yield
        finally:
            self._inside.pop()

    def watch(self) -> None:
        """From here to the end of the process."""
        sys.addaudithook(self._audit)
        for name in UNAUDITED:
            setattr(os, name, self._watched(getattr(os, name), f"os.{name}"))
        channel = grpc.insecure_channel
        grpc.insecure_channel = lambda *given, **named: grpc.intercept_channel(channel(*given, **named), self)

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """A call to Triton, whose sockets Python does not see."""
        self._note("grpc")
        return continuation(details, request)

    def _watched(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(descriptor: int, *given: Any, **named: Any) -> Any:
            # Streams and pipes are not what a run changes.
            if str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith(self._state):
                self._note(name)
            return real(descriptor, *given, **named)

        return call

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            # A relative name is one below the state folder's descriptor.
            if flags & WRITING and (not str(path).startswith("/") or str(path).startswith(self._state)):
                self._note(event)
        elif event in AUDITED:
            self._note(event)

    def _note(self, call: str) -> None:
        effect = self._inside[-1].name if self._inside else ""
        self._write(self._tell, json.dumps([effect, call]).encode() + b"\n")


def others(folder: Path, recorded: Callable[..., None]) -> None:
    """What else is changed than the settings, and whom else: each by an apply and its rollback."""
    for action in ("cache-warmup", "int8"):
        with small_ward(folder / action, action) as ward:
            trial = prepared_fix(ward, action)
            ward.restore(trial.start)
            for arguments in (trial.arguments, ("rollback", "--yes", "--force", *ward.which)):
                recorded(ward.state, ward.log, arguments, trial.reading)
    with torchserve_case.prepared(folder / "torchserve") as case:
        for arguments in (case.apply, case.rollback):
            recorded(case.state, case.log, arguments)
    with small_triton(folder / "repository") as foreign:
        warm(foreign.which)
        trial = planned(foreign, "apply", ("batch-floor",))
        foreign.restore(trial.start)
        for arguments in (trial.arguments, ("rollback", "--yes", "--force", *foreign.which)):
            recorded(foreign.root, foreign.log, arguments)


def main(folder: Path, *, rogue: bool) -> dict[str, object]:
    """The runs, and what was recorded of them."""
    inside: dict[str, set[str]] = {}
    outside: set[str] = set()

    def recorded(state: Path, log: Path, arguments: tuple[str, ...], reading: Reading = GOOD) -> None:
        def watched(writer: int) -> None:
            recorder = Recorder(state, writer)
            recorder.watch()
            if rogue:
                (state / "endpoints.json").replace(state / "endpoints.json")
            run(arguments, recorder.effects, reading)

        ended = in_child(watched, log)
        assert ended.code == 0, log.read_text()
        for effect, call in map(json.loads, ended.told.splitlines()):
            if effect:
                inside.setdefault(effect, set()).add(call)
            else:
                outside.add(call)

    with small_stack(folder / "stack"):
        patient = Patient(folder / "stack", folder / "shelf")
        warm(patient.which)
        trial = prepared(patient, "apply")
        patient.restore(trial.start)
        recorded(patient.state, patient.log, trial.arguments)
        recorded(patient.state, patient.log, ("rollback", "--yes", "--force", "--target", str(patient.state)))
        patient.restore(trial.start)
        command(trial.arguments, patient.log, dying(Moment(Effect.FILE_CREATE, after=True, nth=1)), GOOD)
        recorded(patient.state, patient.log, trial.recovery)
        command(trial.arguments, patient.log, dying(Moment(Effect.FILE_RENAME, after=True, nth=1)), GOOD)
        recorded(patient.state, patient.log, trial.recovery)
    if not rogue:
        others(folder, recorded)
    return {"inside": {name: sorted(calls) for name, calls in inside.items()}, "outside": sorted(outside)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), rogue="rogue" in sys.argv[2:])))
