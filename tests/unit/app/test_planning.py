"""What a plan rests on: measured values, the rate that reaches the server, and the diagnosis that asked for it."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest

from latencydoctor.app.planning import Asked, Basis, make_plan, measured_values
from latencydoctor.errors import KnownError, Refused, UsageError
from latencydoctor.model.diagnosis import Answer, Cause, Confidence, Diagnosis, Finding, Step
from latencydoctor.model.evidence import Proof
from latencydoctor.model.remedy import Plan, TargetState
from latencydoctor.remedy import guards
from latencydoctor.remedy.plan_file import plan_digest, plan_to_json
from tests.fakes.clock import FakeClock
from tests.fakes.patient import BROKEN, FakePatient
from tests.unit.builders import BEFORE, WINDOW, evidence, incident, measure, values

MEASURED = {
    "e2e_p99_ms": 2140.0, "error_ratio": 0.004, "request_rate_rps": 360.0, "cache_hit_ratio": 0.1,
    "compute_time_ms": 28.0, "batch_size_mean": 8.0, "execution_rate_eps": 35.7, "accelerator_busy_ratio": 0.29,
}  # fmt: skip


def finding(signal: str, value: float | None, query: str = "up") -> Finding:
    return Finding(
        signal, Answer.YES, "above the limit of 500 ms", value, 500.0, None, "ms", WINDOW, Proof("prometheus", query)
    )


def diagnosis(fix: str = "batch-floor", query: str = "up", *, known: bool = True) -> Diagnosis:
    found = finding("queue_time_ms", 1800.0, query)
    cause = Cause(
        "batching-failed",
        "Batching has failed",
        "",
        "",
        "",
        fix,
        Confidence.HIGH,
        (found, finding("e2e_p99_ms", None)),
        (),
    )
    whole = evidence()
    return Diagnosis(
        whole.selection, whole.now_s, WINDOW, BEFORE, incident(), cause if known else None,
        (Step("q", "?", Answer.YES, (found,)),), (), (), (), (), (), (), "latency-spike", "", False,
        "" if known else "the queue cannot be seen",
    )  # fmt: skip


@pytest.fixture
def patient(tmp_path: Path) -> FakePatient:
    return FakePatient(tmp_path / "stack")


def plan(patient: FakePatient, basis: Basis) -> Plan:
    made = make_plan("batch-floor", patient, FakeClock(), basis)
    assert isinstance(made, Plan)
    return made


def test_the_plan_tells_why_it_is_made_and_what_is_expected(patient: FakePatient) -> None:
    made = plan(patient, Basis(diagnosis(), evidence(*values(MEASURED))))
    assert made.justification == (
        "incident: p99 latency 2,140 ms > 1,000 ms",
        "cause batching-failed (high confidence): Batching has failed",
        "queue_time_ms is 1800 ms (above the limit of 500 ms) [prometheus: up]",
        "e2e_p99_ms is not known (above the limit of 500 ms) [prometheus: up]",
    )
    assert dict(made.before_values) == MEASURED
    # What the cache answers never reaches the server: 360/s with one in ten answered by it.
    assert made.predictions[1].method.startswith("simulated queue at 324 requests/s")
    assert made.simulated
    for line in ("-    max_batch_size: 8", "+    max_batch_size: 32"):
        assert line in made.diff.splitlines()
        assert line.replace("    ", "") in made.compiled_diff.splitlines()
    assert not [line for line in made.diff.splitlines() if line[:1] in "+-" and "generation" in line]


def test_without_evidence_the_figures_of_the_diagnosis_are_used(patient: FakePatient) -> None:
    assert measured_values(Basis(diagnosis())) == {"queue_time_ms": 1800.0}
    assert measured_values(Basis()) == {}
    made = plan(patient, Basis())
    assert made.justification == ("No diagnosis was given; the fix was asked for by name.",)
    assert all(prediction.after is None for prediction in made.predictions)
    assert any("arrival rate is not known" in line for line in made.side_effects)


def test_a_fix_that_the_diagnosis_did_not_ask_for_says_so(patient: FakePatient) -> None:
    for fix, told in (("", "names no fix, not batch-floor"), ("add-gpu", "names add-gpu, not batch-floor")):
        assert any(told in line for line in plan(patient, Basis(diagnosis(fix))).justification)
    made = plan(patient, Basis(diagnosis(known=False)))
    assert made.justification[1] == "No cause was found; the fix was asked for by name. the queue cannot be seen"


def test_what_is_no_number_is_left_out() -> None:
    measured = values({"e2e_p99_ms": math.nan, "error_ratio": math.inf, "queue_time_ms": 3.0})
    assert measured_values(Basis(evidence=evidence(*measured))) == {"queue_time_ms": 3.0}


@pytest.mark.parametrize("absurd", [1.7e308, 1e16, -1e16, -1.0])
@pytest.mark.parametrize("fix", ["batch-floor", "scale-out", "vip-priority"])
def test_figures_that_nothing_can_have_are_not_planned_upon(fix: str, absurd: float, patient: FakePatient) -> None:
    names = ("request_rate_rps", "cache_hit_ratio", "e2e_p99_ms", "accelerator_memory_used_bytes", "vip_share_ratio")
    seen = evidence(*(measure(name, absurd, absurd) for name in names), *values({"config_instance_count": 2e9}))
    made = make_plan(fix, patient, FakeClock(), Basis(evidence=seen), Asked(force=True))
    assert isinstance(made, Plan)
    assert made.before_values == (("config_instance_count", 2e9),)


def test_a_secret_in_a_query_does_not_reach_the_plan(patient: FakePatient) -> None:
    made = plan(patient, Basis(diagnosis(query="http://admin:planted@prometheus/ token=planted")))
    assert "planted" not in plan_to_json(made)


def test_an_unknown_fix_is_named(patient: FakePatient) -> None:
    with pytest.raises(UsageError, match="no fix 'magic'"):
        make_plan("magic", patient, FakeClock())


def test_the_same_grounds_give_the_same_plan(patient: FakePatient) -> None:
    basis = Basis(diagnosis(), evidence(*values(MEASURED)))
    assert plan_to_json(plan(patient, basis)) == plan_to_json(plan(patient, basis))
    other = dataclasses.replace(basis, evidence=evidence(*values({**MEASURED, "e2e_p99_ms": 2141.0})))
    assert plan(patient, basis).digest != plan(patient, other).digest


def test_a_queue_that_climbs_is_predicted_with_what_arrives(patient: FakePatient) -> None:
    """360/s are answered and 400/s come: that is what the server gets once it can serve them."""
    made = plan(patient, Basis(diagnosis(), evidence(*values({**MEASURED, "arrival_rate_rps": 400.0}))))
    assert made.predictions[1].method.startswith("simulated queue at 360 requests/s")
    (rate,) = [one for one in made.predictions if one.signal == "request_rate_rps"]
    assert rate.after == pytest.approx(400.0)
    assert any("400/s arrive" in line for line in made.justification)


SATURATED = {
    "e2e_p99_ms": 3900.0, "error_ratio": 0.0, "request_rate_rps": 330.0, "cache_hit_ratio": 0.12,
    "compute_time_ms": 120.2, "batch_size_mean": 32.0, "execution_rate_eps": 8.3, "accelerator_busy_ratio": 0.998,
    "accelerator_memory_used_bytes": 1e9,
}  # fmt: skip


def saturation(scaling: str = "cures") -> Diagnosis:
    found = diagnosis("scale-out")
    assert found.cause is not None
    return dataclasses.replace(found, cause=dataclasses.replace(found.cause, id="saturation", scaling=scaling))


def scaled_out(patient: FakePatient, basis: Basis, *, force: bool = False) -> Plan:
    made = make_plan("scale-out", patient, FakeClock(), basis, Asked(force=force))
    assert isinstance(made, Plan)
    return made


def test_replicas_are_planned_with_their_effect(tmp_path: Path) -> None:
    healthy = BROKEN.replace("preferred_batch_size: 0   # none preferred", "preferred_batch_size: 16")
    healthy = healthy.replace("max_batch_size: 8", "max_batch_size: 32").replace("micros: 0", "micros: 100000")
    patient = FakePatient(tmp_path / "healthy", healthy)
    made = scaled_out(patient, Basis(saturation(), evidence(*values(SATURATED))))
    assert [(one.key, one.before, one.after) for one in made.operations] == [("inference.replicas", "", "2")]
    told = {one.signal: one for one in made.predictions}
    p99, load, capacity = (told[name] for name in ("e2e_p99_ms", "load_ratio", "capacity_rps"))
    assert p99.before == 3900.0
    assert p99.after is not None
    assert 150 < p99.after < 1000
    assert p99.low is not None
    assert p99.high is not None
    assert load.before == pytest.approx(2 * load.after)  # type: ignore[operator]  # both are known
    assert capacity.after == pytest.approx(2 * capacity.before)  # type: ignore[operator]  # None fails here, too
    assert "2 replicas with an even share each" in p99.method
    memory = next(one for one in made.requirements if one.signal == "accelerator_memory_used_bytes")
    assert memory.at_most == pytest.approx(2.5e9), "twice the copies are no leak"
    assert any(line.startswith("Forecast: at 330 requests/s 2 replicas hold") for line in made.justification)
    assert guards.check(made, patient.read()).id == "scale-out"


def test_replicas_are_planned_as_the_histogram_will_show_them_that_verifies_them(tmp_path: Path) -> None:
    """Two replicas take 161 ms at p99, which a histogram without a bound between 150 and 200 ms shows as 191."""
    healthy = BROKEN.replace("preferred_batch_size: 0   # none preferred", "preferred_batch_size: 16")
    healthy = healthy.replace("max_batch_size: 8", "max_batch_size: 32").replace("micros: 0", "micros: 100000")
    patient = FakePatient(tmp_path / "healthy", healthy)
    basis = Basis(saturation(), evidence(*values(SATURATED)), bounds_ms=(100.0, 150.0, 200.0, 300.0))
    made = scaled_out(patient, basis)
    p99 = next(one for one in made.predictions if one.signal == "e2e_p99_ms")
    assert p99.after == pytest.approx(191, abs=4)
    assert "it has no bound between 150 and 200 ms" in p99.method
    (told,) = [line for line in made.justification if line.startswith("Forecast: ")]
    itself = re.search(r"\((\d+ ms) by itself", p99.method)
    assert itself is not None
    assert f"p99 about {itself[1]}" in told, "the SLO is held to what requests take"


def test_replicas_are_refused_where_capacity_is_not_the_problem(patient: FakePatient) -> None:
    basis = Basis(diagnosis(), evidence(*values(MEASURED)))
    wrong = dataclasses.replace(basis, diagnosis=saturation("wrong"))
    with pytest.raises(Refused, match=r"capacity is not the problem: Batching has failed .*queue_time_ms 1800 ms"):
        scaled_out(patient, wrong)
    made = scaled_out(patient, wrong, force=True)
    assert made.operations[0].after == "2"
    assert plan(patient, wrong).fix == "batch-floor", "other fixes are not refused"


class Narrow(FakePatient):
    """A patient of which only some keys can be set."""

    keys = frozenset({"inference.batching.max_batch_size"})

    def read(self) -> TargetState:
        return dataclasses.replace(super().read(), settable=self.keys, limits=("It has no batcher of Triton's kind.",))


def test_what_the_target_cannot_set_is_left_out_and_said(tmp_path: Path) -> None:
    narrow = Narrow(tmp_path / "stack")
    made = plan(narrow, Basis())
    assert [one.key for one in made.operations] == ["inference.batching.max_batch_size"]
    assert made.side_effects[0] == (
        "Left out, since this target cannot set it: inference.batching.preferred_batch_size, "
        "inference.batching.timeout_micros. It has no batcher of Triton's kind."
    )
    assert guards.check(made, narrow.read()).id == "batch-floor"
    wide = plan(FakePatient(tmp_path / "wide"), Basis())
    moved = dataclasses.replace(wide, target=narrow.name, digest="")
    with pytest.raises(Refused, match="cannot set inference"):
        guards.check(dataclasses.replace(moved, digest=plan_digest(moved)), narrow.read())


def test_a_target_that_can_set_nothing_of_a_fix_is_no_plan(tmp_path: Path) -> None:
    narrow = Narrow(tmp_path / "stack")
    narrow.keys = frozenset()
    with pytest.raises(KnownError, match=r"batch-floor would set inference\..*, which bundled:.* cannot") as told:
        plan(narrow, Basis())
    assert told.value.hint == "It has no batcher of Triton's kind."


FLOODED = {
    **MEASURED, "arrival_rate_rps": 640.0, "vip_share_ratio": 0.06, "vip_p99_ms": 2900.0, "standard_p99_ms": 3000.0,
    "queue_time_ms": 1900.0, "config_instance_count": 1.0, "shed_ratio": 0.0,
}  # fmt: skip


def test_a_plan_for_vip_says_what_each_priority_will_see_and_judges_by_vip(patient: FakePatient) -> None:
    made = make_plan("vip-priority", patient, FakeClock(), Basis(diagnosis(), evidence(*values(FLOODED))))
    assert isinstance(made, Plan)
    told = {one.signal: one for one in made.predictions}
    assert set(told) == {"vip_p99_ms", "standard_p99_ms", "shed_ratio"}
    assert told["vip_p99_ms"].before == 2900.0
    # Batches of 8 take 28 ms: 286/s of the 576/s that reach the server.
    assert told["vip_p99_ms"].after is not None
    assert told["vip_p99_ms"].after < 150
    assert told["shed_ratio"].after == pytest.approx(0.9 * (1 - 286 / 576), abs=0.03)
    assert "error_ratio" in {one.signal for one in made.requirements}
    assert "e2e_p99_ms" not in {one.signal for one in made.requirements}
    assert {one.key: one.after for one in made.operations}["inference.priorities.standard_timeout_ms"] == "450"
    guards.check(made, patient.read())


def test_without_the_share_of_vip_the_plan_says_so_and_predicts_nothing(patient: FakePatient) -> None:
    known = {name: value for name, value in FLOODED.items() if name != "vip_share_ratio"}
    made = make_plan("vip-priority", patient, FakeClock(), Basis(diagnosis(), evidence(*values(known))))
    assert isinstance(made, Plan)
    assert {one.method for one in made.predictions} == {"not predicted: the share of VIP requests is not known"}
    assert any("it was not checked that there are any" in line for line in made.justification)
