"""Service time by batch size: fitted from Triton's executions by size, or split out of live rates alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from latencydoctor.forecast.beyond import FLAT_RATIO, Beyond, curvature_ms

NEEDED = ("compute_time_ms", "batch_size_mean", "execution_rate_eps", "accelerator_busy_ratio")
"""The signals a calibration from rates needs, all from the same window."""

LARGEST = "config_max_batch_size"
"""With it a calibration from rates knows that nothing larger was executed."""

DISAGREEMENT_LIMIT = 1.15
"""How far the device's busy time may exceed the execution's own time before the two are not believed."""

RATES_ERROR_RATIO = 0.05
"""Standard error of a curve from rates: means over a window, of batches of unlike sizes."""

LEAST_ERROR_RATIO = 0.01
"""No curve is better known than this: times drift between the run that was fitted and the one that is predicted."""

LEAST_EXECUTIONS = 20
"""Fewer executions say nothing of how times scatter."""

OUTLIER_DEVIATIONS = 2.0
"""A mean further from the line than so many usual ones loses weight: a first execution warms up."""

BENT_RATIO = 0.05
"""A line that misses the means by more than this, weighted, is given up for the means themselves."""

_ROUNDS = 12

_LEAST_MS = 1e-9


@dataclass(frozen=True, slots=True)
class BatchTime:
    """Executions of one batch size: how many there were, and what they took on average, ms."""

    size: int
    executions: int
    mean_ms: float


@dataclass(frozen=True, slots=True)
class ServiceCurve:
    """One execution takes `host_ms`, whatever its size, plus `item_ms` for each request in it.

    Where measured times bend, `knots` (size, ms) hold them and the line only continues beyond the last. `error_ratio`
    is the standard error where times were measured (sizes around `centre`), `slope_error_ms` that of `item_ms`.
    `beyond` says up to which size that was, None where the times are given, and `bend` how many standard deviations
    larger batches are from what the line says of them.
    """

    host_ms: float
    item_ms: float
    error_ratio: float = RATES_ERROR_RATIO
    slope_error_ms: float = 0.0
    centre: float = 0.0
    knots: tuple[tuple[int, float], ...] = ()
    beyond: Beyond | None = None
    bend: float = 0.0

    def batch_ms(self, size: float) -> float:
        """How long an execution of this many requests takes."""
        line_ms = self._line_ms(size)
        if self.beyond is None or not self.bend:
            return line_ms
        return self.beyond.likely_ms(size, line_ms, self._line_ms(self.beyond.largest), self.bend)

    def unseen(self, largest: int) -> str:
        """Words to append on batches up to this size that were never seen; empty where all were."""
        if self.beyond is None or largest <= self.beyond.largest:
            return ""
        return self.beyond.words

    def reach(self, size: float) -> tuple[float, float]:
        """The times that 95 % of likely curves lie between at this size, as factors of what this one says.

        The line's standard error at a size is that of its level and that of its slope, times the distance from the
        centre (Draper and Smith, "Applied Regression Analysis", 3rd ed. 1998, section 3.1), added up here; beyond the
        largest size that was seen comes how the curve may go on.
        """
        line_ms = self._line_ms(size)
        error = self.error_ratio + abs(self.slope_error_ms * (size - self.centre) / max(line_ms, _LEAST_MS))
        reach = min(0.9, 2 * error)
        if self.beyond is None or line_ms <= 0:
            return 1 - reach, 1 + reach
        best_ms, worst_ms = self.beyond.edges_ms(size, line_ms, self._line_ms(self.beyond.largest))
        return (1 - reach) * (best_ms / line_ms), (1 + reach) * (worst_ms / line_ms)

    def _line_ms(self, size: float) -> float:
        if not self.knots:
            return self.host_ms + self.item_ms * size
        if size <= self.knots[0][0] or len(self.knots) == 1:
            smallest, took_ms = self.knots[0]
            # Fewer take less by their share at most: how steep large batches are says nothing of small ones.
            return took_ms - min(self.item_ms, took_ms / smallest) * (smallest - size)
        for (left, left_ms), (right, right_ms) in pairwise(self.knots):
            if size <= right:
                return left_ms + (right_ms - left_ms) * (size - left) / (right - left)
        return self.knots[-1][1] + self.item_ms * (size - self.knots[-1][0])

    def scaled(self, factor: float) -> ServiceCurve:
        """The same curve, everything this many times slower."""
        return replace(
            self,
            host_ms=self.host_ms * factor,
            item_ms=self.item_ms * factor,
            slope_error_ms=self.slope_error_ms * factor,
            knots=tuple((size, took_ms * factor) for size, took_ms in self.knots),
            beyond=self.beyond and replace(self.beyond, curvature_ms=self.beyond.curvature_ms * factor),
        )

    def shifted(self, level: float, slope: float, bend: float = 0.0) -> ServiceCurve:
        """A curve that is as likely: so many standard errors slower, so many steeper around `centre`, and so many
        deviations slower where no batch was seen."""
        tilt_ms = slope * self.slope_error_ms
        item_ms = max(0.0, self.item_ms + tilt_ms)
        tilt_ms = item_ms - self.item_ms
        tilted = replace(
            self,
            host_ms=max(0.0, self.host_ms - tilt_ms * self.centre),
            item_ms=item_ms,
            knots=tuple((size, max(0.1 * took, took + tilt_ms * (size - self.centre))) for size, took in self.knots),
            bend=bend,
        )
        return tilted.scaled(max(0.1, 1 + level * self.error_ratio))

    def table_ms(self, largest: int) -> list[float]:
        """Times by size from 0 to `largest`."""
        return [self.batch_ms(size) for size in range(largest + 1)]


def calibrate(measured: Mapping[str, float]) -> ServiceCurve | str:
    """The curve behind these rates, or why it cannot be told.

    An execution's time is split by the device's own busy time: what the device works is taken as growing with the
    number of requests, the rest (launching, copying, waiting on the host) as the same for any batch. A device that
    works better on larger batches does better than this says, so the curve errs on the safe side.
    """
    missing = [name for name in NEEDED if name not in measured]
    if missing:
        return f"not measured: {', '.join(missing)}"
    execution_ms, size, rate, busy = (measured[name] for name in NEEDED)
    if execution_ms <= 0 or size < 1 or rate <= 0 or busy <= 0:
        return "the server executed nothing that could be measured"
    device_ms = busy / rate * 1000
    if device_ms > execution_ms * DISAGREEMENT_LIMIT:
        return f"the device was busy {device_ms:.1f} ms an execution, which itself took {execution_ms:.1f} ms"
    item_ms = min(device_ms, execution_ms) / size
    return ServiceCurve(
        max(0.0, execution_ms - device_ms),
        item_ms,
        # The device's share is known as badly as its utilisation is, and everything away from this size follows it.
        # Beside the mean there were batches of up to about twice its size, as far as the settings in effect allow them.
        slope_error_ms=item_ms * 2 * RATES_ERROR_RATIO,
        centre=size,
        beyond=Beyond(1, max(size, min(2 * size, measured.get(LARGEST, size))), counted=False),
    )


def fit(times: Sequence[BatchTime]) -> ServiceCurve | str:
    """The curve behind executions by batch size, or why it cannot be told.

    A line, robust against a few odd means; where the means bend away from any line, the means themselves, made
    monotone. Standard errors come from how the means scatter about the curve.
    """
    held = _by_size(item for item in times if item.executions > 0 and item.mean_ms > _LEAST_MS)
    executions = sum(item.executions for item in held)
    if executions < LEAST_EXECUTIONS:
        return f"{executions} executions are too few to tell what one takes"
    if len(held) < 2:
        return f"all executions were of {held[0].size}: how their time grows with the batch cannot be told"
    weights = [float(item.executions) for item in held]
    host_ms, item_ms = _line(held, weights)
    for _ in range(_ROUNDS):
        weights = _reweighted(held, host_ms, item_ms)
        host_ms, item_ms = _line(held, weights)
    points = [(item.size, item.mean_ms, item.executions) for item in held]
    smallest, largest = held[0].size, held[-1].size
    flat = item_ms * (largest - smallest) < FLAT_RATIO * (host_ms + item_ms * largest)
    seen = Beyond(smallest, largest, curvature_ms(points), flat)
    curve = _with_errors(held, weights, ServiceCurve(host_ms, item_ms, beyond=seen))
    return _bent(held, curve) if _misses(held, weights, curve) > BENT_RATIO and len(held) > 3 else curve


def _by_size(times: Iterable[BatchTime]) -> list[BatchTime]:
    """Ascending, and several means of one size as one."""
    by_size: dict[int, list[BatchTime]] = {}
    for item in times:
        by_size.setdefault(item.size, []).append(item)
    return [
        pool[0] if len(pool) == 1 else BatchTime(size, sum(item.executions for item in pool), _mean(pool))
        for size, pool in sorted(by_size.items())
    ]


def _line(held: Sequence[BatchTime], weights: Sequence[float]) -> tuple[float, float]:
    """Weighted least squares with neither part below zero."""
    total = sum(weights)
    size = sum(weight * item.size for weight, item in zip(weights, held, strict=True)) / total
    took = sum(weight * item.mean_ms for weight, item in zip(weights, held, strict=True)) / total
    spread = sum(weight * (item.size - size) ** 2 for weight, item in zip(weights, held, strict=True))
    together = sum(
        weight * (item.size - size) * (item.mean_ms - took) for weight, item in zip(weights, held, strict=True)
    )
    item_ms = max(0.0, together / spread) if spread > 0 else 0.0
    item_ms = min(item_ms, took / size)
    return took - item_ms * size, item_ms


def _reweighted(held: Sequence[BatchTime], host_ms: float, item_ms: float) -> list[float]:
    """Huber's weights: a mean counts by its executions, and less the further it is out."""
    scores = [abs(item.mean_ms - host_ms - item_ms * item.size) * math.sqrt(min(item.executions, 50)) for item in held]
    usual = _weighted_median(scores, [item.executions for item in held]) * 1.4826
    limit = max(usual * OUTLIER_DEVIATIONS, 1e-9)
    return [item.executions * min(1.0, limit / max(score, 1e-12)) for item, score in zip(held, scores, strict=True)]


