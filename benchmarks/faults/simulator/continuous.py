"""A language model's server: an API process of one thread, and an engine that batches anew at every step.

Steps between two events (a request comes, ends, or memory runs out) are alike, so they are taken as one stretch, which
a coming request cuts short at the end of the step that runs.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.faults.simulator.traffic import Request

if TYPE_CHECKING:
    from benchmarks.faults.simulator.plant import Plant
    from benchmarks.faults.simulator.replica import Replica

STOP, LENGTH, ABORT, ERROR = range(4)
FULL_SEQUENCES = 30.0
"""Running requests that fill the GPU's SMs while decoding."""


LONGEST_STRETCH = 40


class Sequence:
    """A request in the engine. `made` counts its tokens so far; it is finished when the decode count is `ends_at`."""

    __slots__ = (
        "booked", "ends_at", "first_s", "made", "prefill_from_s", "queued_s", "request", "running", "scheduled_s",
        "started_at", "to_prefill",
    )  # fmt: skip

    def __init__(self, request: Request, time_s: float) -> None:
        self.request = request
        self.queued_s = time_s
        self.scheduled_s = self.first_s = self.prefill_from_s = -1e9
        self.made = self.booked = self.to_prefill = self.ends_at = self.started_at = 0
        self.running = False


class LlmServer:
    """Requests come in by `receive`, leave through the plant's front."""

    def __init__(self, plant: Plant, replica: Replica) -> None:
        self._plant, self._replica, self.knobs = plant, replica, replica.knobs
        self._waiting: deque[Sequence] = deque()
        self._prefilling: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._ends: list[tuple[int, int, Sequence]] = []
        self._decoded = self._serial = self._version = 0
        self._held_tokens = 0
        self._api_free_s = -math.inf
        self._stretch: tuple[float, float, int, int] | None = None
        self._deferred = 0

    # ---- in ----------------------------------------------------------------------------------------------------
    def receive(self, time_s: float, request: Request) -> None:
        """A request reaches the API process, which reads, checks and tokenises it."""
        self._plant.log.received.add((time_s, self._replica.index))
        work_s = self.knobs.llm_api_request_ms / 1000 * self._replica.host.slowness
        self._api_free_s = max(self._api_free_s, time_s) + work_s * self._plant.random.uniform(0.7, 1.4)
        self._plant.at(self._api_free_s, self._queue, request, self._replica.generation)

    def _queue(self, time_s: float, request: Request, generation: int) -> None:
        if generation != self._replica.generation:
            self._plant.front.answered(time_s, request, 502)
            return
        if request.dead:
            return
        self._waiting.append(Sequence(request, time_s))
        if self._stretch is None:
            self._step(time_s)
        elif self._could_admit(self._waiting[0]):
            self._cut_short(time_s)

    def _could_admit(self, sequence: Sequence) -> bool:
        inside = len(self._running) + len(self._prefilling)
        if inside and self._held_tokens + self._needed(sequence) > self.knobs.llm_kv_tokens:
            return False
        return inside < self.knobs.llm_max_seqs

    @staticmethod
    def _needed(sequence: Sequence) -> int:
        """Tokens to work through and to keep: the shared prefix is there already."""
        return sequence.request.prompt - sequence.request.hit_tokens + sequence.made

    def _cut_short(self, time_s: float) -> None:
        """End the stretch with the step that runs now."""
        if self._stretch is None:
            return
        start_s, step_s, steps, prefilled = self._stretch
        done = min(steps, max(1, math.ceil((time_s - start_s) / step_s)))
        if done < steps:
            self._version += 1
            self._replica.device.give_back((steps - done) / steps)
            self._stretch = (start_s, step_s, done, prefilled)
            self._plant.at(start_s + done * step_s, self._stepped, self._version)

    # ---- steps -------------------------------------------------------------------------------------------------
    def _step(self, time_s: float) -> None:
        """Decide what the next steps hold and start them."""
        self._admit(time_s)
        if not self._running and not self._prefilling:
            self._stretch = None
            return
        prefill = min(int(self.knobs.llm_step_tokens), sum(held.to_prefill for held in self._prefilling))
        steps = 1 if prefill else self._steps_ahead(time_s)
        step_s = self._step_time(time_s, prefill, steps)
        self._stretch = (time_s, step_s, steps, prefill)
        self._version += 1
        self._plant.at(time_s + steps * step_s, self._stepped, self._version)

    def _admit(self, time_s: float) -> None:
        if not self._waiting:
            return
        active = {held.request.adapter for held in (*self._running, *self._prefilling)}
        passed: list[Sequence] = []
        while self._waiting and self._could_admit(self._waiting[0]):
            sequence = self._waiting.popleft()
            adapter = sequence.request.adapter
            if adapter not in active and len(active) >= self.knobs.llm_lora_slots:
                passed.append(sequence)
                continue
            active.add(adapter)
            sequence.scheduled_s = time_s
            if sequence.first_s < -1e8:
                sequence.prefill_from_s = time_s
            sequence.booked = sequence.to_prefill = max(1, self._needed(sequence))
            self._held_tokens += sequence.booked
            self._prefilling.append(sequence)
        self._waiting.extendleft(reversed(passed))
        self._deferred = len(passed)

    def _steps_ahead(self, time_s: float) -> int:
        """Decode steps until the first request ends or the KV cache is full; preempts where it is."""
        while True:
            room = int((self.knobs.llm_kv_tokens - self._held_tokens) // max(1, len(self._running)))
            if room >= 1 or len(self._running) == 1:
                break
            self._preempt(time_s)
        while self._ends and not self._ends[0][2].running:
            heapq.heappop(self._ends)
        return max(1, min(room, self._ends[0][0] - self._decoded, LONGEST_STRETCH))

    def _preempt(self, time_s: float) -> None:
        """The request that was admitted last gives up its cache and will be worked through again."""
        sequence = self._running.pop()
        self._drop(sequence)
        self._plant.log.preemptions.add((time_s, self._replica.index))
        self._waiting.appendleft(sequence)

    def _drop(self, sequence: Sequence) -> None:
        """Take a running sequence's tokens off the books."""
        sequence.running = False
        made = self._decoded - sequence.started_at
        sequence.made += made
        self._held_tokens -= sequence.booked + made

    def _step_time(self, time_s: float, prefill: int, steps: int) -> float:
        knobs, replica = self.knobs, self._replica
        count = len(self._running)
        decode_ms = knobs.llm_seq_ms * count
        work_ms = knobs.llm_step_ms + decode_ms + knobs.llm_prefill_ms * knobs.load_input_scale * prefill
        fill = min(1.0, 0.12 + 0.88 * count / FULL_SEQUENCES)
        fill = fill + (1 - fill) * 0.9 * (knobs.llm_prefill_ms * prefill) / work_ms
        seconds = replica.device.run(time_s, work_ms * replica.slowdown(time_s) * steps, fill)
        host_ms = knobs.llm_host_ms * replica.host.slowness
        replica.host.charge(knobs.llm_host_ms * steps)
        return seconds / steps + host_ms / 1000

    def _stepped(self, time_s: float, version: int) -> None:
        if version != self._version or self._stretch is None:
            return
        _, step_s, steps, prefill = self._stretch
        count = len(self._running)
        row = (time_s, self._replica.index, step_s, count + prefill, count, steps)
        self._plant.log.steps.add(row)
        token_s = self.knobs.llm_api_token_ms / 1000 * self._replica.host.slowness
        self._api_free_s = max(self._api_free_s, time_s) + token_s * count * steps
        self._decoded += steps
        self._held_tokens += count * steps
        self._finish(time_s)
        self._prefilled(time_s, prefill)
        self._step(time_s)

    def _finish(self, time_s: float) -> None:
        while self._ends and self._ends[0][0] <= self._decoded:
            _, _, sequence = heapq.heappop(self._ends)
            if sequence.running and sequence.ends_at <= self._decoded:
                self._running.remove(sequence)
                self._drop(sequence)
                self._leave(time_s, sequence)

    def _prefilled(self, time_s: float, tokens: int) -> None:
        while self._prefilling and tokens > 0:
            sequence = self._prefilling[0]
            taken = min(tokens, sequence.to_prefill)
            tokens -= taken
            sequence.to_prefill -= taken
            if sequence.to_prefill:
                return
            self._prefilling.popleft()
            self._start_decoding(time_s, sequence)

    def _start_decoding(self, time_s: float, sequence: Sequence) -> None:
        """A worked-through prompt gives a token at once."""
        sequence.made += 1
        sequence.started_at = self._decoded
        if sequence.first_s < -1e8:
            sequence.first_s = time_s
            shown_s = max(time_s, self._api_free_s) - sequence.request.entered_s
            self._plant.log.first_tokens.add((time_s, self._replica.index, shown_s))
        left = sequence.request.output - sequence.made
        if left <= 0 or sequence.request.dead:
            self._drop(sequence)
            self._leave(time_s, sequence)
            return
        sequence.running = True
        sequence.ends_at = self._decoded + left
        self._running.append(sequence)
        self._serial += 1
        heapq.heappush(self._ends, (sequence.ends_at, self._serial, sequence))

    # ---- out ---------------------------------------------------------------------------------------------------
    def _leave(self, time_s: float, sequence: Sequence) -> None:
        """The last token is there; the API process hands it on when it has come to it."""
        request, replica = sequence.request, self._replica
        end_s = max(time_s, self._api_free_s)
        reason = ABORT if request.dead else STOP if self._plant.random.random() < 0.7 else LENGTH
        if not request.dead and replica.execution_fails():
            reason = ERROR
        row = (
            end_s, replica.index, reason, end_s - request.entered_s, sequence.scheduled_s - sequence.queued_s,
            sequence.first_s - sequence.prefill_from_s, time_s - sequence.first_s, request.prompt, sequence.made,
            request.hit_tokens,
        )  # fmt: skip
        self._plant.log.generated.add(row)
        if reason == ERROR:
            self._plant.log.failed.add((end_s, replica.index, 2))
        self._plant.front.answered(end_s, request, 500 if reason == ERROR else 200)

    def cancel(self, time_s: float, request: Request) -> None:
        """The client is gone: what runs for it is stopped at the next step."""
        for sequence in self._running:
            if sequence.request is request:
                self._running.remove(sequence)
                self._drop(sequence)
                self._leave(time_s, sequence)
                return
        for sequence in self._waiting:
            if sequence.request is request:
                self._waiting.remove(sequence)
                return

    def tick(self, time_s: float) -> None:
        """Start again where only deferred requests are left, and let a memory error end what runs."""
        stalled_s = self._replica.device.stalled_until_s
        if time_s <= stalled_s - 1 and self._running:
            for sequence in list(self._running):
                self._running.remove(sequence)
                self._drop(sequence)
                self._plant.log.failed.add((time_s, self._replica.index, 2))
                self._plant.front.answered(time_s, sequence.request, 500)
        if self._stretch is None and self._waiting:
            self._step(time_s)

    def lose_everything(self, time_s: float) -> list[Request]:
        """The process has ended: what it held, in order."""
        held = [sequence.request for sequence in (*self._waiting, *self._prefilling, *self._running)]
        self._waiting.clear()
        self._prefilling.clear()
        self._running.clear()
        self._ends.clear()
        self._held_tokens, self._stretch, self._api_free_s = 0, None, time_s
        self._version += 1
        return held

    def state(self) -> Mapping[str, float]:
        return {
            "running": len(self._running) + len(self._prefilling),
            "waiting": len(self._waiting),
            "deferred": min(self._deferred, len(self._waiting)),
            "kv": min(1.0, self._held_tokens / self.knobs.llm_kv_tokens),
        }
