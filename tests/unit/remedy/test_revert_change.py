"""Taking a change back: which change is held responsible, what is put back, and what a crafted plan cannot do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.errors import Refused
from latencydoctor.model.configuration import Slo
from latencydoctor.model.kept import KeptGeneration, Onset
from latencydoctor.model.remedy import NothingToDo, Operation, OperationKind, Plan, TargetObject, TargetState
from latencydoctor.remedy import guards, revert_change
from latencydoctor.remedy.catalog import find
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.plan import Grounds, Texts, build, restored_text
from latencydoctor.remedy.plan_file import plan_digest
from latencydoctor.remedy.settings_text import SETTINGS_OBJECT, generation_of, settings_digest

T = 1_800_000_000.0
ONSET = Onset(T, 5.0, (), {"e2e_p99_ms": 48.0, "request_rate_rps": 340.0})
NOW = {"e2e_p99_ms": 2140.0, "request_rate_rps": 335.0}
GOOD = {"inference.batching.max_batch_size": "32", "preprocessing.redact_pattern": ""}
BAD = {**GOOD, "inference.batching.max_batch_size": "8"}


def text_of(generation: int, settings: dict[str, str]) -> str:
    return "\n".join((f"generation: {generation}", *(f"{key}: {value}" for key, value in settings.items()), ""))


def kept(generation: int, at_s: float, settings: dict[str, str], owner: str = "ana") -> KeptGeneration:
    text = text_of(generation, settings)
    return KeptGeneration(generation, at_s, owner, text, settings_digest(text), tuple(settings.items()))


def state(*generations: KeptGeneration) -> TargetState:
    last = generations[-1] if generations else kept(1, T, GOOD)
    return TargetState(
        "bundled:/x", (TargetObject(SETTINGS_OBJECT, last.generation, last.digest),), last.settings, last.text, (), "",
        kept=generations,
    )  # fmt: skip


def change(*generations: KeptGeneration, onset: Onset | None = ONSET) -> Change:
    found = revert_change.propose(state(*generations), onset, NOW)
    assert isinstance(found, Change), found
    return found


def nothing(*generations: KeptGeneration, onset: Onset | None = ONSET) -> NothingToDo:
    found = revert_change.propose(state(*generations), onset, NOW)
    assert isinstance(found, NothingToDo)
    return found


OLD, NEW = kept(1, T - 3600, GOOD), kept(2, T - 4, BAD, "ben")


def test_the_change_that_came_with_the_incident_is_taken_back_and_named() -> None:
    found = change(OLD, NEW)
    assert found.restores == OLD
    assert found.values == ()
    assert "generation 2 came into effect" in found.grounds[0]
    assert "written by ben: 4 s before the first bad window of 5 s" in found.grounds[0]
    assert "generation 1 was in effect" in found.grounds[1]
    assert "goes back with it: inference.batching.max_batch_size." in found.side_effects[0]
    assert any("loaded anew" in line for line in found.side_effects)


@pytest.mark.parametrize(("at_s", "coincides"), [(-15.0, True), (-15.1, False), (0.0, True), (5.0, True), (5.1, False)])
def test_a_change_coincides_from_three_windows_before_the_first_bad_one_to_its_end(
    at_s: float, coincides: bool
) -> None:
    found = revert_change.propose(state(OLD, kept(2, T + at_s, BAD)), ONSET, NOW)
    assert isinstance(found, Change) is coincides


def test_a_change_at_another_time_is_not_held_responsible() -> None:
    told = nothing(OLD, kept(2, T - 600, BAD)).reason
    assert "no change of the settings came into effect then: the nearest, generation 2, did 10 min before it" in told
    assert "did 40 s after it" in nothing(OLD, kept(2, T + 40, BAD)).reason
    assert "have not changed since" in nothing(OLD).reason


def test_the_last_change_before_an_incident_is_taken_back_only_where_a_person_insists() -> None:
    early = kept(2, T - 250, BAD)
    held = (OLD, early, kept(3, T + 60, {**BAD, "a.b": "1"}))
    assert nothing(*held).notes == (revert_change.MAY_INSIST,)
    found = revert_change.propose(state(*held), ONSET, NOW, insisted=True)
    assert isinstance(found, Change)
    assert found.restores == OLD
    assert "generation 2 came into effect" in found.grounds[0]
    assert "4 min before" in found.grounds[0]
    assert found.grounds[-1] == revert_change.INSISTED
    # Where one coincides, nobody need insist, and it is that one.
    assert revert_change.INSISTED not in change(OLD, NEW).grounds
    again = revert_change.propose(state(OLD, NEW), ONSET, NOW, insisted=True)
    assert isinstance(again, Change)
    assert revert_change.INSISTED not in again.grounds
    # Without a change before it there is nothing to insist on.
    late = state(OLD, kept(2, T + 40, BAD))
    told = revert_change.propose(late, ONSET, NOW, insisted=True)
    assert isinstance(told, NothingToDo)
    assert told.notes == ()


def test_without_an_onset_or_a_history_nothing_is_taken_back() -> None:
    assert "no incident was found whose beginning is known" in nothing(OLD, NEW, onset=None).reason
    assert "--prometheus URL" in nothing(OLD, NEW, onset=None).notes[0]
    assert "keeps no settings from before" in nothing().reason


def test_a_second_try_after_the_onset_is_taken_back_as_well() -> None:
    tried = kept(3, T + 60, {**BAD, "inference.batching.max_batch_size": "9"})
    assert change(OLD, NEW, tried).restores == OLD


def test_of_two_changes_at_the_onset_both_are_taken_back() -> None:
    assert change(OLD, kept(2, T - 9, {**GOOD, "a.b": "1"}), kept(3, T - 1, BAD)).restores == OLD


def test_a_generation_under_which_an_incident_began_is_passed_over() -> None:
    middle = kept(2, T - 1000, {**GOOD, "a.b": "1"})
    # Dated by the end of its first window: this one began when the middle one came.
    found = change(OLD, middle, kept(3, T - 4, BAD), onset=replace(ONSET, earlier_s=(T - 1003.0,)))
    assert found.restores == OLD
    assert "An incident began under generation 2 as well." in found.grounds
    # One that began before it came is not its fault.
    assert change(OLD, middle, kept(3, T - 4, BAD), onset=replace(ONSET, earlier_s=(T - 1006.0,))).restores == middle


def test_the_suspected_settings_themselves_and_a_canarys_are_passed_over() -> None:
    canary = kept(3, T - 400, {**GOOD, "canary.share_ratio": "0.2"})
    found = change(OLD, kept(2, T - 500, BAD), canary, kept(4, T - 4, BAD))
    assert found.restores == OLD
    assert found.grounds[2:] == (
        "Generation 3 was a canary's.",
        "Generation 2 holds the same settings as the one that is suspected.",
    )


def test_where_every_earlier_one_had_trouble_there_is_nothing_to_put_back() -> None:
    found = nothing(OLD, NEW, onset=replace(ONSET, earlier_s=(T - 1800.0,)))
    assert "there is none from before to put back" in found.reason
    assert found.notes == ("An incident began under generation 1 as well.",)


def test_what_has_been_put_back_already_is_left_alone() -> None:
    assert "already are those of generation 1" in nothing(OLD, NEW, kept(3, T + 60, GOOD)).reason


def test_the_first_generation_kept_has_nothing_before_it() -> None:
    assert "have not changed since" in nothing(kept(7, T - 1, BAD)).reason


def test_what_is_expected_is_what_was_measured_before_at_the_same_rate() -> None:
    pattern = kept(2, T - 4, {**GOOD, "preprocessing.redact_pattern": "'.*.*'"})
    (expected,) = change(OLD, pattern).predictions
    assert (expected.before, expected.after) == (2140.0, 48.0)
    assert "as measured before the incident at 340 requests/s" in expected.method
    (other,) = change(
        OLD, pattern, onset=replace(ONSET, baseline={**ONSET.baseline, "request_rate_rps": 65.0})
    ).predictions
    assert other.after is None
    assert "the rates differ: 335 requests/s and 65 requests/s" in other.method
    (unknown,) = change(OLD, pattern, onset=replace(ONSET, baseline={})).predictions
    assert (unknown.after, unknown.method) == (None, "not predicted: p99 was not measured before the incident")
    # The batcher's settings are the queue model's business.
    assert change(OLD, NEW).predictions == ()


def plan(*generations: KeptGeneration, **changed: object) -> Plan:
    there = state(*generations)
    found = change(*generations)
    text = restored_text(
        (Operation(OperationKind.RESTORE_SETTINGS, SETTINGS_OBJECT, "1", there.digest, OLD.digest),), there
    )
    assert text is not None
    grounds = Grounds((), {}, (), Slo(), simulated=True)
    made = build(find("revert-change"), found, there, Texts(text, ""), grounds, T)
    made = replace(made, **changed)  # type: ignore[arg-type]  # fields by name
    return replace(made, digest=plan_digest(made))


def test_what_is_put_back_is_the_kept_text_but_for_the_generation_which_only_grows() -> None:
    made = plan(OLD, NEW)
    text = restored_text(made.operations, state(OLD, NEW))
    assert text == OLD.text.replace("generation: 1", "generation: 2")
    assert settings_digest(text) == OLD.digest
    assert generation_of(text) == 2
    assert [line for line in made.diff.splitlines() if line[:1] in "+-"][2:] == [
        "-inference.batching.max_batch_size: 8",
        "+inference.batching.max_batch_size: 32",
    ]
    assert guards.check(made, state(OLD, NEW)).id == "revert-change"


def test_a_target_of_many_objects_can_be_changed_and_still_no_object_more() -> None:
    versions = tuple(TargetObject(f"bert/{number}", 0, "0" * 64) for number in range(1, 61))
    there = state(OLD, NEW)
    many = replace(there, objects=(*there.objects, *versions))
    made = plan(OLD, NEW, objects=many.objects)
    assert guards.check(made, many).id == "revert-change"
    with pytest.raises(Refused, match="exactly the objects"):
        guards.check(plan(OLD, NEW, objects=(*many.objects, TargetObject("bert/61", 0, "0" * 64))), many)


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (("settings.yaml", "1", NEW.digest, "0" * 64), "does not keep"),
        (("settings.yaml", "9", NEW.digest, OLD.digest), "is not what it was"),
        (("settings.yaml", "1", "0" * 64, OLD.digest), "is not what it was"),
        (("/etc/passwd", "1", NEW.digest, OLD.digest), "may not put back"),
    ],
)
def test_a_crafted_plan_is_refused(operation: tuple[str, str, str, str], told: str) -> None:
    crafted = plan(OLD, NEW, operations=(Operation(OperationKind.RESTORE_SETTINGS, *operation),))
    with pytest.raises(Refused, match=told):
        guards.check(crafted, state(OLD, NEW))


def test_no_other_fix_may_put_settings_back_and_this_one_may_do_nothing_else() -> None:
    made = plan(OLD, NEW)
    with pytest.raises(Refused, match="batch-floor may not put back"):
        guards.check(plan(OLD, NEW, fix="batch-floor"), state(OLD, NEW))
    more = Operation(OperationKind.SET_SETTING, SETTINGS_OBJECT, "accelerator", "", "cpu")
    with pytest.raises(Refused, match="may not"):
        guards.check(plan(OLD, NEW, operations=(*made.operations, more)), state(OLD, NEW))
    with pytest.raises(Refused, match="may not set 'accelerator'"):
        guards.check(plan(OLD, NEW, operations=(more,)), state(OLD, NEW))


def test_a_canarys_settings_are_not_put_back_whatever_a_plan_says() -> None:
    canary = kept(1, T - 3600, {**GOOD, "canary.share_ratio": "0.2"})
    crafted = replace(
        plan(OLD, NEW),
        operations=(Operation(OperationKind.RESTORE_SETTINGS, SETTINGS_OBJECT, "1", NEW.digest, canary.digest),),
    )
    crafted = replace(crafted, digest=plan_digest(crafted))
    with pytest.raises(Refused, match="was a canary's"):
        guards.check(crafted, state(canary, NEW))


def test_a_secret_in_the_earlier_settings_reaches_neither_plan_nor_journal() -> None:
    secret = kept(1, T - 3600, {**GOOD, "cache.password": "hunter2hunter2"})
    with pytest.raises(Refused, match="looks like it holds a secret"):
        build(
            find("revert-change"), change(secret, NEW), state(secret, NEW),
            Texts(secret.text, ""), Grounds((), {}, (), Slo(), simulated=False), T,
        )  # fmt: skip
