"""What a journal says about its run: what was changed, how far it came, and so what recovery has to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from latencydoctor.app.ports import RunHistory
from latencydoctor.errors import KnownError, LatencyDoctorError, Refused
from latencydoctor.model.remedy import (
    Check,
    Decision,
    JournalEntry,
    Plan,
    Reading,
    RunEvent,
    RunState,
    RunSummary,
    TargetObject,
    TargetState,
    Verification,
)
from latencydoctor.remedy.plan_file import canonical, plan_from_json
from latencydoctor.remedy.settings_text import settings_digest

RECOVER = "latencydoctor runs recover"
ONCE_IT_RUNS = f"Get the server running, then `{RECOVER}`."
BY_HAND = f"Put the settings right by hand, then `{RECOVER} --accept` closes the run with them."


class Phase(StrEnum):
    """How far an unfinished run came, and so what recovery does with it."""

    NOTHING = "nothing was done"
    UNDO = "undo what was not committed"
    COMPLETE = "complete what was committed"
    ROLL_BACK = "finish the rollback that was decided"


@dataclass(frozen=True, slots=True)
class Change:
    """A run's whole intent, as its first record holds it: the exact text before and after, and every digest before.

    `canary_text` is what comes between the two, "" where no canary tries the change.
    """

    kind: str
    of: str
    plan: Plan
    before_text: str
    before_objects: tuple[TargetObject, ...]
    after_text: str
    canary_text: str = ""

    @property
    def own_digests(self) -> frozenset[str]:
        """Digests of all settings that this run may have put in place, those before included."""
        texts = (self.before_text, self.canary_text, self.after_text)
        return frozenset(settings_digest(text) for text in texts if text)

    @property
    def canary_digest(self) -> str:
        """Digest of the settings with the canary, "" where there is none."""
        return settings_digest(self.canary_text) if self.canary_text else ""

    @property
    def settings_object(self) -> str:
        """What the settings are called on this target."""
        return self.before_objects[0].name

    @property
    def before_digest(self) -> str:
        """Digest of the settings before."""
        return settings_digest(self.before_text)

    @property
    def after_digest(self) -> str:
        """Digest of the settings after."""
        return settings_digest(self.after_text)


@dataclass(frozen=True, slots=True)
class Run:
    """A journalled run, read back."""

    run_id: str
    change: Change | None
    phase: Phase
    committed: bool
    last_check: Reading | None


def start_fields(change: Change) -> dict[str, object]:
    """The fields of a run's first record."""
    return {
        "kind": change.kind,
        "of": change.of,
        "fix": change.plan.fix,
        "target": change.plan.target,
        "plan": asdict(change.plan),
        "plan_digest": change.plan.digest,
        "before_text": change.before_text,
        "before_digest": change.before_digest,
        "before_objects": [asdict(item) for item in change.before_objects],
        "after_text": change.after_text,
        "after_digest": change.after_digest,
        "canary_text": change.canary_text,
        "canary_digest": change.canary_digest,
    }


def state_fields(state: TargetState) -> dict[str, object]:
    """What was read back, for a record: digests, generation, and the settings the server reports."""
    return {
        "digest": state.digest,
        "generation": state.generation,
        "objects": [asdict(item) for item in state.objects],
        "effective": dict(state.effective),
    }


def read_run(history: RunHistory, run_id: str) -> Run:
    """The run of that id; KnownError where its journal is damaged, or tells its change in another way than today's."""
    entries = history.entries(run_id)
    events = [entry.event for entry in entries]
    first = entries[0] if entries and entries[0].event == RunEvent.STARTED else None
    try:
        change = _change(first.fields) if first else None
    except _UNTOLD as error:
        raise KnownError(
            f"the first record of run {run_id} does not tell its change",
            hint="Use the version that wrote it, or compare the settings with it by hand and move the journal away.",
        ) from error
    return Run(run_id, change, _phase(entries), RunEvent.COMMITTED in events, _last_check(entries))


