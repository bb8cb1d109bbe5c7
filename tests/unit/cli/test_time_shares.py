"""How a diagnosis's time is shared out."""

from __future__ import annotations

import time

import pytest

from latencydoctor.cli.time_shares import share_out
from latencydoctor.model.configuration import Configuration, TorchServeSource

TORCHSERVE = TorchServeSource("http://h:8081")


@pytest.mark.parametrize(
    ("configuration", "deadline_s", "metrics_s", "each_s"),
    [
        (Configuration(), 20.0, 20.0, 0.0),
        (Configuration(logs=("a.log",)), 20.0, 18.0, 0.0),
        (Configuration(logs=("a.log",)), 300.0, 298.0, 0.0),
        (Configuration(triton_grpc="h:8001"), 20.0, 17.0, 3.0),
        (Configuration(triton_grpc="h:8001", torchserve=TORCHSERVE), 20.0, 15.0, 2.5),
        (Configuration(triton_grpc="h:8001", torchserve=TORCHSERVE, logs=("a.log",)), 6.0, 3.5, 0.75),
    ],
)
def test_metrics_keep_most_of_it(
    configuration: Configuration, deadline_s: float, metrics_s: float, each_s: float
) -> None:
    shares = share_out(configuration, deadline_s, live=True)
    assert shares.metrics_s == pytest.approx(metrics_s)
    assert shares.facts_each_s == pytest.approx(each_s)
    assert shares.metrics_ratio == pytest.approx(metrics_s / deadline_s)
    assert shares.logs_end_s == pytest.approx(time.monotonic() + deadline_s, abs=0.5)


def test_a_look_at_the_past_asks_for_no_facts() -> None:
    shares = share_out(Configuration(triton_grpc="h:8001", torchserve=TORCHSERVE), 20.0, live=False)
    assert (shares.metrics_s, shares.facts_each_s) == (20.0, 0.0)
