"""Pages of rules: conditions with their numbers, in words a reader can check."""

from __future__ import annotations

from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, FirstKnown, Leaf, LogLeaf, Not
from latencydoctor.report.described import facts_of
from tests.unit.diagnosis.rules import above, rule


def test_a_causes_conditions_are_told_with_their_numbers() -> None:
    than = Leaf("batch_size_mean", Comparison.AT_LEAST, Basis.VALUE, None, "config_max_batch_size", "limit")
    inner = FirstKnown((Not(above("network_time_ms")), above("queue_depth", basis=Basis.RISE)))
    confirm = All((AnyOf((than, LogLeaf("gpu_oom", 2))), inner))
    page = dict(facts_of(rule("slow", 10, confirm, refute=above("cache_time_ms", basis=Basis.RATIO_TO_BASELINE))))
    assert page["confirmed by"] == (
        "all of:",
        "  any of:",
        "    batch_size_mean ≥ 10 x config_max_batch_size",
        "    log events gpu_oom ≥ 2",
        "  the first that can be told of:",
        "    not:",
        "      network_time_ms > 10",
        "    queue_depth - before > 10",
    )
    assert page["refuted by"] == ("cache_time_ms / before > 10",)
    assert page["thresholds"] == ("slow.limit = 10",)
    assert page["more replicas"] == "are the wrong reflex"
