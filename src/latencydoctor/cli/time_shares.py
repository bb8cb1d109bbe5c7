"""How the time of one diagnosis is shared out: sources are read one after the other, and all must end by the deadline.

    metrics  what the others do not keep back: at least 58 %, and of the usual 20 s, with logs beside, 18 s
    facts    3 s for each server that is asked, a quarter of the whole at most
    logs     2 s, a sixth of the whole at most, and all that those before them left over

Metrics pages are read for as long as their share lasts; of it they keep `RESERVE_S` back for what is computed from them
(`sources/pages_schedule.py`). A Prometheus usually needs a second, so that logs have most of the time then.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from latencydoctor.model.configuration import Configuration

FACTS_S = 3.0
MOST_FOR_FACTS = 1 / 4
LOGS_S = 2.0
MOST_FOR_LOGS = 1 / 6


@dataclass(frozen=True, slots=True)
class Shares:
    """Seconds for the metrics and for each server asked for facts; logs are read until `logs_end_s` (monotonic)."""

    metrics_s: float
    facts_each_s: float
    logs_end_s: float
    metrics_ratio: float
    """The metrics' part of the whole; of a longer deadline they have at least the same."""


def share_out(configuration: Configuration, deadline_s: float, *, live: bool) -> Shares:
    """The shares of a diagnosis that begins now; facts are of now as well, so only a `live` one asks for them."""
    # This machine's own devices take no time, unless their driver hangs (`sources/nvml.py`).
    asked = bool(configuration.triton_grpc) + (configuration.torchserve is not None) if live else 0
    facts_s = min(FACTS_S * asked, MOST_FOR_FACTS * deadline_s)
    logs_s = min(LOGS_S, MOST_FOR_LOGS * deadline_s) if configuration.logs else 0.0
    metrics_s = deadline_s - facts_s - logs_s
    return Shares(metrics_s, facts_s / max(asked, 1), time.monotonic() + deadline_s, metrics_s / deadline_s)
