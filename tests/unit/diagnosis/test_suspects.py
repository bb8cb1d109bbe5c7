"""Which cause is named: artefacts are folded, the confirmed and the upstream lead, and what would decide is known."""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.diagnosis.examine import examine
from latencydoctor.diagnosis.suspects import (
    Ranked,
    as_not_evaluable,
    as_ruled_out,
    as_suspect,
    deciding_gap,
    explained_by,
    families,
    rank,
    upstream_unknown,
)
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.diagnosis import NotEvaluable, Suspect
from latencydoctor.model.evidence import Gap, Measure
from latencydoctor.model.playbook import All
from tests.unit.builders import evidence, gap, measure
from tests.unit.diagnosis.rules import above, rule

A, B, C = "queue_time_ms", "compute_time_ms", "network_time_ms"
UP = rule("up", 10, above(A), explains=("middle",))
MIDDLE = rule("middle", 20, above(B), explains=("down",))
DOWN = rule("down", 30, above(C))


def ranked(rules: list[CauseRule], *measures: Measure) -> Ranked:
    return rank(examine(rules, evidence(*measures)))


def names(found: Ranked) -> tuple[list[str], list[str]]:
    folded = found.folded[found.roots[0].rule.id] if found.roots else ()
    return [one.rule.id for one in found.roots], [one.rule.id for one in folded]


def high(signal: str) -> Measure:
    return measure(signal, 50, 2)


def low(signal: str) -> Measure:
    return measure(signal, 1, 2)


def test_what_an_upstream_cause_explains_is_folded_under_it_also_through_one_that_does_not_hold() -> None:
    assert names(ranked([UP, MIDDLE, DOWN], high(A), high(B), high(C))) == (["up"], ["middle", "down"])
    assert names(ranked([UP, MIDDLE, DOWN], high(A), low(B), high(C))) == (["up"], ["down"])


def test_of_two_that_do_not_explain_each_other_the_upstream_one_leads_whatever_order_they_are_read_in() -> None:
    other = rule("other", 5, above(C))
    assert names(ranked([UP, other], high(A), high(C)))[0] == ["other", "up"]
    assert names(ranked([other, UP], high(A), high(C)))[0] == ["other", "up"]


def test_what_is_only_possible_neither_leads_nor_folds_what_is_confirmed() -> None:
    doubtful = rule("up", 10, above(A), refute=above("response_time_ms"), explains=("middle",))
    found = ranked([doubtful, MIDDLE, DOWN], high(A), high(B))
    assert names(found) == (["middle", "up"], [])


def test_contributors_and_what_stood_all_along_are_listed_but_never_named() -> None:
    contributor = rule("contributor", 1, above(C), kind=CauseKind.CONTRIBUTOR)
    found = ranked([contributor, UP, MIDDLE], high(C), measure(A, 50, 40), high(B))
    assert names(found)[0] == ["middle"]
    assert [one.rule.id for one in found.lesser] == ["contributor", "up"]


def test_explaining_is_transitive() -> None:
    examined = examine([UP, MIDDLE, DOWN], evidence())
    assert explained_by("up", examined) == {"middle", "down"}
    assert explained_by("down", examined) == frozenset()


def test_the_deciding_gap_is_the_single_signal_that_most_rules_wait_for() -> None:
    seen = evidence(gaps=(gap(A), gap(B), gap(C)))
    two = rule("two", 5, All((above(A), above(B))))
    alone, also = rule("alone", 6, above(C)), rule("also", 7, above(C))
    found = deciding_gap(None, examine([two, alone, also], seen))
    assert found is not None
    assert found.signal == C


def test_with_a_cause_only_what_could_overturn_it_decides() -> None:
    seen = evidence(high(B), gaps=(gap(A), gap(C)))
    examined = examine([UP, MIDDLE, DOWN], seen)
    found = deciding_gap(examined[1], examined)
    assert found is not None
    assert found.signal == A
    known = examine([UP, MIDDLE, DOWN], evidence(high(B), low(A), gaps=(gap(C),)))
    assert deciding_gap(known[1], known) is None


def test_a_ruled_out_cause_shows_the_comparison_that_refuted_it() -> None:
    refuted = rule("refuted", 10, above(A), refute=above(B))
    (found,) = examine([refuted], evidence(high(A), high(B)))
    assert [one.signal for one in as_ruled_out(found).findings] == [B]
    (found,) = examine([refuted], evidence(low(A), high(B)))
    assert [one.signal for one in as_ruled_out(found).findings] == [A]


def test_two_signals_of_one_family_are_one_witness() -> None:
    both = rule("both", 10, All((above(A), above(B))))
    same = [replace(high(signal), family="server") for signal in (A, B)]
    assert families(examine([both], evidence(*same))[0]) == ("server",)
    assert families(examine([both], evidence(same[0], replace(same[1], family="cache")))[0]) == ("cache", "server")


