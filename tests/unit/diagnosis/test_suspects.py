"""Which cause is named: artefacts are folded, the confirmed and the upstream lead, and what would decide is known."""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.diagnosis.examine import examine
from latencydoctor.diagnosis.suspects import Ranked, as_ruled_out, deciding_gap, explained_by, families, rank
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.evidence import Measure
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
