"""How a rule stands: confirmed, possible, chronic, ruled out, not evaluable."""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.diagnosis.examine import Examined, Standing, examine
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.evidence import Measure
from latencydoctor.model.playbook import All, AnyOf, Basis, LogLeaf, Where
from tests.unit.builders import event, evidence, gap, measure
from tests.unit.diagnosis.rules import above, rule

PLAIN = rule("plain", 10, above("queue_time_ms"))
REFUTABLE = rule("refutable", 10, above("queue_time_ms"), refute=above("network_time_ms"))


def stand(one: CauseRule, *measures: Measure) -> Examined:
    (found,) = examine([one], evidence(*measures))
    return found


def test_what_holds_now_and_did_not_before_is_confirmed() -> None:
    found = stand(PLAIN, measure("queue_time_ms", 50, 2))
    assert (found.standing, found.holds) == (Standing.CONFIRMED, True)
    assert [(one.signal, one.value) for one in found.agreeing] == [("queue_time_ms", 50.0)]


def test_what_held_before_just_as_well_does_not_explain_the_onset() -> None:
    found = stand(PLAIN, measure("queue_time_ms", 50, 40))
    assert (found.standing, found.holds) == (Standing.CHRONIC, False)


def test_a_threshold_is_not_passed_by_reaching_it() -> None:
    assert stand(PLAIN, measure("queue_time_ms", 10, 2)).standing is Standing.RULED_OUT


def test_what_cannot_be_read_is_not_evaluable_and_names_what_it_needs() -> None:
    (found,) = examine([PLAIN], evidence(gaps=(gap("queue_time_ms"),)))
    assert (found.standing, found.holds) == (Standing.NOT_EVALUABLE, False)
    assert [one.signal for one in found.gaps] == ["queue_time_ms"]


def test_a_refutation_rules_it_out_and_one_that_cannot_be_read_leaves_it_possible() -> None:
    queue = measure("queue_time_ms", 50, 2)
    assert stand(REFUTABLE, queue, measure("network_time_ms", 50, 2)).standing is Standing.RULED_OUT
    possible = stand(REFUTABLE, queue)
    assert (possible.standing, possible.holds) == (Standing.POSSIBLE, True)
    assert [one.signal for one in possible.gaps] == ["network_time_ms"]
    assert stand(REFUTABLE, queue, measure("network_time_ms", 1, 2)).standing is Standing.CONFIRMED


def test_without_a_baseline_nothing_is_known_of_before() -> None:
    seen = replace(evidence(measure("queue_time_ms", 50)), baseline_window=None)
    (found,) = examine([PLAIN], seen)
    assert found.standing is Standing.CONFIRMED


def test_a_setting_is_taken_to_have_been_what_it_is_and_a_reading_without_history_is_not() -> None:
    both = rule("both", 10, All((above("queue_time_ms"), above("config_max_batch_size"))))
    setting = replace(measure("config_max_batch_size", 32), constant=True)
    assert stand(both, measure("queue_time_ms", 50, 40), setting).standing is Standing.CHRONIC
    assert stand(both, measure("queue_time_ms", 50, 2), setting).standing is Standing.CONFIRMED
    reading = measure("config_max_batch_size", 32)
    assert stand(both, measure("queue_time_ms", 50, 40), reading).standing is Standing.CONFIRMED


def test_log_events_of_the_incident_did_not_exist_before() -> None:
    logged = rule("logged", 10, LogLeaf("gpu_oom", 1))
    (found,) = examine([logged], evidence(events=(event("gpu_oom"),)))
    assert found.standing is Standing.CONFIRMED


def test_only_a_cause_can_have_stood_all_along() -> None:
    contributor = replace(PLAIN, kind=CauseKind.CONTRIBUTOR)
    assert stand(contributor, measure("queue_time_ms", 50, 40)).standing is Standing.CONFIRMED


def test_a_deployment_overrides_one_rules_threshold_by_its_full_name() -> None:
    other = rule("other", 20, above("queue_time_ms"))
    seen = evidence(measure("queue_time_ms", 50, 2))
    found = examine([PLAIN, other], seen, (("plain.limit", 100.0), ("limit", 1000.0)))
    assert [one.standing for one in found] == [Standing.RULED_OUT, Standing.CONFIRMED]


def test_a_signal_that_is_compared_twice_is_shown_by_its_last_comparison() -> None:
    twice = rule("twice", 10, AnyOf((above("queue_time_ms"), above("queue_time_ms", basis=Basis.RATIO_TO_BASELINE))))
    found = stand(twice, measure("queue_time_ms", 50, 2))
    assert [(one.threshold, one.baseline) for one in found.agreeing] == [(20.0, 2.0)]


def test_that_a_signal_is_measured_at_all_speaks_for_nothing() -> None:
    guarded = rule("guarded", 10, All((above("queue_time_ms"), Where("batch_size_mean", All(())))))
    found = stand(guarded, measure("queue_time_ms", 50, 2), measure("batch_size_mean", 3, 3))
    assert found.standing is Standing.CONFIRMED
    assert [one.signal for one in found.agreeing] == ["queue_time_ms"]
