"""A gateway without sockets: a model and a store in memory around the real answerer and application."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.tokenize import Tokens
from latencydoctor.stack.faq_entries import FaqEntry
from latencydoctor.stack.gateway.answering import Answerer
from latencydoctor.stack.gateway.app import MAX_INFLIGHT, GatewayApp
from latencydoctor.stack.gateway.cache import AnswerCache
from latencydoctor.stack.gateway.effective import Route, combine
from latencydoctor.stack.gateway.events import EventLog
from latencydoctor.stack.gateway.inference import InferenceError, Outcome
from latencydoctor.stack.gateway.series import GatewaySeries
from latencydoctor.stack.settings import CacheSettings, InferenceSettings, PreprocessingSettings, Settings

FAQ = (
    FaqEntry("orders-cancel", "orders", "Open Orders.", (), ()),
    FaqEntry("orders-late", "orders", "We are sorry.", (), ()),
)


def ignore(_what: str) -> None:
    """Told of what this test does not look at."""


class MemoryModel:
    """Answers when it may; `error` fails every call."""

    def __init__(self) -> None:
        self.tokens: list[Tokens] = []
        self.calls: list[tuple[str, int, float]] = []
        self.outcome = Outcome(1, 0.75)
        self.error: InferenceError | None = None
        self.gate: asyncio.Event | None = None

    async def infer(self, tokens: Tokens, *, version: str, priority: int, timeout_s: float) -> Outcome:
        self.tokens.append(tokens)
        self.calls.append((version, priority, timeout_s))
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.outcome


class MemoryStore:
    """A store that keeps nothing but what is put into it."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    async def read(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        return [self.values.get(key) for key in keys]

    async def write(self, values: Sequence[tuple[str, bytes, int]]) -> None:
        self.values |= {key: value for key, value, _ in values}


def tokenise(text: str) -> Tokens:
    """As many tokens as there are words, between the marks of beginning and end; none for a text of signs."""
    words = min(14, len([word for word in text.split() if word.isalnum()]))
    return Tokens((101, *([7] * words), 102, *([0] * (14 - words))), (1,) * (words + 2) + (0,) * (14 - words))


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.body)
        return values


class Bench:
    """The gateway and what is around it. `settings` may be changed between requests."""

    def __init__(self, max_inflight: int = MAX_INFLIGHT) -> None:
        self.settings = Settings()
        self.model = MemoryModel()
        self.endpoints: list[str] = []
        self.redaction: asyncio.Event | None = None
        self.store = MemoryStore()
        self.stream = io.StringIO()
        self.series = GatewaySeries()
        self.events = EventLog(self.stream, lambda: 0.0, lambda name: self.series.event(name).add())
        self.cache = AnswerCache(self.store, lambda: 0.0, ignore)
        self.answerer = Answerer(FAQ, tokenise, self._model_of, self.cache, self.series, self.events, self._redact)
        self.app = GatewayApp(self.answerer, self.effective, self.series, self.events, max_inflight)

    def _model_of(self, route: Route) -> MemoryModel:
        self.endpoints.append(next(route.turns))
        return self.model

    async def _redact(self, pattern: str, text: str) -> str:
        if self.redaction is not None:
            await self.redaction.wait()
        if pattern == "broken":
            raise KnownError("the redaction broke down")
        return re.sub(pattern, "*", text)

    def effective(self) -> Any:
        return combine(self.settings, ("one:1", "two:2"))

    def deadline(self, milliseconds: int) -> None:
        self.settings = replace(self.settings, inference=InferenceSettings(deadline_ms=milliseconds))

    def redact(self, pattern: str) -> None:
        self.settings = replace(self.settings, preprocessing=PreprocessingSettings(pattern))

    def no_cache(self) -> None:
        self.settings = replace(self.settings, cache=CacheSettings(enabled=False))

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    @property
    def page(self) -> list[str]:
        return self.series.registry.page().decode().splitlines()

    async def call(self, method: str, path: str, *chunks: bytes, disconnect: bool = False) -> Reply:
        """One request; its body arrives in the given chunks, after which it is complete, or the client is gone."""
        messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks or (b"",)]
        if disconnect:
            messages.append({"type": "http.disconnect"})
        else:
            messages[-1]["more_body"] = False
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not messages:
                await asyncio.Event().wait()  # The client keeps the connection and sends no more.
            return messages.pop(0)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app({"type": "http", "method": method, "path": path}, receive, send)
        return Reply(sent[0]["status"], dict(sent[0]["headers"]), b"".join(one.get("body", b"") for one in sent[1:]))

    async def ask(self, question: str, **more: str) -> Reply:
        """Asks a question."""
        return await self.call("POST", "/v1/answer", json.dumps({"question": question, **more}).encode())
