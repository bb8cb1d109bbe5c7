"""Reading all sources into one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.errors import CannotTell, SourceError, UsageError
from latencydoctor.model.evidence import Fact, Gap, GapReason, LogEvent, Proof, Selection, Severity, Window
from latencydoctor.model.readings import Candidate, Readings
from latencydoctor.model.rule import Dialect, LogRule, SignalExpression, SignalName
from tests.fakes.metrics import FakeMetrics

NOW_S = 1_800_000_000.25


def expression(signal: str, expr: str, metric: str) -> SignalExpression:
    return SignalExpression(signal, "ms", expr, (metric,), shared=False, simulated=False)


FRONT = Dialect("front", "", "stable", "", ("front",), "", (expression("p99", "front{{front}}", "front"),))
SERVER = Dialect(
    "server",
    "",
    "stable",
    "",
    ("server",),
    "model",
    (
        expression("p99", "first{{sel}}", "server"),
        expression("p99", "second{{sel}}", "server"),
        expression("queue", "queue{{sel}}[{window}]", "server"),
    ),
)
NAMES = tuple(SignalName(signal, "ms", "", f"needs {signal}", True) for signal in ("p99", "queue"))
RULES = Rules((FRONT, SERVER), NAMES)
ONE = (Candidate("bert", ""),)


@dataclass(slots=True)
class Facts:
    """A fact source that remembers what it was asked about."""

    asked: list[Selection] = field(default_factory=list)

    def read(self, selection: Selection) -> Readings:
        self.asked.append(selection)
        return Readings(facts=(Fact("config_max_batch_size", "items", 8.0, Proof("triton", "ModelConfig")),))


@dataclass(slots=True)
class Logs:
    """A log source with one event."""

    windows: list[Window] = field(default_factory=list)

    def read(self, rules: Sequence[LogRule], window: Window) -> Readings:
        assert rules == ()
        self.windows.append(window)
        return Readings(log_events=(LogEvent("gpu_oom", Severity.CRITICAL, 1, None, None, "a.log:1", "oom", "memory"),))


def request(
    selection: Selection | None = None, since_s: float = 400.0, window_s: float | None = None
) -> CollectRequest:
    return CollectRequest(selection or Selection(""), NOW_S, since_s, window_s)


def test_the_only_service_is_selected_and_every_signal_asked_for() -> None:
    metrics = FakeMetrics(frozenset({"server"}), ONE, {'first{model="bert"}': 1.0, 'queue{model="bert"}[20s]': 2.0})
    found = collect(Sources(metrics), RULES, request())
    assert found.selection == Selection("bert")
    assert (found.window_s, found.scrape_interval_s, found.dialects) == (20.0, 5.0, ("server",))
    assert [series.signal for series in found.series] == ["p99", "queue"]
    assert [record.outcome for record in found.queries] == ["ok", "ok", "ok"]
    query = metrics.asked[0][0]
    # Twenty windows of 20 s: the first point is the end of the first.
    assert query.window == Window(NOW_S - 380, NOW_S)
    assert query.step_s == 20.0
    assert [gap.signal for gap in found.gaps] == ["logs"]


def test_an_expression_that_gives_nothing_gives_way_to_the_next() -> None:
    metrics = FakeMetrics(frozenset({"server", "front"}), ONE, {'second{model="bert"}': 1.0})
    found = collect(Sources(metrics), RULES, request())
    assert [[query.query for query in turn] for turn in metrics.asked] == [
        ["front", 'queue{model="bert"}[20s]'],
        ['first{model="bert"}', 'second{model="bert"}'],
    ]
    assert [series.proof.query for series in found.series] == ['second{model="bert"}']
    # The signal that has been found in the end leaves no gap; the other says what it needs.
    assert [(gap.signal, gap.needs) for gap in found.gaps] == [("queue", "needs queue"), ("logs", "--log PATH")]


def test_of_several_that_answer_the_first_in_order_counts() -> None:
    values = {'first{model="bert"}': 1.0, 'second{model="bert"}': 2.0}
    metrics = FakeMetrics(frozenset({"server", "front"}), ONE, values)
    found = collect(Sources(metrics), RULES, request())
    assert [series.proof.query for series in found.series] == ['first{model="bert"}']


def test_each_dialect_names_models_by_its_own_label() -> None:
    other = Dialect("other", "", "stable", "", ("o",), "model_name", (expression("queue", "o{{sel}}", "o"),))
    shared = Dialect("device", "", "stable", "", ("d",), "", (expression("p99", "d{{sel}}", "d"),))
    rules = Rules((shared, SERVER, other), NAMES)
    metrics = FakeMetrics(frozenset({"d", "o", "server"}), (Candidate("bert", "", "model_name"),))
    collect(Sources(metrics), rules, request())
    assert [query.query for query in metrics.asked[0]] == ['d{model_name="bert"}', 'queue{model="bert"}[20s]']
    assert 'o{model_name="bert"}' in [query.query for query in metrics.asked[1]]


def test_a_named_baseline_is_asked_with_the_expressions_that_answered() -> None:
    metrics = FakeMetrics(frozenset({"server"}), ONE, {'first{model="bert"}': 1.0})
    asked = CollectRequest(Selection(""), NOW_S, 400.0, baseline=Window(NOW_S - 5130, NOW_S - 4800))
    found = collect(Sources(metrics), RULES, asked)
    # Whole windows up to the end named: sixteen of 20 s fit into 330 s.
    assert found.baseline == Window(NOW_S - 5120, NOW_S - 4800)
    assert [query.query for query in metrics.asked[-1]] == ['first{model="bert"}']
    assert metrics.asked[-1][0].window == Window(NOW_S - 5100, NOW_S - 4800)
    assert [(series.signal, len(series.values)) for series in found.baseline_series] == [("p99", 16)]
    assert "baseline" not in [gap.signal for gap in found.gaps]


def test_a_baseline_without_values_is_told() -> None:
    asked = CollectRequest(Selection(""), NOW_S, 400.0, baseline=Window(NOW_S - 5130, NOW_S - 4800))
    found = collect(Sources(FakeMetrics(frozenset({"server"}), ONE)), RULES, asked)
    assert found.baseline_series == ()
    assert "baseline" in [gap.signal for gap in found.gaps]


def test_of_two_copies_one_is_read_and_the_users_selection_stays_what_it_was() -> None:
    metrics = FakeMetrics(frozenset({"server"}), ONE, one_copy='prometheus_replica="a"')
    found = collect(Sources(metrics), RULES, request(Selection("", 'ns="p"')))
    assert metrics.asked[0][1].query == 'queue{model="bert",ns="p",prometheus_replica="a"}[20s]'
    assert found.selection == Selection("bert", 'ns="p"')


@pytest.mark.parametrize(("ahead_s", "told"), [(5.0, False), (5.1, True), (-312.0, True), (None, False)])
def test_clocks_that_differ_are_told(ahead_s: float | None, told: bool) -> None:
    found = collect(Sources(FakeMetrics(frozenset({"server"}), ONE, clock_ahead_s=ahead_s)), RULES, request())
    clock = [gap.detail for gap in found.gaps if gap.signal == "clock"]
    assert bool(clock) is told
    if ahead_s == -312.0:
        assert clock == ["the metrics source's clock is 312 s behind this one's"]


def test_the_users_selector_reaches_front_and_server() -> None:
    metrics = FakeMetrics(frozenset({"server", "front"}), ONE)
    collect(Sources(metrics), RULES, request(Selection("bert", 'ns="p"')))
    assert [query.query for query in metrics.asked[0]] == ['front{ns="p"}', 'queue{model="bert",ns="p"}[20s]']


def test_the_window_can_be_given() -> None:
    metrics = FakeMetrics(frozenset({"server"}), ONE)
    found = collect(Sources(metrics), RULES, request(window_s=30.0))
    assert found.window_s == 30.0
    assert metrics.asked[0][0].step_s == 30.0


def test_several_services_are_refused_with_commands_to_choose_by() -> None:
    hostile = Candidate("x\x1b[2J' model", 'job="[/INST]"')
    metrics = FakeMetrics(candidates=(Candidate("bert", 'ns="a"'), Candidate("bert", 'ns="b"'), hostile))
    with pytest.raises(UsageError, match="never merged") as caught:
        collect(Sources(metrics), RULES, request(Selection("bert")))
    assert caught.value.hint.splitlines() == [
        "Choose one:",
        "  --model bert --selector 'ns=\"a\"'",
        "  --model bert --selector 'ns=\"b\"'",
    ]
    with pytest.raises(UsageError) as all_of_them:
        collect(Sources(metrics), RULES, request())
    assert "\x1b" not in all_of_them.value.hint


def test_many_services_are_cut_short() -> None:
    metrics = FakeMetrics(candidates=tuple(Candidate(f"m{index}", "") for index in range(25)))
    with pytest.raises(UsageError) as caught:
        collect(Sources(metrics), RULES, request())
    assert caught.value.hint.endswith("  --model m19\n  and 5 more")


def test_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no model 'gpt' here"):
        collect(Sources(FakeMetrics(candidates=ONE)), RULES, request(Selection("gpt")))


def test_facts_are_asked_about_the_service_that_the_metrics_named() -> None:
    facts, logs = Facts(), Logs()
    metrics = FakeMetrics(frozenset({"server"}), ONE)
    found = collect(Sources(metrics, (facts,), logs), RULES, request())
    assert facts.asked == [Selection("bert")]
    assert logs.windows == [Window(NOW_S - 400, NOW_S)]
    assert [event.rule for event in found.log_events] == ["gpu_oom"]
    assert [fact.signal for fact in found.facts] == ["config_max_batch_size"]
    assert "logs" not in [gap.signal for gap in found.gaps]


def test_a_dead_metrics_source_is_a_gap_when_others_speak() -> None:
    metrics = FakeMetrics(failure=CannotTell("Prometheus does not answer", hint="Check it."))
    found = collect(Sources(metrics, (), Logs()), RULES, request(Selection("bert")))
    assert found.gaps[0] == Gap("metrics", GapReason.UNREACHABLE, "Prometheus does not answer", "Check it.")
    assert (found.selection, found.scrape_interval_s, found.dialects) == (Selection("bert"), None, ())


def test_each_signal_of_a_dead_metrics_source_says_that_it_could_not_be_asked_and_why() -> None:
    metrics = FakeMetrics(failure=CannotTell("Prometheus does not answer", hint="Check it."))
    found = collect(Sources(metrics, (), Logs()), RULES, request())
    why = (GapReason.UNREACHABLE, "Prometheus does not answer", "Check it.")
    told = {gap.signal: (gap.reason, gap.detail, gap.needs) for gap in found.gaps}
    assert told == {"metrics": why, "p99": why, "queue": why}


def test_a_dead_metrics_source_alone_cannot_be_told() -> None:
    with pytest.raises(CannotTell, match="does not answer"):
        collect(Sources(FakeMetrics(failure=CannotTell("it does not answer"))), RULES, request())


def test_a_wrong_configuration_is_never_passed_over() -> None:
    with pytest.raises(SourceError):
        collect(Sources(FakeMetrics(failure=SourceError("credentials refused")), (), Logs()), RULES, request())


def test_no_source_cannot_be_told() -> None:
    with pytest.raises(CannotTell, match="no source"):
        collect(Sources(), RULES, request())


@pytest.mark.parametrize(("age_s", "told"), [(15.0, False), (15.1, True)])
def test_samples_older_than_three_scrapes_are_told(age_s: float, told: bool) -> None:
    metrics = FakeMetrics(frozenset({"server"}), ONE, newest_sample_s=NOW_S - age_s)
    found = collect(Sources(metrics), RULES, request())
    assert ("samples" in [gap.signal for gap in found.gaps]) is told


def test_logs_alone_are_enough_to_collect() -> None:
    found = collect(Sources(logs=Logs()), RULES, request())
    assert (found.now_s, found.window_s, found.series) == (NOW_S, 60.0, ())
