"""From a question to the bytes of its answer: cache, then tokens, then Triton, each stage timed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from time import perf_counter

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.tokenize import Tokens
from latencydoctor.stack.faq_entries import FaqEntry
from latencydoctor.stack.gateway.asked import Asked
from latencydoctor.stack.gateway.cache import AnswerCache
from latencydoctor.stack.gateway.effective import Effective, Route
from latencydoctor.stack.gateway.entries import Entry, cache_key, dump_entry, read_entry
from latencydoctor.stack.gateway.events import EventLog
from latencydoctor.stack.gateway.inference import InferenceError, Model, Outcome, TurnedAway, infer_or_default
from latencydoctor.stack.gateway.lines import Lines
from latencydoctor.stack.gateway.popular import Popular
from latencydoctor.stack.gateway.refusals import RequestError, bad_request, shed, too_late, unavailable
from latencydoctor.stack.gateway.series import GatewaySeries
from latencydoctor.stack.gateway.single_flight import SingleFlight

QUEUE_LIMIT_MS = 500
"""Waiting longer than this in Triton is worth a line in the log (design/mission.md, the pyramid of logs)."""

WAITS_SHARE = 0.1
"""How much of the running mean of the waits one more wait makes: about the last ten count."""

WAITS_HOLD_S = 1.0
"""Without an inference for so long there is no queue to speak of."""

MAX_RENDERED = 20_000
"""How many cached values' renderings are kept, about 300 bytes each; then they are made anew."""

# Formatted bytes, because building and serialising an object costs a cache hit a tenth more.
_HIT = b'%b,"cached":true,%b,"stages_ms":{"cache":%.3f,"preprocess":0,"inference":0,"total":%.3f}}\n'
_MISS = (
    b'%b,"cached":false,%b,"stages_ms":{"cache":%.3f,"preprocess":%.3f,"queue":%.3f,"inference":%.3f,"total":%.3f}}\n'
)

