"""Every dialect against the recorded pages of real servers: each signal is read, or the dialect says why not."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.presence import service_query
from latencydoctor.evidence.promql import evaluate_at
from latencydoctor.evidence.promql.recording import Recording
from latencydoctor.evidence.promql.syntax import parse
from latencydoctor.evidence.queries import render
from latencydoctor.model.evidence import Selection
from latencydoctor.model.rule import Dialect, SignalExpression

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "tests" / "contract" / "pages"
NAMES, DIALECTS = read_signals(locate())
SERVERS = ("torchserve", "ray_serve", "kserve", "bentoml", "sglang", "tgi")
"""Dialects of inference servers that this file also holds to `SERVER_SIGNALS`."""

SERVER_SIGNALS = (
    "request_rate_rps",
    "error_ratio",
    "error_client_rps",
    "error_server_rps",
    "error_rejected_rps",
    "error_timeout_rps",
    "e2e_mean_ms",
    "e2e_p50_ms",
    "e2e_p99_ms",
    "queue_time_ms",
    "queue_time_p99_ms",
    "queue_depth",
    "preprocess_time_ms",
    "preprocess_time_p99_ms",
    "compute_time_ms",
    "compute_time_p99_ms",
    "response_time_ms",
    "response_time_p99_ms",
    "concurrency",
    "batch_size_mean",
    "config_max_batch_size",
    "accelerator_busy_ratio",
    "accelerator_memory_used_bytes",
    "cache_hit_ratio",
    "replica_count",
    "model_load_time_ms",
    "process_resets",
)
LARGEST_BYTES = 300_000

COUNTED = {
    "torchserve": ("200", "503"),
    "ray_serve": ("200", "500", "503"),
    "kserve": ("200", "400", "500"),
    "bentoml": ("200", "429", "500"),
}
"""The statuses that a server's request counter includes; others never reach a model."""

MODELS = {"torchserve": "tiny", "ray_serve": "Tiny", "kserve": "tiny", "bentoml": "tiny"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One server's recording: its folder, what recording.yaml says, when its last two pages were read."""

    dialect: str
    folder: Path
    facts: dict[str, object]
    scrapes: tuple[tuple[str, float], ...]

    @property
    def window_s(self) -> float:
        """A window that holds the last two pages and no other."""
        return round(self.scrapes[-1][1] - self.scrapes[-2][1] + 0.5, 3)

    def clients(self, name: str) -> float:
        """A figure that the clients of the recording measured between the last two pages."""
        clients = self.facts["clients"]
        assert isinstance(clients, dict)
        return float(clients[name])

    def rate_of(self, *statuses: str) -> float:
        """How many requests a second the clients saw end with one of these statuses."""
        clients = self.facts["clients"]
        assert isinstance(clients, dict)
        return float(sum(clients["answers"].get(status, 0) for status in statuses) / clients["seconds"])


def _recorded(dialect: str) -> list[Recorded]:
    found = []
    for path in sorted(PAGES.glob(f"{dialect}/*/recording.yaml")):
        facts = yaml.safe_load(path.read_text(encoding="utf-8"))
        scrapes = tuple((str(scrape["file"]), float(scrape["time_s"])) for scrape in facts["scrapes"])
        found.append(Recorded(dialect, path.parent, facts, scrapes))
    return found


RECORDED = [recorded for dialect in SERVERS for recorded in _recorded(dialect)]
BY_ID = {dialect.id: dialect for dialect in DIALECTS}
MINE = [BY_ID[name] for name in SERVERS]


def _pages(recorded: Recorded) -> Recording:
    pages = Recording()
    for name, time_s in recorded.scrapes:
        pages.add_page(time_s, "127.0.0.1:1", (recorded.folder / name).read_text(encoding="utf-8"))
    return pages


def _read(recorded: Recorded, pages: Recording, expression: SignalExpression, model: str = "") -> float | None:
    """What an expression gives over the pages; None for nothing, or for what is no number."""
    if not pages.names.issuperset(expression.requires):
        return None
    label = BY_ID[recorded.dialect].model_label
    query = render(expression, Selection(model), recorded.window_s, label)
    elements = evaluate_at(pages, parse(query), recorded.scrapes[-1][1])
    assert len(elements) <= 1, f"{expression.signal} is not one value: {elements}"
    return elements[0].value if elements and math.isfinite(elements[0].value) else None


def _values(recorded: Recorded, model: str = "") -> dict[str, float]:
    """Each signal's first readable value."""
    pages = _pages(recorded)
    values: dict[str, float] = {}
    for expression in BY_ID[recorded.dialect].signals:
        value = _read(recorded, pages, expression, model)
        if value is not None:
            values.setdefault(expression.signal, value)
    return values


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.id)
def test_every_expression_is_promql_for_any_selection(dialect: Dialect) -> None:
    for expression in dialect.signals:
        for selection in (Selection(""), Selection("m", 'namespace="n"'), Selection("m")):
            parse(render(expression, selection, 20.0, dialect.model_label))


