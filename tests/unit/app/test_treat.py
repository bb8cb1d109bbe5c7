"""One change as a transaction: what is refused, what is undone, what is kept, and what can be brought back."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from latencydoctor.app import recovery, treat
from latencydoctor.app.planning import Asked, Basis
from latencydoctor.app.ports import Cancelled, Changer, Progress
from latencydoctor.app.runs import unfinished
from latencydoctor.app.treat import Tools, make_plan
from latencydoctor.errors import Held, KnownError, Refused, RollbackFailed, RolledBack, UsageError
from latencydoctor.journal import JournalFile, JournalFolder
from latencydoctor.model.remedy import (
    Decision,
    NothingToDo,
    Plan,
    Reading,
    Requirement,
    RunEvent,
    RunState,
    RunSummary,
    TargetObject,
    TargetState,
)
from latencydoctor.remedy.plan_file import plan_digest
from latencydoctor.remedy.secrecy import redact
from latencydoctor.remedy.settings_text import generation_of, settings_digest
from latencydoctor.targets.controller_page import ControllerState
from latencydoctor.targets.executor import BundledChanger
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes.clock import FakeClock
from tests.fakes.patient import BROKEN, EFFECTIVE, FakePatient
from tests.fakes.verifier import GOOD, NOTHING, SLOW, FakeVerifier
from tests.unit.builders import evidence, values

INCIDENT = {
    "e2e_p99_ms": 2140.0,
    "error_ratio": 0.004,
    "request_rate_rps": 320.0,
    "accelerator_memory_used_bytes": 2e9,
    "accelerator_memory_total_bytes": 8e9,
}


class Ward:
    """A patient, its journals, and everything to treat it with."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.patient = FakePatient(state)
        self.clock = FakeClock()
        self.history = JournalFolder(state / "journal", self.clock.now_s)
        self.said: list[str] = []

    def tools(self, *readings: Reading, cancelled: Callable[[], bool] = treat.never) -> Tools:
        return Tools(
            target=self.patient,
            changer=self.patient.changer(),
            history=self.history,
            verifier=FakeVerifier(*readings) if readings else None,
            clock=self.clock,
            observer=lambda progress: self.said.append(progress.phase),
            cancelled=cancelled,
        )

    def plan(self, **measured: float) -> Plan:
        basis = Basis(evidence=evidence(*values({**INCIDENT, **measured})))
        plan = make_plan("batch-floor", self.patient, self.clock, basis)
        assert isinstance(plan, Plan)
        return plan

    @property
    def settings(self) -> str:
        return (self.state / SETTINGS).read_text()

    def is_old(self) -> bool:
        """Old content in the file and in the server, whatever the generation."""
        running = (self.state / EFFECTIVE).read_text()
        return settings_digest(self.settings) == settings_digest(BROKEN) == settings_digest(running)

    def is_new(self) -> bool:
        running = (self.state / EFFECTIVE).read_text()
        return "max_batch_size: 32" in self.settings and settings_digest(self.settings) == settings_digest(running)

    def events(self) -> list[str]:
        return [entry.event for entry in self.history.entries(self.history.list()[0].run_id)]

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.state.rglob("*") if path.is_file()}


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    return Ward(tmp_path / "stack")


def test_a_fix_that_holds_is_kept_and_every_step_is_in_the_journal_in_order(ward: Ward) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(GOOD))

    assert (outcome.state, outcome.error) == (RunState.KEPT, None)
    assert ward.is_new()
    assert generation_of(ward.settings) == 8
    assert outcome.digest == settings_digest(ward.settings)
    assert outcome.in_effect_s is not None
    assert outcome.verification is not None
    assert len(outcome.verification.checks) == 3
    assert ward.events() == [
        RunEvent.STARTED,
        RunEvent.WRITE_INTENT,
        RunEvent.WRITE_DONE,
        RunEvent.COMMITTED,
        RunEvent.CHECK,
        RunEvent.CHECK,
        RunEvent.CHECK,
        RunEvent.DECISION,
        RunEvent.ENDED,
    ]


def test_the_change_leaves_comments_and_everything_else_alone(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    changed = {a: b for a, b in zip(BROKEN.splitlines(), ward.settings.splitlines(), strict=True) if a != b}
    assert changed == {
        "generation: 7": "generation: 8",
        "    preferred_batch_size: 0   # none preferred": "    preferred_batch_size: 16   # none preferred",
        "    max_batch_size: 8": "    max_batch_size: 32",
        "    timeout_micros: 0": "    timeout_micros: 100000",
    }


def test_planning_and_a_dry_run_change_no_byte(ward: Ward) -> None:
    before = ward.files()
    treat.preview(ward.plan(), ward.tools(GOOD))
    assert ward.files() == before


def test_after_the_fix_there_is_nothing_to_plan(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    again = make_plan("batch-floor", ward.patient, ward.clock, Basis(evidence=evidence(*values(INCIDENT))))
    assert isinstance(again, NothingToDo)


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: dataclasses.replace(plan, title="another"),
        lambda plan: dataclasses.replace(plan, operations=plan.operations[:1]),
        lambda plan: dataclasses.replace(plan, before_values=()),
    ],
)
def test_a_plan_edited_by_hand_is_refused(ward: Ward, edit: Callable[[Plan], Plan]) -> None:
    plan, before = ward.plan(), ward.files()
    with pytest.raises(Refused, match="changed after it was made"):
        treat.apply(edit(plan), ward.tools(GOOD))
    assert {name: text for name, text in ward.files().items() if not name.endswith(".lock")} == before


