"""What clients send: when, asking for what, how large."""

from __future__ import annotations

import math
from bisect import bisect
from itertools import accumulate
from random import Random

from benchmarks.faults.simulator.knobs import Knobs

UNIQUE_KEYS = 1_000_000_000
HOT_KEYS = 500_000_000


class Request:
    """One try at a server. `first_s` is when the client sent it, `sent_s` when the proxy sent this try."""

    # Most requests never change these, and making one is a good part of the simulation's time.
    replica = shape = cached = tries = adapter = prompt = output = hit_tokens = 0
    connect_ms, cache_ms, scale = -1.0, 0.0, 1.0
    done = dead = wrong = False

    def __init__(self, first_s: float, key: int) -> None:
        self.first_s = self.sent_s = self.entered_s = self.core_s = first_s
        self.key = key

    def again(self, time_s: float) -> Request:
        """The same question, sent once more."""
        other = Request(self.first_s, self.key)
        other.sent_s, other.tries, other.shape, other.scale = time_s, self.tries + 1, self.shape, self.scale
        other.prompt, other.output, other.wrong, other.adapter = self.prompt, self.output, self.wrong, self.adapter
        other.hit_tokens = self.hit_tokens
        return other


class Traffic:
    """An endless stream of requests, whose rate and content follow the knobs."""

    def __init__(self, knobs: Knobs, random: Random, start_s: float) -> None:
        self.knobs, self._random = knobs, random
        self._next_s = start_s
        self._left_in_burst = 0
        self._phase = random.uniform(0, 2 * math.pi)
        self._period_s = random.uniform(2400, 5400)
        self._serial = 0
        self._weights: list[float] = []
        self._rate = 1.0
        self.begin(start_s)

    def _popularity(self, keys: int) -> None:
        """Zipf's law: the k-th most popular input is asked for as often as 1/k^0.8."""
        if len(self._weights) != keys:
            self._weights = list(accumulate(1 / (rank + 1) ** 0.8 for rank in range(max(1, keys))))

    def begin(self, time_s: float) -> None:
        """Set the rate, in bursts per second, and the popularity of inputs for the second that begins."""
        swing = 1 + self.knobs.load_diurnal_ratio * math.sin(self._phase + 2 * math.pi * time_s / self._period_s)
        self._rate = max(1e-3, self.knobs.load_rps * swing / max(1.0, self.knobs.load_burst_size))
        self._popularity(int(self.knobs.load_key_count))

    @property
    def next_s(self) -> float:
        """When the next request comes."""
        return self._next_s

    def take(self) -> Request:
        """The next request; the one after it is set up."""
        time_s = self._next_s
        if self._left_in_burst > 0:
            self._left_in_burst -= 1
        else:
            size = self.knobs.load_burst_size
            self._left_in_burst = 0 if size <= 1 else int(self._random.expovariate(1 / size))
        if self._left_in_burst > 0:
            self._next_s += self._random.uniform(0, 0.004)
        else:
            self._next_s += self._random.expovariate(self._rate)
        return self._made(time_s)

    def _made(self, time_s: float) -> Request:
        knobs, random = self.knobs, self._random
        request = Request(time_s, self._key(time_s))
        request.scale = knobs.load_input_scale * random.uniform(0.8, 1.2)
        if knobs.load_shape_kinds > 1:
            request.shape = random.randrange(int(knobs.load_shape_kinds))
        request.wrong = random.random() < knobs.load_invalid_ratio
        if knobs.load_adapters > 1:
            request.adapter = random.randrange(int(knobs.load_adapters))
        return request

    def _key(self, time_s: float) -> int:
        knobs, random = self.knobs, self._random
        draw = random.random()
        if draw < knobs.load_hot_share:
            return HOT_KEYS + int(time_s / knobs.load_hot_rotation_s)
        if random.random() < knobs.load_unique_share:
            self._serial += 1
            return UNIQUE_KEYS + self._serial
        return bisect(self._weights, random.random() * self._weights[-1])

    def with_tokens(self, request: Request) -> Request:
        """Give a request to a language model its lengths."""
        knobs, random = self.knobs, self._random
        long = random.random() < knobs.load_long_prompt_share
        mean = knobs.load_long_prompt_tokens if long else knobs.load_prompt_tokens
        request.prompt = max(4, int(random.gammavariate(12, mean / 12)))
        request.output = max(2, int(random.gammavariate(14, knobs.load_output_tokens / 14)))
        if knobs.llm_prefix_cache and not long:
            request.hit_tokens = int(request.prompt * min(0.95, knobs.load_shared_prefix_share)) // 16 * 16
        return request