@pytest.mark.parametrize("dialect", MINE, ids=lambda dialect: dialect.id)
def test_every_signal_of_a_server_is_given_or_missing_with_a_reason(dialect: Dialect) -> None:
    told = {one.signal for one in dialect.signals} | {one.signal for one in dialect.missing}
    assert set(SERVER_SIGNALS) - told == set()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.id)
def test_verified_names_a_recording_that_is_there(dialect: Dialect) -> None:
    if dialect.verified.startswith("tests/contract/pages/"):
        assert (ROOT / dialect.verified).exists()
    if dialect.id in SERVERS:
        assert bool(dialect.verified) == bool(_recorded(dialect.id)), dialect.id


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.folder.name)
def test_every_signal_is_read_or_said_to_be_absent(recorded: Recorded) -> None:
    dialect = BY_ID[recorded.dialect]
    given = {expression.signal for expression in dialect.signals}
    assert given - set(_values(recorded)) == {one.signal for one in dialect.unrecorded}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.folder.name)
def test_every_alternative_that_is_there_is_read(recorded: Recorded) -> None:
    """A second expression that its page could answer must not hide behind the first."""
    dialect, pages = BY_ID[recorded.dialect], _pages(recorded)
    unrecorded = {one.signal for one in dialect.unrecorded}
    unread = [
        expression.expr
        for expression in dialect.signals
        if pages.names.issuperset(expression.requires) and expression.signal not in unrecorded
        if _read(recorded, pages, expression) is None
    ]
    assert unread == []


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.folder.name)
def test_one_service_is_found(recorded: Recorded) -> None:
    """Labels of the metric that proves the dialect must not make several services of one."""
    dialect, pages = BY_ID[recorded.dialect], _pages(recorded)
    metric = next(name for name in dialect.detect if name in pages.names)
    (service,) = evaluate_at(pages, parse(service_query(metric, "")), recorded.scrapes[-1][1])
    assert service.get(dialect.model_label) == MODELS[recorded.dialect]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.folder.name)
def test_the_clients_saw_the_same(recorded: Recorded) -> None:
    values = _values(recorded)
    # Ray reports each second, so its pages may be that much older than the moment they were read.
    assert values["request_rate_rps"] == pytest.approx(recorded.rate_of(*COUNTED[recorded.dialect]), rel=0.15)
    # The server's clock stops before the client's does.
    assert values["e2e_mean_ms"] == pytest.approx(recorded.clients("mean_ms"), rel=0.15)
    if "e2e_p50_ms" in values:
        assert values["e2e_p50_ms"] == pytest.approx(recorded.clients("p50_ms"), rel=0.3)
    counted = set(COUNTED[recorded.dialect]) - {"200"}
    assert values["error_ratio"] * values["request_rate_rps"] == pytest.approx(recorded.rate_of(*counted), rel=0.25)
    assert values["e2e_mean_ms"] >= values.get("queue_time_ms", 0.0)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.folder.name)