def test_a_stale_plan_is_refused_and_says_what_changed(ward: Ward) -> None:
    plan = ward.plan()
    changed = BROKEN.replace("generation: 7", "generation: 8").replace("max_batch_size: 8", "max_batch_size: 4")
    (ward.state / SETTINGS).write_text(changed)
    (ward.state / EFFECTIVE).write_text(changed)
    with pytest.raises(Refused, match=r"stale: settings\.yaml has changed since \(generation 7 then, 8 now\)"):
        treat.apply(plan, ward.tools(GOOD))
    assert ward.settings == changed
    assert ward.history.list() == ()


def test_a_plan_for_another_target_is_refused(ward: Ward, tmp_path: Path) -> None:
    other = Ward(tmp_path / "other")
    with pytest.raises(Refused, match="not for"):
        treat.apply(ward.plan(), other.tools(GOOD))


CLOSE = """\
generation: 7
inference:
  batching: {enabled: true, preferred_batch_size: 0, max_batch_size: 8, timeout_micros: 0}
"""


@pytest.mark.parametrize("settings", [CLOSE, CLOSE.partition("\n")[2]], ids=["stated", "not stated"])
def test_a_plan_whose_run_was_undone_can_be_applied_again(tmp_path: Path, settings: str) -> None:
    FakePatient(tmp_path / "stack", settings)
    ward = Ward(tmp_path / "stack")
    plan = ward.plan()
    assert treat.apply(plan, ward.tools(GOOD, cancelled=lambda: True)).state is RunState.UNDONE
    assert generation_of(ward.settings) == generation_of(settings) + 2
    assert treat.apply(plan, ward.tools(GOOD)).state is RunState.KEPT


def resigned(plan: Plan, **fields: object) -> Plan:
    """A plan that a person crafted: changed, with a digest that fits."""
    crafted = dataclasses.replace(plan, **fields)  # type: ignore[arg-type]  # any field, by name
    return dataclasses.replace(crafted, digest=plan_digest(crafted))


def test_a_crafted_plan_reaches_no_further_than_the_catalogue(ward: Ward) -> None:
    plan, tools = ward.plan(), ward.tools(GOOD)
    first, *rest = plan.operations
    crafted = [
        (resigned(plan, operations=(dataclasses.replace(first, after="4096"), *rest)), "only 1 to 1024"),
        (resigned(plan, operations=(dataclasses.replace(first, after="-1"), *rest)), "only 1 to 1024"),
        (resigned(plan, operations=(dataclasses.replace(first, after="9" * 5000), *rest)), "only 1 to 1024"),
        (resigned(plan, operations=(dataclasses.replace(first, after="016"), *rest)), "only 1 to 1024"),
        (resigned(plan, operations=(dataclasses.replace(first, after="16\ncache: {}"), *rest)), "only 1 to 1024"),
        (resigned(plan, operations=(dataclasses.replace(first, key="accelerator"), *rest)), "may not set"),
        (resigned(plan, operations=(dataclasses.replace(first, object="../other.yaml"), *rest)), "may not set"),
        (resigned(plan, operations=(dataclasses.replace(first, before="12"), *rest)), "stale"),
        (resigned(plan, operations=(first, first)), "twice"),
        (resigned(plan, operations=()), "changes nothing"),
        (resigned(plan, requirements=()), "demands no p99 and no error ratio"),
        (resigned(plan, requirements=plan.requirements[:1]), "demands no error ratio"),
        (resigned(plan, requirements=plan.requirements[1:]), "demands no p99"),
        (resigned(plan, operations=(first,) * 9), "too far"),
        (resigned(plan, objects=plan.objects[:1]), "exactly the objects"),
        (resigned(plan, fix="rm-rf"), "does not exist"),
        (resigned(plan, diff="nothing to see"), "something else than what it shows"),
        (resigned(plan, compiled_diff=""), "something else than what it shows"),
    ]
    for bad, message in crafted:
        with pytest.raises(Refused, match=message):
            treat.apply(bad, tools)
    assert ward.is_old()
    assert ward.history.list() == ()


def test_settings_outside_the_folder_are_not_followed(ward: Ward, tmp_path: Path) -> None:
    plan = ward.plan()
    outside = tmp_path / "outside.yaml"
    outside.write_text(BROKEN)
    (ward.state / SETTINGS).unlink()
    (ward.state / SETTINGS).symlink_to(outside)
    with pytest.raises(KnownError, match="cannot be read"):
        treat.apply(plan, ward.tools(GOOD))
    assert outside.read_text() == BROKEN


