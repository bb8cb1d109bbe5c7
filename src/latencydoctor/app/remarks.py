"""What a diagnosis says of the batcher's settings beside the cause, where some source tells them."""

from __future__ import annotations

from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Evidence
from latencydoctor.model.remark import Remark
from latencydoctor.remedy.batching_lint import Around, Batcher, lint

_CONFIG = ("config_dynamic_batching", "config_preferred_batch_size", "config_max_batch_size", "config_queue_delay_ms")
_OFF_BELOW = 0.5


def remarks_on(evidence: Evidence, slo: Slo) -> tuple[Remark, ...]:
    """Remarks on the settings in effect; none where no source tells them all, as only Triton's configuration does."""
    now = {measure.signal: measure.value for measure in evidence.measures}
    if any(name not in now for name in _CONFIG):
        return ()
    enabled, preferred, maximum, wait_ms = (now[name] for name in _CONFIG)
    # Triton tells an empty list of preferred sizes as the maximum alone, and so it cannot be told from one.
    sizes = (round(preferred),) if preferred > 0 else ()
    batcher = Batcher(enabled >= _OFF_BELOW, sizes, round(maximum), wait_ms)
    rate = now.get("request_rate_rps")
    if rate is not None:
        rate *= (1 - now.get("cache_hit_ratio", 0.0)) / max(1.0, now.get("replica_count", 1.0))
    return lint(batcher, Around(slo.p99_ms, arrival_rps=rate))
