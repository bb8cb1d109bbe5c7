"""kill -9 at every listed moment of the fixes that touch more than the settings, of their rollbacks and their recovery.

    python -m benchmarks.crash_matrix_fixes FOLDER ACTION [EVERY]

As `crash_matrix_kills`, on the same small stack. `cache-warmup` writes into a real Valkey that holds others' entries,
`int8` places a small build, `revert-change` takes its text from the generations that the controller kept, and
`vip-priority` sets levels. The state is all of it together: settings, server, versions and entries.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from valkey import Valkey

from benchmarks.crash_matrix_kills import BROKEN, Tally, Trial, arguments, killed_at_each, planned, small_stack
from benchmarks.crash_matrix_patient import WAIT_S, Patient
from benchmarks.crash_matrix_program import GOOD, POLL_S, warm
from benchmarks.crash_matrix_stack import question_key
from benchmarks.told import explain
from latencydoctor.errors import KnownError
from latencydoctor.model.builds import MIN_QUESTIONS
from latencydoctor.model.remedy import Reading
from latencydoctor.remedy.judge import SHED, VIP_ERRORS, VIP_P99, VIP_REQUESTS
from latencydoctor.stack import endpoints, int8_build, prepare
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.stack.encoder import onnx_model
from latencydoctor.stack.gateway.entries import Entry, dump_entry, read_entry
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.settings import MODEL_NAME
from latencydoctor.targets.bundled import BundledTarget
from latencydoctor.targets.kept_generations import KEPT, read_kept
from latencydoctor.targets.model_builds import SCHEMA, SHEET_FILE
from latencydoctor.targets.placed_version import BUILD_FILES, TEMPORARY, VERSION
from latencydoctor.targets.state_folder import StateFolder

DIAGNOSED = Path(__file__).resolve().parents[1] / "tests" / "golden" / "incidents" / "batching.json"
INCIDENT = DIAGNOSED.with_name("batching.json.gz")
"""An incident, and its diagnosis with when it began: for a plan that asks what was changed then."""

THEIRS = {question_key(3): "", question_key(7): "somebody-elses", "faq:1:a question that nobody asks": ""}
"""Entries of others, by the run that they carry: they must be as they were after everything."""

WARM = replace(GOOD, hit_ratio=0.95)
ORDERLY = replace(GOOD, also=((VIP_P99, 90.0), (VIP_ERRORS, 0.0), (VIP_REQUESTS, 900.0), (SHED, 0.1)))

Entries = dict[str, tuple[str, int]]
"""Values of the cache by key, each with the milliseconds that it has left, -1 for one that stays."""


@dataclass(slots=True)
class FixPatient(Patient):
    """The small stack with all that its fixes touch."""

    @property
    def versions(self) -> Path:
        """The model's folder in the repository."""
        return self.state / "models" / MODEL_NAME

    def keep(self, name: str) -> Path:
        kept = Patient.keep(self, name)
        for path in (self.versions / VERSION, self.state / TEMPORARY):
            if path.exists():
                shutil.copytree(path, kept / path.name)
        shutil.copy2(self.state / KEPT, kept / KEPT)
        (kept / "entries.json").write_text(json.dumps(self.entries()), encoding="utf-8")
        return kept

    def restore(self, kept: Path) -> None:
        for path in (self.versions / VERSION, self.state / TEMPORARY):
            shutil.rmtree(path, ignore_errors=True)
            if (kept / path.name).exists():
                shutil.copytree(kept / path.name, path)
        # Before the settings, so that the controller adds to it what comes into effect now; at once, since it may read.
        shutil.copy2(kept / KEPT, self.shelf / KEPT)
        (self.shelf / KEPT).replace(self.state / KEPT)
        self.put_entries(json.loads((kept / "entries.json").read_text(encoding="utf-8")))
        Patient.restore(self, kept)

    def digests(self) -> dict[str, str]:
        return {**Patient.digests(self), "answer cache": self._cached()}

    def left(self) -> tuple[object, ...]:
        rest = sorted(str(path) for path in (self.state / TEMPORARY).rglob("*"))
        return (*Patient.left(self), (self.versions / VERSION).exists(), *rest, self._cached())

    def entries(self) -> Entries:
        """All that is in the cache."""
        with closing(self._valkey()) as client:
            return {key: (client.get(key), client.pttl(key)) for key in sorted(client.keys("*"))}

    def put_entries(self, entries: Mapping[str, tuple[str, int]]) -> None:
        """These and no others."""
        with closing(self._valkey()) as client, client.pipeline() as pipeline:
            pipeline.flushall()
            for key, (value, left_ms) in entries.items():
                pipeline.set(key, value, px=left_ms if left_ms > 0 else None)
            pipeline.execute()

    def _valkey(self) -> Any:
        """A client; its own annotations leave open whether it waits."""
        socket = endpoints.load(Layout(self.state).endpoints).valkey_socket
        return Valkey(unix_socket_path=socket, decode_responses=True)

    def _cached(self) -> str:
        """A digest of all entries: others' as they are, a run's own by what they say, whatever the run is called."""
        found = self.entries()
        others = {key: found.pop(key, None) for key in THEIRS}
        ours = {key: (read_entry(value), left_ms > 0) for key, (value, left_ms) in found.items()}
        runs = sorted({entry.run if entry else "unreadable" for entry, _ in ours.values()})
        told = [
            (key, entry and (entry.answer_index, entry.score, runs.index(entry.run)), ends)
            for key, (entry, ends) in sorted(ours.items())
        ]
        return hashlib.sha256(json.dumps([others, told, len(runs)]).encode()).hexdigest()


