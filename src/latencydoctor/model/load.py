"""Offered load and what came of it: the records of a load run, by the time each request *should* have been sent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of steady offered rate. `seconds` None lasts until the run is switched to another phase or stopped."""

    name: str
    rate_rps: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Mix:
    """Who asks what. `hot_share_ratio` of the requests repeat one of `hot_count` popular questions; every other
    request is unique (it carries an order number), so the share that a warm cache answers stays near the hot share.
    """

    hot_share_ratio: float = 0.12
    hot_count: int = 12
    zipf_exponent: float = 1.0
    session_count: int = 3000
    vip_share_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """One load run against the gateway at `url` (its base address; requests go to `/v1/answer` below it).

    A request without a good answer `deadline_ms` after its intended time counts as failed at that deadline. The run
    ends by itself after `bound_s` whole seconds, whatever its phases say. The same `seed` gives the same arrivals and
    the same questions, order numbers aside.
    """

    url: str
    phases: tuple[Phase, ...]
    questions: tuple[str, ...]
    seed: int = 1
    deadline_ms: float = 5000.0
    bound_s: int = 600
    mix: Mix = Mix()


@dataclass(frozen=True, slots=True)
class PhaseStart:
    """When a phase really began, seconds since the epoch."""

    name: str
    start_s: float


@dataclass(frozen=True, slots=True)
class ClassStats:
    """The requests of one priority in a window.

    `shed_count` were turned away with 503 and the time to come back (Retry-After); `failed_count` failed in any other
    way. Percentiles are nearest-rank over those that were not shed, failed ones at the deadline; None without any.
    """

    offered_count: int
    answered_count: int
    shed_count: int
    failed_count: int
    p50_ms: float | None
    p99_ms: float | None

    @property
    def shed_ratio(self) -> float:
        """The share that was turned away."""
        return self.shed_count / self.offered_count if self.offered_count else 0.0


@dataclass(frozen=True, slots=True)
class WindowStats:
    """The requests intended in a window (`start_s` excluded, `end_s` included), latency from the intended time.

    Percentiles are nearest-rank over *all* of them, failed ones at the deadline; None without requests. `hit_ratio` is
    cache hits over answered requests, None without answers. `late_*` is how late the generator itself was in sending:
    figures from a late generator are not to be trusted. `settled` False means some requests are still in flight.
    `vip` and `standard` are those of each priority, None where no VIP request was sent.
    """

    start_s: float
    end_s: float
    settled: bool
    offered_count: int
    answered_count: int
    failed_count: int
    offered_rps: float
    answered_rps: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    error_ratio: float | None
    hit_ratio: float | None
    late_p99_ms: float | None
    late_max_ms: float | None
    vip: ClassStats | None = None
    standard: ClassStats | None = None