_LEVELS = {"inference_timeout": "CRITICAL", "gpu_oom": "CRITICAL", "batch_size_mismatch": "WARNING"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response's body, and whether it came from the cache."""

    body: bytes
    cached: bool


@dataclass(frozen=True, slots=True)
class _Inferred:
    entry: Entry
    preprocess_s: float
    inference_s: float
    of_route: bool
    """Whether the version answered that the route stands for; while a model is exchanged the one before still does."""


Redact = Callable[[str, str], Awaitable[str]]
"""Takes a pattern and a text, gives the text with what the pattern matches masked; KnownError when it cannot."""

Work = Coroutine[object, object, _Inferred]


class Answerer:
    """Answers questions. `model_of` gives the model an arm asks next; `redact` and `tokenise` make its input."""

    def __init__(
        self,
        faq: Sequence[FaqEntry],
        tokenise: Callable[[str], Tokens],
        model_of: Callable[[Route], Model],
        cache: AnswerCache,
        series: GatewaySeries,
        events: EventLog,
        redact: Redact,
        popular: Popular | None = None,
    ) -> None:
        self._openings = [
            json.dumps({"answer_id": one.answer_id, "answer": one.answer}, separators=(",", ":"))
            .removesuffix("}")
            .encode()
            for one in faq
        ]
        self._tokenise = tokenise
        self._model_of = model_of
        self._cache = cache
        self._series = series
        self._events = events
        self._redact = redact
        self.popular = popular if popular is not None else Popular(perf_counter)
        self.lines = Lines(perf_counter)
        self._flights: SingleFlight[_Inferred] = SingleFlight(series.joined.add)
        self._rendered: dict[bytes, bytes] = {}
        self._quickest_s = float("inf")
        self._waits_ms = 0.0
        self._waited_at_s = 0.0

    async def answer(self, asked: Asked, route: Route, effective: Effective, started_s: float) -> Answer:
        """The answer for one arm; RequestError when there is none. `started_s` is the request's perf_counter."""
        key = cache_key(route.key_version, asked.text)
        cache_s = 0.0
        if effective.settings.cache.enabled:
            before_s = perf_counter()
            value = await self._cache.get(key)
            now_s = perf_counter()
            cache_s = now_s - before_s
            self._series.stages["cache"].observe(cache_s)
            opening = self._opening_of(value) if value is not None else None
            if opening is not None:
                self._series.cache_hits.value += 1
                self.popular.hit(key, value)
                times = (cache_s * 1000, (now_s - started_s) * 1000)
                return Answer(_HIT % (opening, route.provenance, *times), cached=True)
        self._series.cache_misses.value += 1
        self.popular.missed(key)
        return await self._infer(asked, key, route, effective, started_s, cache_s)

    async def probe(self, question: str, route: Route, effective: Effective) -> None:
        """One real inference past the cache: whether the model answers at all. RequestError when it does not."""
        asked = Asked(question, "", "vip")
        started_s = perf_counter()
        await self._fly((question, "probe"), lambda: self._work(asked, route, effective, started_s, None), effective, 0)

    async def compute(self, key: str, route: Route, effective: Effective) -> Entry:
        """The answer for a key of the route's that nobody waits for, past the cache; RequestError when there is none.

        It is asked at the lowest level there is, and each call is one inference.
        """
        prefix = cache_key(route.key_version, "")
        if not key.startswith(prefix):
            raise unavailable("the model was exchanged meanwhile", "Look again at what is asked.")
        question = key.removeprefix(prefix)
        asked = Asked(question, "", "standard")
        started_s = perf_counter()
        work = self._fly(
            (question, "ahead"), lambda: self._work(asked, route, effective, started_s, None), effective, started_s
        )
        found = (await work)[0]
        if not found.of_route:
            raise unavailable("the model is being exchanged", "Try again when that is over.")
        return found.entry

    @property
    def waits_ms(self) -> float:
        """How long questions waited in Triton of late, a running mean; 0 when none was inferred for a second."""
        return self._waits_ms if perf_counter() - self._waited_at_s <= WAITS_HOLD_S else 0.0

    async def _infer(
        self, asked: Asked, key: str, route: Route, effective: Effective, started_s: float, cache_s: float
    ) -> Answer:
        before_s = perf_counter()
        found, joined = await self._fly(
            # A question of a higher level must not wait for the same one in a lower level's queue, and one that is
            # counted for an arm must be answered by it.
            (key, effective.level(asked.priority), route.arm),
            lambda: self._work(asked, route, effective, started_s, key),
            effective,
            started_s + effective.deadline_s,
        )
        now_s = perf_counter()
        inference_s = now_s - before_s if joined else found.inference_s
        preprocess_s = 0.0 if joined else found.preprocess_s
        times = (cache_s, preprocess_s, self._queue_s(inference_s), inference_s, now_s - started_s)
        stages = tuple(one * 1000 for one in times)
        return Answer(_MISS % (self._opening(found.entry), route.provenance, *stages), cached=False)

    async def _fly(
        self, key: Hashable, work: Callable[[], Work], effective: Effective, until_s: float
    ) -> tuple[_Inferred, bool]:
        """Result of the shared work and whether it was joined; one that another's deadline ended is done again."""
        # Without single flight every question flies alone, whatever another one is asking at the same time.
        alone = not effective.settings.cache.single_flight
        while True:
            joined = not alone and key in self._flights
            try:
                return await self._flights.do((key, object()) if alone else key, work)
            except InferenceError as error:
                if joined and error.event == "inference_timeout" and perf_counter() < until_s:
                    continue
                raise self._refusal(error, effective) from error

    async def _work(
        self, asked: Asked, route: Route, effective: Effective, started_s: float, key: str | None
    ) -> _Inferred:
        """Tokenises, asks the model, and stores the answer under the key where there is one."""
        before_s = perf_counter()
        until_s = started_s + effective.deadline_s
        try:
            tokens = await self._prepare(asked, effective, until_s)
            tokenised_s = perf_counter()
            timeout_s = until_s - tokenised_s
            if timeout_s <= 0:
                raise InferenceError("inference_timeout", 504, "the deadline passed in the gateway")
            outcome = await self._ask(asked.priority, tokens, route, effective, timeout_s)
            if not 0 <= outcome.answer_index < len(self._openings):
                raise InferenceError("inference_failed", 500, f"answer {outcome.answer_index} is not in the FAQ")
        except InferenceError as error:
            self._note(error)
            raise
        done_s = perf_counter()
        self._measure(done_s - tokenised_s, done_s)
        entry = Entry(outcome.answer_index, outcome.score)
        cache = effective.settings.cache
        of_route = outcome.version in ("", route.serves)
        if key is not None and of_route:
            value = dump_entry(entry)
            self.popular.answered(key, value)
            if cache.enabled:
                self._cache.put(key, value, cache.ttl_seconds)
        return _Inferred(entry, tokenised_s - before_s, done_s - tokenised_s, of_route)

    async def _ask(
        self, priority: str, tokens: Tokens, route: Route, effective: Effective, timeout_s: float
    ) -> Outcome:
        """The model's answer. With priority levels, what would only wait for its deadline is turned away."""
        if effective.settings.inference.has_levels and self.lines.hopeless(priority, timeout_s):
            raise TurnedAway("deadline", "the backlog takes longer than the deadline")
        line, before_s, answered = self.lines.of(priority), perf_counter(), False
        line.enter()
        try:
            outcome = await infer_or_default(
                self._model_of(route), tokens, route.version, effective.level(priority), timeout_s
            )
            answered = True
            return outcome
        finally:
            line.leave(perf_counter() - before_s, answered=answered)

    async def _prepare(self, asked: Asked, effective: Effective, until_s: float) -> Tokens:
        """The model's input. What a question waits and works here is counted, also when its deadline ends it here."""
        before_s, text = perf_counter(), asked.text
        pattern = effective.settings.preprocessing.redact_pattern
        try:
            if pattern:
                async with asyncio.timeout(until_s - before_s):
                    text = await self._redact(pattern, text)
            tokens = self._tokenise(text)
        except TimeoutError:
            raise InferenceError("inference_timeout", 504, "the deadline passed in preprocessing") from None
        except KnownError as error:
            raise InferenceError("data_preprocess_fail", 500, str(error)) from error
        finally:
            self._series.stages["preprocess"].observe(perf_counter() - before_s)
        if sum(tokens.mask) <= 2:  # Only the marks of beginning and end: nothing in it is text.
            self._events.emit("ERROR", "data_preprocess_fail", "question has no token")
            raise bad_request("question has no readable text", "Write the question in letters or digits.")
        return tokens

    def _measure(self, inference_s: float, now_s: float) -> None:
        self._series.stages["inference"].observe(inference_s)
        self._quickest_s = min(self._quickest_s, inference_s)
        queue_ms = self._queue_s(inference_s) * 1000
        self._waits_ms += (queue_ms - self._waits_ms) * WAITS_SHARE
        self._waited_at_s = now_s
        if queue_ms > QUEUE_LIMIT_MS:
            message = f"a question waited about {queue_ms:.0f} ms in the inference queue"
            self._events.emit("WARNING", "queue_delay", message, queue_ms=queue_ms, limit_ms=QUEUE_LIMIT_MS)

    def _queue_s(self, inference_s: float) -> float:
        """Time in Triton beyond the quickest inference so far: an estimate, as Triton does not say it by request."""
        return max(0.0, inference_s - self._quickest_s)

    def _note(self, error: InferenceError) -> None:
        if error.event in ("inference_timeout", "request_shed"):
            return  # Each request that was too late or turned away is noted where it is answered.
        numbers = {"requested": 1, "max_batch_size": error.limit} if error.limit else {}
        self._events.emit(_LEVELS.get(error.event, "ERROR"), error.event, error.message[:500], **numbers)

    def _refusal(self, error: InferenceError, effective: Effective) -> RequestError:
        if isinstance(error, TurnedAway):
            return shed(error.reason)
        if error.status == 504:
            return too_late(effective.settings.inference.deadline_ms)
        if error.status == 503:
            return unavailable(f"the model does not answer ({error.event})", error.hint)
        return RequestError(error.status, f"the inference failed ({error.event})", hint=error.hint)

    def _opening_of(self, value: bytes) -> bytes | None:
        """The rendered beginning of the answer a cached value stands for; None when the value stands for none."""
        rendered = self._rendered.get(value)
        if rendered is not None:
            return rendered
        entry = read_entry(value)
        if entry is None or entry.answer_index >= len(self._openings):
            return None
        if len(self._rendered) >= MAX_RENDERED:
            self._rendered.clear()
        rendered = self._rendered[value] = self._opening(entry)
        return rendered

    def _opening(self, entry: Entry) -> bytes:
        return b'%b,"score":%.4f' % (self._openings[entry.answer_index], entry.score)