def _weighted_median(values: Sequence[float], counts: Sequence[int]) -> float:
    half = sum(counts) / 2
    reached = 0.0
    for value, count in sorted(zip(values, counts, strict=True)):
        reached += count
        if reached >= half:
            return value
    return 0.0


def _misses(held: Sequence[BatchTime], weights: Sequence[float], curve: ServiceCurve) -> float:
    """Root of the mean square of relative misses."""
    squares = [
        weight * ((item.mean_ms - curve.batch_ms(item.size)) / item.mean_ms) ** 2
        for weight, item in zip(weights, held, strict=True)
    ]
    return math.sqrt(sum(squares) / sum(weights))


def _with_errors(held: Sequence[BatchTime], weights: Sequence[float], curve: ServiceCurve) -> ServiceCurve:
    total = sum(weights)
    centre = sum(weight * item.size for weight, item in zip(weights, held, strict=True)) / total
    spread = sum(weight * (item.size - centre) ** 2 for weight, item in zip(weights, held, strict=True))
    squares = sum(
        weight * (item.mean_ms - curve.batch_ms(item.size)) ** 2 for weight, item in zip(weights, held, strict=True)
    )
    noise_ms2 = squares / max(1, len(held) - 2)
    level = math.sqrt(noise_ms2 / total) / max(curve.batch_ms(centre), 1e-9)
    slope_ms = math.sqrt(noise_ms2 / spread) if spread > 0 else 0.0
    return replace(curve, error_ratio=max(level, LEAST_ERROR_RATIO), slope_error_ms=slope_ms, centre=centre)


def _bent(held: Sequence[BatchTime], line: ServiceCurve) -> ServiceCurve:
    """Means made monotone by pooling neighbours that are out of order; beyond the last, the upper half's slope."""
    pools: list[list[BatchTime]] = []
    for item in held:
        pools.append([item])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    knots = [(item.size, _mean(pool)) for pool in pools for item in pool]
    upper = knots[len(knots) // 2 :]
    rise = (upper[-1][1] - upper[0][1]) / max(1, upper[-1][0] - upper[0][0])
    slope_ms = max(rise, 0.0)
    return replace(line, host_ms=max(0.0, knots[0][1] - slope_ms), item_ms=slope_ms, knots=tuple(knots))


def _mean(pool: Sequence[BatchTime]) -> float:
    return sum(item.executions * item.mean_ms for item in pool) / sum(item.executions for item in pool)