def refuse_unless_kept(history: RunHistory, run_id: str, change: Change) -> None:
    """Refused when the journal does not hold the whole change, byte for byte: what looks like a secret is left out."""
    try:
        kept = _change(history.entries(run_id)[0].fields)
    except _UNTOLD:
        kept = None
    if kept != change:
        raise Refused(
            "something in the plan looks like a secret, and a journal that leaves it out could not undo the change",
            hint=f"`latencydoctor runs show {run_id}` has [redacted] in its place.",
        )


def _phase(entries: Sequence[JournalEntry]) -> Phase:
    events = {entry.event for entry in entries}
    if not events & {RunEvent.WRITE_INTENT, RunEvent.CANARY_INTENT}:
        return Phase.NOTHING
    if RunEvent.COMMITTED not in events:
        return Phase.UNDO
    decided = any(
        entry.event == RunEvent.DECISION and entry.fields.get("decision") == Decision.ROLL_BACK for entry in entries
    )
    return Phase.ROLL_BACK if decided or RunEvent.UNDO_INTENT in events else Phase.COMPLETE


_UNTOLD = (KeyError, TypeError, ValueError, Refused)
"""What reading a change raises where the record is another version's, or not whole any more."""


def _change(fields: Mapping[str, object]) -> Change:
    objects = fields["before_objects"]
    rows = objects if isinstance(objects, list) else []
    return Change(
        kind=str(fields["kind"]),
        of=str(fields["of"]),
        plan=plan_from_json(canonical(fields["plan"])),
        before_text=str(fields["before_text"]),
        before_objects=tuple(TargetObject(str(r["name"]), int(r["generation"]), str(r["digest"])) for r in rows),
        after_text=str(fields["after_text"]),
        canary_text=str(fields.get("canary_text", "")),
    )


def _last_check(entries: Sequence[JournalEntry]) -> Reading | None:
    for entry in reversed(entries):
        if entry.event == RunEvent.CHECK and entry.fields.get("conclusive") is True:
            p99, errors, memory, requests = (_number(entry.fields.get(name)) for name in _READ)
            also = entry.fields.get("also")
            pairs = also if isinstance(also, list) else []
            return Reading(
                p99, errors, memory, requests, also=tuple((str(name), float(value)) for name, value in pairs)
            )
    return None


_READ = ("p99_ms", "error_ratio", "memory_bytes", "requests")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def check_fields(check: Check) -> dict[str, object]:
    """A verification check as a record's fields."""
    return asdict(check)


def decision_fields(verification: Verification) -> dict[str, object]:
    """The decision, what was reached of what was predicted, and the batches that ran, as a record's fields."""
    told = asdict(verification)
    del told["checks"]
    return told


def unfinished(history: RunHistory) -> tuple[RunSummary, ...]:
    """Runs that never ended, or whose undoing failed; newest first. Read-only commands warn of them."""
    return tuple(run for run in history.list() if run.state in (RunState.OPEN, RunState.ROLLBACK_FAILED))


def refuse_unfinished(history: RunHistory, among: Collection[str] | None = None) -> None:
    """Refused while a run is unfinished (`among`: one of these). Asked under the lock, so its process is gone."""
    for run in unfinished(history):
        if among is not None and run.run_id not in among:
            continue
        raise Refused(
            f"run {run.run_id} ({run.fix or 'unknown fix'}) was never finished: {run.state.value}",
            hint=f"Run `{RECOVER}` first; its journal is {run.path}.",
        )


def what_next(error: LatencyDoctorError) -> str:
    """What to do about a state that is not there: what somebody else wrote is not overwritten, however often asked."""
    return BY_HAND if isinstance(error, Refused) else ONCE_IT_RUNS


def last_applied(history: RunHistory) -> RunSummary | None:
    """The newest run of apply whose change may still be in place."""
    runs = history.list()
    undone = {run.of for run in runs if run.kind == "rollback" and run.state is RunState.ROLLED_BACK}
    stands = (RunState.APPLIED, RunState.KEPT, RunState.HELD)
    return next((r for r in runs if r.kind == "apply" and r.state in stands and r.run_id not in undone), None)