def test_of_two_at_one_place_in_the_order_the_one_with_more_witnesses_leads() -> None:
    one, two = rule("a-one", 10, above(A)), rule("b-two", 10, All((above(A), above(B))))
    assert names(ranked([one, two], high(A), high(B)))[0] == ["b-two", "a-one"]


def test_what_is_folded_is_folded_only_under_what_explains_it() -> None:
    other = rule("other", 5, above(C))
    found = ranked([other, UP, MIDDLE], high(A), high(B), high(C))
    assert {root: [one.rule.id for one in folded] for root, folded in found.folded.items()} == {
        "other": [],
        "up": ["middle"],
    }


def test_only_what_was_examined_is_explained_and_two_that_explain_each_other_are_no_trap() -> None:
    one, two = rule("one", 1, above(A), explains=("two", "gone")), rule("two", 2, above(B), explains=("one",))
    for through_all in (True, False):
        assert explained_by("one", examine([one, two], evidence()), through_all=through_all) == {"one", "two"}


def test_a_cause_that_was_not_examined_explains_nothing() -> None:
    assert explained_by("up", ()) == frozenset()
    assert explained_by("up", examine([MIDDLE, DOWN], evidence())) == frozenset()


def test_what_cannot_be_read_casts_no_doubt_through_a_cause_that_is_ruled_out() -> None:
    examined = examine([UP, MIDDLE, DOWN], evidence(low(B), high(C), gaps=(gap(A),)))
    assert explained_by("up", examined, through_all=False) == {"middle"}
    assert upstream_unknown(examined[2], examined) == ()
    examined = examine([UP, MIDDLE, DOWN], evidence(high(B), high(C), gaps=(gap(A),)))
    assert explained_by("up", examined, through_all=False) == {"middle", "down"}
    assert [one.rule.id for one in upstream_unknown(examined[2], examined)] == ["up"]


def decides(rules: list[CauseRule], *measures: Measure) -> Gap | None:
    return deciding_gap(None, examine(rules, evidence(*measures, gaps=(gap(A), gap(B), gap(C)))))


def test_no_gap_decides_for_what_may_not_be_named_or_is_settled() -> None:
    assert decides([rule("contributor", 1, above(A), kind=CauseKind.CONTRIBUTOR)]) is None
    assert decides([rule("settled", 1, above("queue_depth"), refute=above(A))], low("queue_depth")) is None


def test_a_signal_that_decides_a_rule_alone_counts_before_one_that_more_rules_wait_for() -> None:
    both = All((above(A), above(B)))
    found = decides([rule("one", 1, both), rule("two", 2, both), rule("alone", 3, above(C))])
    assert found is not None
    assert found.signal == C


def test_of_two_signals_that_decide_as_many_rules_alone_the_one_that_more_wait_for_counts() -> None:
    rules = [rule("one", 1, above(A)), rule("two", 2, above(C)), rule("both", 3, All((above(B), above(C))))]
    found = decides(rules)
    assert found is not None
    assert found.signal == C


def test_a_setting_alone_does_not_speak_for_a_cause_that_waits() -> None:
    setting = replace(high("config_max_batch_size"), family="config")
    reading = replace(high("queue_depth"), family="server")
    rules = [
        rule("set", 1, All((above(A), above("config_max_batch_size")))),
        rule("seen", 2, All((above(B), above("queue_depth")))),
    ]
    assert decides(rules, setting, reading) == gap(B)
    # Where nothing else speaks for any of them, all that wait are asked.
    assert decides(rules, setting) == gap(A)


def test_what_would_refute_the_cause_decides() -> None:
    doubtful = rule("doubtful", 10, above(A), refute=above(B))
    examined = examine([doubtful], evidence(high(A), gaps=(gap(B),)))
    assert deciding_gap(examined[0], examined) == gap(B)


def test_a_cause_that_holds_is_told_with_its_title_how_it_stands_and_what_says_so() -> None:
    (found,) = examine([UP], evidence(high(A)))
    assert as_suspect(found) == Suspect("up", "title of up", "confirmed", found.findings)


def test_a_ruled_out_cause_is_told_with_the_first_comparison_against_it_alone() -> None:
    both = rule("both", 10, All((above(A), above(B))))
    (found,) = examine([both], evidence(low(A), low(B)))
    assert as_ruled_out(found) == Suspect("both", "title of both", "ruled out", found.findings[:1])
    refuted = rule("refuted", 10, above(A), refute=All((above(B), above(C))))
    (found,) = examine([refuted], evidence(high(A), high(B), high(C)))
    assert as_ruled_out(found) == Suspect("refuted", "title of refuted", "ruled out", found.against[:1])


def test_a_cause_that_could_not_be_looked_at_is_told_with_what_it_needs() -> None:
    (found,) = examine([UP], evidence(gaps=(gap(A),)))
    assert as_not_evaluable(found) == NotEvaluable("up", "title of up", (gap(A),))