def test_settings_that_are_not_in_effect_are_not_planned_upon(ward: Ward) -> None:
    (ward.state / SETTINGS).write_text(BROKEN.replace("max_batch_size: 8", "max_batch_size: 9"))
    with pytest.raises(KnownError, match="not in effect"):
        ward.plan()


def test_settings_with_a_secret_are_neither_planned_nor_journalled(ward: Ward) -> None:
    secret = BROKEN.replace("accelerator:", "# password: hunter2-planted\naccelerator:")
    for name in (SETTINGS, EFFECTIVE):
        (ward.state / name).write_text(secret)
    with pytest.raises(Refused, match="line 10 looks like it holds a secret") as refused:
        ward.plan()
    assert "hunter2" not in str(refused.value) + refused.value.hint


def test_what_the_server_refuses_is_not_planned(ward: Ward) -> None:
    from latencydoctor.errors import ContentError
    from latencydoctor.remedy.batch_floor import BatchFloor

    with pytest.raises(ContentError, match="refuses these settings"):
        make_plan("batch-floor", ward.patient, ward.clock, asked=Asked(wanted=BatchFloor(max_batch_size=500)))


def test_the_holder_of_the_lock_is_named(ward: Ward) -> None:
    plan = ward.plan()
    with (
        ward.patient.changer().hold("20261130T070000Z-abcdef"),
        pytest.raises(Refused, match=r"locked by run 20261130T070000Z-abcdef, user .+, host .+, pid \d+, since 2"),
    ):
        treat.apply(plan, ward.tools(GOOD))
    assert ward.is_old()
    assert treat.apply(plan, ward.tools(GOOD)).state is RunState.KEPT


