"""What dialects say of metrics that cannot be recorded here: arithmetic, units and joins on pages made by hand.

These pages prove nothing about the servers' names; the dialects say that they are unverified.
"""

from __future__ import annotations

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.promql import evaluate_at
from latencydoctor.evidence.promql.recording import Recording
from latencydoctor.evidence.promql.syntax import parse
from latencydoctor.evidence.queries import render
from latencydoctor.model.evidence import Selection
from latencydoctor.model.rule import Dialect

BY_ID = {dialect.id: dialect for dialect in read_signals(locate())[1]}


def _of_page(dialect: str, page: str, model: str, *, later: str = "") -> dict[str, float]:
    """Signals of a page made by hand, for what cannot be recorded here; `later` is the page ten seconds on."""
    pages = Recording()
    pages.add_page(0, "a", page)
    pages.add_page(10, "a", later or page)
    found: dict[str, float] = {}
    for one in BY_ID[dialect].signals:
        if pages.names.issuperset(one.requires):
            query = render(one, Selection(model), 11.0, BY_ID[dialect].model_label)
            for element in evaluate_at(pages, parse(query), 10.0):
                found.setdefault(one.signal, element.value)
    return found


QUEUE_PROXY = """\
request_predict_seconds_count{model_name="tiny",namespace="n",pod="a"} %d
request_count{response_code_class="2xx",namespace="n",pod="a"} %d
request_count{response_code_class="5xx",namespace="n",pod="a"} %d
request_count{response_code_class="5xx",namespace="n",pod="b"} %d
request_latencies_bucket{le="10",namespace="n",pod="a"} %d
request_latencies_bucket{le="+Inf",namespace="n",pod="a"} %d
"""


def test_kserve_s_queue_proxy_is_the_one_of_the_model_s_pods() -> None:
    """Its metric names are anybody's: another pod's must not count."""
    late = QUEUE_PROXY % (100, 90, 10, 500, 100, 100)
    found = _of_page("kserve", QUEUE_PROXY % (0, 0, 0, 0, 0, 0), "tiny", later=late)
    assert found["error_server_rps"] == pytest.approx(1.0, rel=0.1)
    assert found["error_client_rps"] == 0.0
    assert found["e2e_p99_ms"] == pytest.approx(9.9)


GPUS = """\
ts_inference_requests_total{model_name="tiny",model_version="default",hostname="one"} 5
ts_inference_requests_total{model_name="another",model_version="default",hostname="two"} 5
GPUUtilization{Level="Host",DeviceId="0",Hostname="one"} 80
GPUUtilization{Level="Host",DeviceId="1",Hostname="one"} 40
GPUUtilization{Level="Host",DeviceId="0",Hostname="two"} 0
GPUMemoryUsed{Level="Host",DeviceId="0",Hostname="one"} 2048
GPUMemoryUsed{Level="Host",DeviceId="0",Hostname="two"} 512
GPUMemoryUtilization{Level="Host",DeviceId="0",Hostname="one"} 25
GPUMemoryUtilization{Level="Host",DeviceId="0",Hostname="two"} 50
"""


def test_torchserve_s_gpus_are_those_of_the_model_s_hosts() -> None:
    found = _of_page("torchserve", GPUS, "tiny")
    assert found["accelerator_busy_ratio"] == pytest.approx(0.6)
    assert found["accelerator_memory_used_bytes"] == 2048 * 1024**2
    assert found["accelerator_memory_total_bytes"] == 8192 * 1024**2
    assert _of_page("torchserve", GPUS, "another")["accelerator_busy_ratio"] == 0.0


def _made_up(dialect: Dialect, count: int) -> str:
    """A page with every metric of a dialect, all of whose counters stand at `count`: half of a bucket below 1."""
    label = f'{dialect.model_label}="m",' if dialect.model_label else ""
    lines = []
    for name in sorted({name for one in dialect.signals for name in one.requires}):
        if name.endswith("_bucket"):
            lines += [f'{name}{{{label}le="1"}} {count / 2}', f'{name}{{{label}le="+Inf"}} {count}']
        else:
            lines.append(f"{name}{{{label}}} {count}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["sglang", "tgi"])
def test_every_expression_of_an_unrecorded_dialect_gives_one_value_in_its_unit(name: str) -> None:
    """Sums and counts that grow alike make a mean of one second, which is 1000 ms."""
    dialect = BY_ID[name]
    found = _of_page(name, _made_up(dialect, 0), "m", later=_made_up(dialect, 100))
    of_several = {"replica_imbalance_ratio", "slowest_replica_ratio"}
    assert set(found) == {one.signal for one in dialect.signals} - of_several
    means_ms = [signal for signal in found if signal.endswith(("_time_ms", "_mean_ms")) and "load" not in signal]
    assert {signal: found[signal] for signal in means_ms} == {signal: pytest.approx(1000.0) for signal in means_ms}
    assert found["request_rate_rps"] == pytest.approx(10.0, rel=0.11)
    assert found["process_resets"] == 0.0
    assert found["e2e_p99_ms"] == 1000.0