def _put(patient: FixPatient, values: Mapping[str, str]) -> None:
    """The settings with these values, in effect, and kept by the controller."""
    patient.put(BundledTarget(patient.state).edited(patient.settings(), list(values.items())))
    end_s = time.monotonic() + WAIT_S
    while read_kept(StateFolder(patient.state))[-1].text != patient.settings():
        if time.monotonic() > end_s:
            raise KnownError(f"the controller did not keep the settings in {WAIT_S:g} s")
        time.sleep(POLL_S)


def _cold_cache(patient: FixPatient) -> tuple[tuple[str, ...], Reading]:
    """A cache that loses its entries too soon, with others' in it."""
    _put(patient, {"cache.ttl_seconds": "2"})
    theirs = {key: (dump_entry(Entry(1, 0.5, run)).decode(), -1) for key, run in THEIRS.items()}
    patient.put_entries(theirs)
    return ("cache-warmup",), WARM


def _rebuilt(_: FixPatient) -> tuple[tuple[str, ...], Reading]:
    """A build on the shelf."""
    build = int8_build.location(onnx_model.model_path(), prepare.user_cache())
    build.mkdir(parents=True)
    for name in BUILD_FILES - {SHEET_FILE}:
        (build / name).write_text(name * 50, encoding="utf-8")
    sheet = {
        "schema": SCHEMA, "precision": "int8", "recipe": "none", "bytes_before": 4000, "bytes_after": 1000,
        "questions": MIN_QUESTIONS, "top1_before_ratio": 0.9, "top1_after_ratio": 0.9, "top1_drop_ratio": 0.0,
        "top1_drop_upper_ratio": 0.001, "times": [], "cpu": "", "vnni": False, "others": [],
    }  # fmt: skip
    (build / SHEET_FILE).write_text(json.dumps(sheet), encoding="utf-8")
    return ("int8",), GOOD


def _bad_change(patient: FixPatient) -> tuple[tuple[str, ...], Reading]:
    """Settings that came into effect when the incident began, and those from before."""
    began_s = json.loads(DIAGNOSED.read_text(encoding="utf-8"))["incident"]["since_s"]
    moments = iter((began_s - 3600, began_s - 3))
    healthy = patient.settings()
    _put(patient, {f"inference.batching.{key}": value for key, value in BROKEN.items()})
    (patient.state / KEPT).unlink()
    keeper = KeptGenerations(patient.state / KEPT, lambda: next(moments))
    keeper.keep(1, healthy, "ana")
    keeper.keep(2, patient.settings(), "ben")
    return ("revert-change", "--bundle", str(INCIDENT)), GOOD


def _flood(_: FixPatient) -> tuple[tuple[str, ...], Reading]:
    """Nothing has to be broken for VIP requests to go first."""
    return ("vip-priority",), ORDERLY


FIXES: Mapping[str, Callable[[FixPatient], tuple[tuple[str, ...], Reading]]] = {
    "cache-warmup": _cold_cache,
    "int8": _rebuilt,
    "revert-change": _bad_change,
    "vip-priority": _flood,
}
"""What has to be the case for a fix to be planned, the words that plan it, and the figures that verify it."""

ACTIONS = (
    "cache-warmup", "cache-warmup rollback", "int8", "int8 rollback", "revert-change", "revert-change rollback",
    "vip-priority",
)  # fmt: skip
"""`int8` is tried by a canary, as a user would have it."""


def prepared(patient: FixPatient, action: str) -> Trial:
    """The patient as the fix needs it, and a plan."""
    fix = action.split()[0]
    words, reading = FIXES[fix](patient)
    return planned(patient, action, words, good=reading, staged=True)


@contextmanager
def small_ward(folder: Path, action: str) -> Iterator[FixPatient]:
    """A small stack of its own, with a shelf of its own for rebuilt models, for as long as the context lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    shelf = {"XDG_CACHE_HOME": str(folder.resolve() / "cache")}
    with mock.patch.dict(os.environ, shelf), small_stack(folder / "stack", action):
        patient = FixPatient(folder / "stack", folder / "shelf")
        warm(patient.which)
        yield patient


def main(folder: Path, action: str, every: int, tally: Tally) -> Tally:
    """All kills of one action."""
    with small_ward(folder, action) as patient:
        killed_at_each(prepared(patient, action), every, tally)
    return tally


if __name__ == "__main__":
    explain(__doc__)
    print(json.dumps(main(*arguments(), Tally()).told()))