def test_a_controller_that_refuses_leads_back_to_the_old_state(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.refuses = lambda text: "max_batch_size: 32" in text
    outcome = treat.apply(plan, ward.tools(GOOD))
    assert outcome.state is RunState.UNDONE
    assert isinstance(outcome.error, RolledBack)
    assert "could not put generation 8 into effect" in outcome.reason
    assert ward.is_old()
    assert generation_of(ward.settings) == 9
    assert unfinished(ward.history) == ()


def test_a_server_that_never_answers_leaves_an_unfinished_run_for_recovery(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.stuck = True
    outcome = treat.apply(plan, ward.tools(GOOD))
    assert outcome.state is RunState.ROLLBACK_FAILED
    assert isinstance(outcome.error, RollbackFailed)
    assert outcome.journal in outcome.error.hint
    assert "latencydoctor runs recover" in outcome.error.hint
    assert settings_digest(ward.settings) == settings_digest(BROKEN)

    ward.patient.stuck = False
    with pytest.raises(Refused, match="never finished") as refused:
        treat.apply(plan, ward.tools(GOOD))
    assert "latencydoctor runs recover" in refused.value.hint
    with pytest.raises(Refused, match="never finished"):
        treat.rollback(ward.tools(GOOD))
    assert [told for _, told in recovery.describe(ward.tools())] == ["undo what was not committed"]
    (recovered,) = recovery.recover(ward.tools())
    assert (recovered.state, recovered.error) == (RunState.UNDONE, None)
    assert ward.is_old()
    assert recovery.recover(ward.tools()) == ()


def test_recovery_that_cannot_reach_the_server_can_be_run_again_or_closed_by_hand(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.stuck = True
    treat.apply(plan, ward.tools(GOOD))
    (failed,) = recovery.recover(ward.tools())
    assert isinstance(failed.error, RollbackFailed)
    assert len(unfinished(ward.history)) == 1
    (closed,) = recovery.recover(ward.tools(), accept=True)
    assert closed.state is RunState.HELD
    assert unfinished(ward.history) == ()


def test_a_run_that_is_closed_by_hand_tells_the_settings_that_were_found(ward: Ward) -> None:
    tools = dataclasses.replace(ward.tools(GOOD), observer=lambda progress: interrupt(progress, at="effect"))
    with pytest.raises(KeyboardInterrupt):
        treat.apply(ward.plan(), tools)
    (closed,) = recovery.recover(ward.tools(), accept=True)
    assert closed.digest == settings_digest(ward.settings) != settings_digest(BROKEN)
    ended = ward.history.entries(closed.run_id)[-1]
    assert (ended.event, ended.fields["digest"]) == (RunEvent.ENDED, closed.digest)


def test_a_run_that_is_closed_by_hand_while_nothing_can_be_read_tells_no_digest(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.stuck = True
    treat.apply(plan, ward.tools(GOOD))
    (ward.state / EFFECTIVE).unlink()
    (closed,) = recovery.recover(ward.tools(), accept=True)
    assert (closed.state, closed.digest) == (RunState.HELD, "")


def test_recovery_stops_at_settings_that_are_neither_old_nor_new(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.stuck = True
    treat.apply(plan, ward.tools(GOOD))
    ward.patient.stuck = False
    third = BROKEN.replace("max_batch_size: 8", "max_batch_size: 11")
    (ward.state / SETTINGS).write_text(third)
    (outcome,) = recovery.recover(ward.tools())
    assert isinstance(outcome.error, RollbackFailed)
    assert "someone else" in outcome.error.message
    assert "latencydoctor runs recover --accept" in outcome.error.hint
    assert ward.settings == third


def test_three_failed_checks_in_a_row_roll_back_and_measure_again(ward: Ward) -> None:
    plan = ward.plan(e2e_p99_ms=900.0)
    outcome = treat.apply(plan, ward.tools(SLOW))
    assert outcome.state is RunState.ROLLED_BACK
    assert isinstance(outcome.error, RolledBack)
    assert ward.is_old()
    assert outcome.digest == plan.objects[0].digest
    assert outcome.remeasured is not None
    assert outcome.remeasured.p99_ms == 1500.0
    assert outcome.verification is not None
    assert outcome.verification.decision is Decision.ROLL_BACK


def test_a_fix_that_only_helps_is_held_because_the_state_before_was_worse(ward: Ward) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(SLOW))
    assert outcome.state is RunState.HELD
    assert isinstance(outcome.error, Held)
    assert "rollback" in outcome.error.hint
    assert ward.is_new()


@pytest.mark.parametrize("readings", [(), (NOTHING,)])
def test_no_data_is_held_and_never_kept(ward: Ward, readings: tuple[Reading, ...]) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(*readings))
    assert isinstance(outcome.error, Held)
    assert "no data" in outcome.reason
    assert ward.is_new()


def meddle(ward: Ward, progress: Progress, *names: str) -> None:
    """Somebody puts the old settings back while the change is being verified."""
    if progress.phase == "verify":
        for name in names:
            (ward.state / name).write_text(BROKEN)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((SETTINGS, EFFECTIVE), "the settings were changed by someone else"),
        ((EFFECTIVE,), "the server runs other settings"),
    ],
)
def test_what_is_not_in_effect_any_more_is_not_kept(ward: Ward, names: tuple[str, ...], told: str) -> None:
    tools = dataclasses.replace(ward.tools(GOOD), observer=lambda progress: meddle(ward, progress, *names))
    outcome = treat.apply(ward.plan(), tools)
    assert isinstance(outcome.error, Held)
    assert outcome.reason == f"3 checks in a row passed, but the change is not in effect now: {told}"
    assert unfinished(ward.history) == ()


def test_memory_that_ran_away_rolls_back_at_once(ward: Ward) -> None:
    outcome = treat.apply(ward.plan(), ward.tools(dataclasses.replace(GOOD, memory_bytes=7e9)))
    assert outcome.state is RunState.ROLLED_BACK
    assert "memory is worse" in outcome.reason
    assert outcome.verification is not None
    assert len(outcome.verification.checks) == 1


def test_an_interrupt_during_the_steps_undoes_them(ward: Ward) -> None:
    plan = ward.plan()
    asked = iter([False] * 1)
    outcome = treat.apply(plan, ward.tools(GOOD, cancelled=lambda: next(asked, True)))
    assert (outcome.state, outcome.interrupted, outcome.error) == (RunState.UNDONE, True, None)
    assert ward.is_old()
    assert unfinished(ward.history) == ()


def test_an_interrupt_during_verification_keeps_the_new_state_and_closes_the_journal(ward: Ward) -> None:
    tools = ward.tools(GOOD)
    cancelled = lambda: "effect" in ward.said  # noqa: E731  # as short as what it says
    outcome = treat.apply(ward.plan(), dataclasses.replace(tools, cancelled=cancelled))
    assert (outcome.state, outcome.interrupted, outcome.error) == (RunState.APPLIED, True, None)
    assert ward.is_new()
    assert unfinished(ward.history) == ()
    assert isinstance(treat.rollback(ward.tools(GOOD), force=True), treat.Outcome)
    assert ward.is_old()


def test_a_second_interrupt_leaves_the_run_to_recovery(ward: Ward) -> None:
    plan = ward.plan()

    def stop() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        treat.apply(plan, ward.tools(GOOD, cancelled=stop))
    (run,) = unfinished(ward.history)
    assert run.state is RunState.OPEN
    recovery.recover(ward.tools())
    assert ward.is_old()


def test_a_rollback_brings_back_every_byte_but_the_generation(ward: Ward) -> None:
    plan = ward.plan(e2e_p99_ms=900.0)
    applied = treat.apply(plan, ward.tools(GOOD))
    outcome = treat.rollback(ward.tools(GOOD), force=True)
    assert isinstance(outcome, treat.Outcome)
    assert (outcome.kind, outcome.state, outcome.error) == ("rollback", RunState.ROLLED_BACK, None)
    assert ward.settings == BROKEN.replace("generation: 7", "generation: 9")
    assert outcome.digest == plan.objects[0].digest
    assert outcome.remeasured is not None
    assert ward.is_old()
    newest = ward.history.list()[0]
    assert (newest.kind, newest.of) == ("rollback", applied.run_id)
    with pytest.raises(UsageError, match="no applied run"):
        treat.rollback(ward.tools(GOOD))
    assert isinstance(treat.rollback(ward.tools(GOOD), applied.run_id), NothingToDo)


def test_a_rollback_to_a_state_measured_worse_needs_force(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    for tools in (ward.tools(GOOD), ward.tools()):  # by what is measured now, and by the run's own last check
        with pytest.raises(Held, match="2140 ms then, 120 ms now"):
            treat.rollback(tools)
    assert ward.is_new()
    treat.rollback(ward.tools(GOOD), force=True)
    assert ward.is_old()


@pytest.mark.parametrize("nothing", [{"p99_ms": math.nan}, {"error_ratio": None}, {"p99_ms": -1.0}], ids=str)
def test_no_data_of_now_does_not_pass_for_a_state_that_got_worse(ward: Ward, nothing: dict[str, float | None]) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    with pytest.raises(Held, match="2140 ms then, 120 ms now"):
        treat.rollback(ward.tools(dataclasses.replace(GOOD, **nothing)))  # type: ignore[arg-type]  # fields by name


def test_where_no_vip_request_comes_now_the_last_check_decides_on_a_rollback(ward: Ward) -> None:
    """Nobody's p99 is no worse p99."""
    served = dataclasses.replace(GOOD, also=(("vip_p99_ms", 100.0), ("vip_requests", 500.0)))
    plan = resigned(
        ward.plan(),
        requirements=(Requirement("vip_p99_ms", "ms", 500.0), Requirement("error_ratio", "ratio", 0.005)),
        before_values=(("vip_p99_ms", 2000.0), ("error_ratio", 0.0)),
    )
    treat.apply(plan, ward.tools(served))
    with pytest.raises(Held, match="2000 ms then, 100 ms now"):
        treat.rollback(ward.tools(GOOD))


def test_a_rollback_from_a_state_that_got_worse_needs_no_force(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    worse = Reading(p99_ms=4000.0, error_ratio=0.2, memory_bytes=2e9, requests=900.0)
    assert isinstance(treat.rollback(ward.tools(worse)), treat.Outcome)
    assert ward.is_old()


def test_a_rollback_of_what_someone_changed_since_is_refused(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    third = ward.settings.replace("max_batch_size: 32", "max_batch_size: 64")
    for name in (SETTINGS, EFFECTIVE):
        (ward.state / name).write_text(third)
    with pytest.raises(Refused, match="changed since run"):
        treat.rollback(ward.tools(GOOD), force=True)
    assert ward.settings == third


def test_a_rollback_that_fails_ends_in_the_new_state(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    ward.patient.refuses = lambda text: "max_batch_size: 8" in text
    outcome = treat.rollback(ward.tools(GOOD), force=True)
    assert isinstance(outcome, treat.Outcome)
    assert isinstance(outcome.error, RollbackFailed)
    assert ward.is_new()
    assert unfinished(ward.history) == ()


@pytest.mark.parametrize("run_id", ["20261130T070000Z-abcdef", "../../etc/passwd"])
def test_an_unknown_run_is_a_usage_error(ward: Ward, run_id: str) -> None:
    with pytest.raises(UsageError):
        treat.rollback(ward.tools(GOOD), run_id)


def test_an_undone_run_has_nothing_to_roll_back(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.refuses = lambda text: "max_batch_size: 32" in text
    undone = treat.apply(plan, ward.tools(GOOD))
    with pytest.raises(UsageError, match="nothing of it is in place"):
        treat.rollback(ward.tools(GOOD), undone.run_id)


def test_a_change_between_check_and_write_is_refused_and_nothing_is_written(ward: Ward) -> None:
    plan, tools = ward.plan(), ward.tools(GOOD)
    third = BROKEN.replace("max_batch_size: 8", "max_batch_size: 11")

    class Meddled:
        """A changer that is overtaken just before it writes."""

        @contextmanager
        def hold(self, run_id: str) -> Iterator[None]:
            with tools.changer.hold(run_id):
                yield

        def write(
            self,
            settings_text: str,
            *,
            expected: frozenset[str],
            cancelled: Callable[[], bool],
            proof: tuple[TargetObject, ...] = (),
        ) -> object:
            (ward.state / SETTINGS).write_text(third)
            return tools.changer.write(settings_text, expected=expected, cancelled=cancelled, proof=proof)

    with pytest.raises(Refused, match="changed by someone else"):
        treat.apply(plan, dataclasses.replace(tools, changer=Meddled()))  # type: ignore[arg-type]  # stands in
    assert ward.settings == third
    assert unfinished(ward.history) == ()


def test_secrets_in_evidence_and_errors_reach_neither_plan_nor_journal(ward: Ward) -> None:
    plan = ward.plan()
    ward.patient.refuses = lambda text: "max_batch_size: 32" in text
    tools = ward.tools(GOOD)
    log = ward.history.start()
    log.record("run started", kind="apply", note="http://admin:s3cr3t-planted@host/ token=s3cr3t-planted")
    log.record("run ended", state="undone", reason="Authorization: Bearer s3cr3t-planted", inner={"a": ["pw", 1]})
    treat.apply(plan, tools)
    written = b"".join(path.read_bytes() for path in (ward.state / "journal").iterdir())
    assert b"s3cr3t-planted" not in written
    first = json.loads(Path(log.path).read_bytes().splitlines()[0])
    assert first["fields"]["note"] == "http://[redacted]@host/ token=[redacted]"


def test_a_dry_run_while_another_applies_names_the_holder(ward: Ward) -> None:
    plan, tools = ward.plan(), ward.tools(GOOD)
    with ward.patient.changer().hold("20261130T070000Z-abcdef"), pytest.raises(Refused, match="locked by run 20261130"):
        treat.preview(plan, tools)
    treat.preview(plan, tools)


def full_disk_at(ward: Ward, event: RunEvent, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first record of this kind on, the journal takes no more."""
    full: list[bool] = []
    real = JournalFile.record

    def record(log: JournalFile, said: str, **fields: object) -> None:
        if full or said == event:
            full.append(True)
            raise KnownError("the journal cannot be written: No space left on device")
        real(log, said, **fields)

    monkeypatch.setattr(JournalFile, "record", record)


@pytest.mark.parametrize("event", [RunEvent.STARTED, RunEvent.WRITE_INTENT])
def test_without_a_journal_nothing_is_changed(ward: Ward, event: RunEvent, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ward.plan()
    full_disk_at(ward, event, monkeypatch)
    with pytest.raises(KnownError, match="No space left"):
        treat.apply(plan, ward.tools(GOOD))
    assert ward.settings == BROKEN


@pytest.mark.parametrize("event", [RunEvent.WRITE_DONE, RunEvent.COMMITTED])
def test_a_journal_that_fails_before_the_commit_takes_the_change_back(
    ward: Ward, event: RunEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ward.plan()
    full_disk_at(ward, event, monkeypatch)
    outcome = treat.apply(plan, ward.tools(GOOD))
    assert isinstance(outcome.error, RolledBack)
    assert ward.is_old()
    monkeypatch.undo()
    recovery.recover(ward.tools())
    assert ward.is_old()
    assert unfinished(ward.history) == ()


@pytest.mark.parametrize("event", [RunEvent.CHECK, RunEvent.DECISION, RunEvent.ENDED])
def test_a_journal_that_fails_after_the_commit_holds_the_change(
    ward: Ward, event: RunEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ward.plan()
    full_disk_at(ward, event, monkeypatch)
    outcome = treat.apply(plan, ward.tools(GOOD))
    assert isinstance(outcome.error, Held)
    assert "runs recover" in outcome.error.hint
    assert ward.is_new()
    monkeypatch.undo()
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.APPLIED
    assert ward.is_new()


def test_a_journal_that_fails_while_rolling_back_does_not_stop_it(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ward.plan(e2e_p99_ms=900.0)
    full_disk_at(ward, RunEvent.UNDO_INTENT, monkeypatch)
    outcome = treat.apply(plan, ward.tools(SLOW))
    assert isinstance(outcome.error, RolledBack)
    assert ward.is_old()
    monkeypatch.undo()
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.ROLLED_BACK
    assert ward.is_old()


def test_a_rollback_without_metrics_is_proven_by_digest_alone(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    outcome = treat.rollback(ward.tools(), force=True)
    assert isinstance(outcome, treat.Outcome)
    assert (outcome.state, outcome.remeasured) == (RunState.ROLLED_BACK, None)
    assert ward.is_old()


def test_an_interrupt_while_measuring_a_rolled_back_state_ends_the_run(ward: Ward) -> None:
    treat.apply(ward.plan(e2e_p99_ms=100.0), ward.tools(GOOD))
    tools = dataclasses.replace(ward.tools(GOOD), cancelled=lambda: ward.said[-1] == "measure")
    outcome = treat.rollback(tools, force=True)
    assert isinstance(outcome, treat.Outcome)
    assert (outcome.state, outcome.interrupted, outcome.remeasured) == (RunState.ROLLED_BACK, True, None)
    assert unfinished(ward.history) == ()


def test_a_decided_rollback_that_fails_is_finished_by_recovery(ward: Ward) -> None:
    plan, tools = ward.plan(e2e_p99_ms=900.0), ward.tools(SLOW)

    def told(progress: Progress) -> None:
        ward.patient.stuck = progress.phase == "decision" or ward.patient.stuck

    outcome = treat.apply(plan, dataclasses.replace(tools, observer=told))
    assert outcome.state is RunState.ROLLBACK_FAILED
    assert isinstance(outcome.error, RollbackFailed)
    with pytest.raises(RollbackFailed):
        outcome.raise_error()
    ward.patient.stuck = False
    assert [phase for _, phase in recovery.describe(ward.tools())] == ["finish the rollback that was decided"]
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.ROLLED_BACK
    assert ward.is_old()


def test_a_committed_run_whose_state_is_gone_cannot_be_completed(ward: Ward) -> None:
    tools = dataclasses.replace(ward.tools(GOOD), observer=lambda progress: interrupt(progress, at="effect"))
    with pytest.raises(KeyboardInterrupt):
        treat.apply(ward.plan(), tools)
    assert ward.is_new()
    (ward.state / SETTINGS).write_text(BROKEN.replace("max_batch_size: 8", "max_batch_size: 11"))
    (failed,) = recovery.recover(ward.tools())
    assert isinstance(failed.error, RollbackFailed)
    assert "was committed, but its state is not there" in failed.error.message
    assert "latencydoctor runs recover --accept" in failed.error.hint
    assert len(unfinished(ward.history)) == 1


def interrupt(progress: Progress, *, at: str) -> None:
    """A second Ctrl-C in this phase."""
    if progress.phase == at:
        raise KeyboardInterrupt


def test_a_run_that_never_wrote_its_intent_needs_nothing(ward: Ward) -> None:
    plan = ward.plan()
    tools = dataclasses.replace(ward.tools(GOOD), observer=lambda progress: interrupt(progress, at="write"))
    with pytest.raises(KeyboardInterrupt):
        treat.apply(plan, tools)
    (recovered,) = recovery.recover(ward.tools())
    assert (recovered.state, recovered.reason) == (RunState.UNDONE, "nothing was done")
    assert ward.settings == BROKEN


class Forgetful:
    """A changer on which one digest comes out another than before, as when a server keeps part of the change."""

    def __init__(self, real: Changer, wrong_at: int) -> None:
        self.real, self.writes_left = real, wrong_at

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        return self.real.hold(run_id)

    def refuse_held(self) -> None:
        self.real.refuse_held()

    def write(
        self,
        settings_text: str,
        *,
        expected: frozenset[str],
        cancelled: Cancelled,
        proof: tuple[TargetObject, ...] = (),
    ) -> TargetState:
        state = self.real.write(settings_text, expected=expected, cancelled=cancelled, proof=proof)
        self.writes_left -= 1
        if self.writes_left == 0:
            server = dataclasses.replace(state.objects[1], digest="0" * 64)
            return dataclasses.replace(state, objects=(state.objects[0], server))
        return state


def test_a_rollback_is_only_done_when_every_digest_is_the_old_one(ward: Ward) -> None:
    treat.apply(ward.plan(), ward.tools(GOOD))
    tools = ward.tools(GOOD)
    outcome = treat.rollback(dataclasses.replace(tools, changer=Forgetful(tools.changer, 1)), force=True)
    assert isinstance(outcome, treat.Outcome)
    assert isinstance(outcome.error, RollbackFailed)
    assert "the digest of triton model faq-encoder is another" in outcome.reason
    assert ward.is_new()


def test_an_undo_is_only_done_when_every_digest_is_the_old_one(ward: Ward) -> None:
    plan, tools = ward.plan(e2e_p99_ms=900.0), ward.tools(SLOW)
    outcome = treat.apply(plan, dataclasses.replace(tools, changer=Forgetful(tools.changer, 2)))
    assert outcome.state is RunState.ROLLBACK_FAILED
    (recovered,) = recovery.recover(ward.tools())
    assert recovered.state is RunState.ROLLED_BACK


class Busy:
    """A changer whose lock is taken, or not, each time it is asked; the rest is the patient's own."""

    def __init__(self, ward: Ward, *held: bool) -> None:
        self.held = list(held)
        self.changer = ward.patient.changer()

    def refuse_held(self) -> None:
        if self.held.pop(0):
            raise Refused("locked by run first")

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        return self.changer.hold(run_id)

    def write(
        self,
        settings_text: str,
        *,
        expected: frozenset[str],
        cancelled: Cancelled,
        proof: tuple[TargetObject, ...] = (),
    ) -> TargetState:
        return self.changer.write(settings_text, expected=expected, cancelled=cancelled, proof=proof)


def test_a_run_that_begins_while_a_dry_run_looks_is_named_as_the_holder_and_not_as_unfinished(ward: Ward) -> None:
    plan = ward.plan()
    ward.history.start().record(RunEvent.STARTED, kind="apply", fix="batch-floor")
    with pytest.raises(Refused, match="locked by run first"):
        treat.preview(plan, dataclasses.replace(ward.tools(GOOD), changer=Busy(ward, False, True)))


def test_a_run_that_ends_while_a_dry_run_looks_is_not_in_its_way(ward: Ward) -> None:
    class Ending(JournalFolder):
        """Its one run ends after it was first listed."""

        def list(self) -> tuple[RunSummary, ...]:
            found = super().list()
            if found[0].state is RunState.OPEN:
                self.resume(found[0].run_id).record(RunEvent.ENDED, state=RunState.UNDONE)
            return found

    plan = ward.plan()
    ward.history.start().record(RunEvent.STARTED, kind="apply", fix="batch-floor")
    history = Ending(ward.state / "journal", ward.clock.now_s)
    treat.preview(plan, dataclasses.replace(ward.tools(GOOD), history=history, changer=Busy(ward, False, False)))


def test_another_run_that_begins_meanwhile_is_not_called_unfinished_either(ward: Ward) -> None:
    class Following(JournalFolder):
        """As its one run ends, another begins."""

        def list(self) -> tuple[RunSummary, ...]:
            found = super().list()
            if len(found) == 1:
                self.resume(found[0].run_id).record(RunEvent.ENDED, state=RunState.UNDONE)
                self.start().record(RunEvent.STARTED, kind="apply", fix="batch-floor")
            return found

    plan = ward.plan()
    ward.history.start().record(RunEvent.STARTED, kind="apply", fix="batch-floor")
    history = Following(ward.state / "journal", ward.clock.now_s)
    treat.preview(plan, dataclasses.replace(ward.tools(GOOD), history=history, changer=Busy(ward, False, False)))


class Stubborn(FakePatient):
    """Its controller looks at a file once: what it refused it tries again only when there is a new generation."""

    refused = 0

    def controller(self, url: str) -> ControllerState:
        wanted = self.settings_text()
        if self.refuses(wanted):
            self.refused = generation_of(wanted)
        if generation_of(wanted) == self.refused:
            return ControllerState(generation_of(self.folder.read(EFFECTIVE)), self.refused, failed=True)
        return super().controller(url)


def test_what_a_server_refused_for_a_while_is_asked_of_it_again_by_the_next_recovery(tmp_path: Path) -> None:
    ward = Ward(tmp_path / "stack")
    ward.patient = Stubborn(ward.state)
    plan = ward.plan()
    ward.patient.refuses = lambda _: True
    failed = treat.apply(plan, ward.tools(GOOD))
    assert failed.state is RunState.ROLLBACK_FAILED
    assert isinstance(failed.error, RollbackFailed)
    generation = generation_of(ward.settings)
    (again,) = recovery.recover(ward.tools())
    assert again.state is RunState.ROLLBACK_FAILED

    ward.patient.refuses = lambda _: False
    (outcome,) = recovery.recover(ward.tools())
    assert (outcome.state, outcome.error) == (RunState.UNDONE, None)
    assert ward.is_old()
    assert generation_of(ward.settings) > generation
    settled = generation_of(ward.settings)
    assert recovery.recover(ward.tools()) == ()
    assert generation_of(ward.settings) == settled


def test_words_that_no_journal_can_hold_do_not_keep_a_change_from_being_undone(ward: Ward) -> None:
    plan, patient = ward.plan(), ward.patient
    patient.refuses = lambda text: "max_batch_size: 32" in text
    changer = BundledChanger(patient, 0.3, 0.15, patient.controller, lambda _: "cut in half: \ud83d")
    outcome = treat.apply(plan, dataclasses.replace(ward.tools(GOOD), changer=changer))
    assert isinstance(outcome.error, RolledBack)
    assert ward.is_old()


@pytest.mark.parametrize(
    ("settings", "justification"),
    [
        # A line that only sounds like a secret stands at its end in the diff, which is one line in a plan's file.
        (BROKEN.replace("  batching:", "  # about the token:\n  batching:"), ()),
        # A label that sounds like one, as some gateways' keys: the plan has it taken out already.
        (BROKEN, ('request_rate_rps is 320 [prometheus: rate(requests{hashed_api_key="88dc"}[5m])]',)),
    ],
    ids=["in the diff", "in a query"],
)
def test_what_sounds_like_a_secret_does_not_keep_a_run_from_being_read_back(
    ward: Ward, settings: str, justification: tuple[str, ...]
) -> None:
    for name in (SETTINGS, EFFECTIVE):
        (ward.state / name).write_text(settings)
    plan = ward.plan(e2e_p99_ms=100.0)
    plan = resigned(plan, justification=(*plan.justification, *map(redact, justification)))
    treat.apply(plan, ward.tools(GOOD))
    assert isinstance(treat.rollback(ward.tools(GOOD)), treat.Outcome)
    assert settings_digest(ward.settings) == settings_digest(settings)


def test_a_plan_that_the_journal_would_not_keep_whole_is_refused_before_anything_is_changed(ward: Ward) -> None:
    plan = resigned(ward.plan(), title="token=hunter2")
    with pytest.raises(Refused, match="could not undo the change"):
        treat.apply(plan, ward.tools(GOOD))
    assert ward.settings == BROKEN
    assert unfinished(ward.history) == ()