def test_another_model_has_no_values(recorded: Recorded) -> None:
    if BY_ID[recorded.dialect].model_label:
        assert "e2e_mean_ms" in _values(recorded, MODELS[recorded.dialect])
        assert not {"request_rate_rps", "e2e_mean_ms", "queue_time_ms"} & set(_values(recorded, "another"))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.folder.name)
def test_the_recording_says_how_it_was_made(recorded: Recorded) -> None:
    for name in ("server", "version", "recipe", "date", "load", "settings", "clients"):
        assert recorded.facts[name], name
    assert recorded.folder.name == f"{recorded.facts['server']}-{recorded.facts['version']}"
    assert (ROOT / str(recorded.facts["recipe"]).split()[-1]).is_file()
    assert [name for name, _ in recorded.scrapes] == ["idle.prom", "load-1.prom", "load-2.prom"]
    for path in recorded.folder.iterdir():
        assert path.stat().st_size < LARGEST_BYTES


def test_torchserve_means_are_of_the_answered_requests() -> None:
    """Most were turned away at once: over all of them the mean would be a fraction of what the others waited."""
    (recorded,) = _recorded("torchserve")
    values = _values(recorded)
    latency, all_requests = [one for one in BY_ID["torchserve"].signals if one.signal == "e2e_mean_ms"]
    naive_ms = _read(recorded, _pages(recorded), all_requests)
    assert naive_ms is not None
    assert "Requests2XX" in latency.requires
    assert naive_ms < 0.8 * recorded.clients("mean_ms")
    assert values["error_server_rps"] == pytest.approx(recorded.rate_of("503"), rel=0.1)
    assert values["error_client_rps"] == pytest.approx(recorded.rate_of("404"), rel=0.2)
    assert values["queue_time_ms"] + values["compute_time_ms"] == pytest.approx(values["e2e_mean_ms"])
    assert values["concurrency"] > values["queue_depth"] > 1


def test_torchserve_s_management_api_says_what_the_page_does_not() -> None:
    (recorded,) = _recorded("torchserve")
    (model,) = json.loads((recorded.folder / "describe-load.json").read_text(encoding="utf-8"))
    assert (model["batchSize"], model["maxBatchDelay"], len(model["workers"])) == (4, 50, 1)
    assert model["jobQueueStatus"]["pendingRequests"] > 0


def test_ray_s_batches_are_counted_not_taken_from_its_coarse_sums() -> None:
    """Its agent repeats a histogram at the middle of each bucket: batches of 4 in a bucket of 2 to 4 look like 3."""
    (recorded,) = _recorded("ray_serve")
    counted, summed = [one for one in BY_ID["ray_serve"].signals if one.signal == "batch_size_mean"]
    pages = _pages(recorded)
    coarse = _read(recorded, pages, summed)
    assert coarse == pytest.approx(3.0, abs=0.1)
    assert _read(recorded, pages, counted) == pytest.approx(3.9, abs=0.1)
    assert _values(recorded)["config_max_batch_size"] == 4
    assert _values(recorded)["replica_count"] == 1


def test_kserve_s_failures_are_requests_without_the_last_stage() -> None:
    (recorded,) = _recorded("kserve")
    values = _values(recorded)
    parts_ms = values["preprocess_time_ms"] + values["compute_time_ms"] + values["response_time_ms"]
    assert values["e2e_mean_ms"] == pytest.approx(parts_ms, rel=0.1)
    # Six clients wait for one prediction of 20 ms at a time.
    assert 100 < values["compute_time_ms"] < 180
    assert values["concurrency"] == pytest.approx(6, abs=1)


def test_bentoml_s_batches_and_refusals() -> None:
    (recorded,) = _recorded("bentoml")
    values = _values(recorded)
    assert values["batch_size_mean"] == pytest.approx(4, abs=0.1)
    assert values["error_rejected_rps"] == pytest.approx(recorded.rate_of("429"), rel=0.05)
    assert values["error_server_rps"] == pytest.approx(recorded.rate_of("500"), rel=0.05)
    assert values["error_client_rps"] == 0
    assert 8 < values["concurrency"] <= 10
