"""The gateway's HTTP surface, as a bare ASGI application: no framework between the server and an answer."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from latencydoctor.stack.gateway.answering import Answerer
from latencydoctor.stack.gateway.asked import MAX_BODY_BYTES, read_asked
from latencydoctor.stack.gateway.effective import Effective
from latencydoctor.stack.gateway.events import EventLog
from latencydoctor.stack.gateway.metrics import CONTENT_TYPE
from latencydoctor.stack.gateway.refusals import RequestError, bad_request, shed, too_late, unavailable
from latencydoctor.stack.gateway.series import GatewaySeries

# ASGI's own types: a message's values are of any type.
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_INFLIGHT = 4096
"""Questions answered at once, about ten seconds of an overloaded stack: beyond, waiting is of no use to anyone."""

VIP_PLACES_RATIO = 0.125
"""So many more questions at once are answered when they are VIP: those are not turned away before the others."""

READY_S = 1.0
"""How long the result of a readiness probe holds, so that many askers make one inference a second."""

PROBE_QUESTION = "how do i cancel my order?"

SHED_AT_ONCE = ("deadline", "overload")
"""Reasons that keep a request from being accepted: it has no duration."""

_JSON = (b"content-type", b"application/json")


class GatewayApp:
    """The application; `effective` is asked for the settings in effect at the start of each request."""

    def __init__(
        self,
        answerer: Answerer,
        effective: Callable[[], Effective],
        series: GatewaySeries,
        events: EventLog,
        max_inflight: int = MAX_INFLIGHT,
    ) -> None:
        self._answerer = answerer
        self._effective = effective
        self._series = series
        self._events = events
        self._max_inflight = max_inflight
        self._vip_places = math.ceil(max_inflight * VIP_PLACES_RATIO)
        self._ready: tuple[float, RequestError | None] = (0.0, None)
        self.inflight = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serves one request."""
        path, method = scope["path"], scope["method"]
        if path == "/v1/answer":
            if method == "POST":
                await self._serve_answer(receive, send)
            else:
                refusal = RequestError(405, "use POST", hint="POST the question as JSON.")
                await _send_error(send, refusal, (b"allow", b"POST"))
        elif method not in ("GET", "HEAD"):
            refusal = RequestError(405, "use GET", hint="Only /v1/answer takes a POST.")
            await _send_error(send, refusal, (b"allow", b"GET, HEAD"))
        elif path == "/metrics":
            await _send(send, 200, (b"content-type", CONTENT_TYPE.encode()), self._series.registry.page())
        elif path == "/health":
            await _send_json(send, 200, {"status": "ok", "generation": self._effective().settings.generation})
        elif path == "/ready":
            await self._serve_ready(send)
        else:
            hint = "There are /v1/answer, /health, /ready and /metrics."
            await _send_error(send, RequestError(404, "no such page", hint=hint))

    async def _serve_answer(self, receive: Receive, send: Send) -> None:
        started_s = perf_counter()
        effective = self._effective()
        status, priority, arm, cached = 500, "standard", "stable", False
        admitted = False
        self.inflight += 1
        try:
            if self.inflight > self._max_inflight + self._vip_places:
                # Whose it is takes a body, and there is no room for more of them.
                raise shed("overload")
            async with asyncio.timeout(effective.deadline_s):
                asked = read_asked(await _read_body(receive))
                priority = asked.priority
                self._series.arrived[priority].value += 1
                if self.inflight > self._max_inflight and priority != "vip":
                    raise shed("overload")
                admitted = True
                arm = effective.canary.arm(asked.session or asked.text)
                answer = await self._answerer.answer(asked, effective.routes[arm], effective, started_s)
            status, cached = 200, answer.cached
            rendered_s = perf_counter()
            await _send(send, 200, _JSON, answer.body)
            self._series.stages["response"].observe(perf_counter() - rendered_s)
        except TimeoutError:
            refusal = self._late(effective, started_s, admitted=admitted)
            status = refusal.status
            await _send_error(send, refusal)
        except RequestError as refusal:
            status = refusal.status
            if status == 504:
                self._late(effective, started_s, admitted=True)
            if refusal.shed:
                admitted = admitted and refusal.shed not in SHED_AT_ONCE
                refusal = self._turn_away(refusal.shed, priority)
            await _send_error(send, refusal)
        finally:
            self.inflight -= 1
            self._series.request(status, priority, arm, cached=cached).value += 1
            if admitted and status != 400:
                self._series.durations[arm, priority].observe(perf_counter() - started_s)

    def _late(self, effective: Effective, started_s: float, *, admitted: bool) -> RequestError:
        deadline_ms = effective.settings.inference.deadline_ms
        if not admitted:
            return bad_request("the body did not arrive in time", "Send the whole body at once.", close=True)
        elapsed_ms = (perf_counter() - started_s) * 1000
        message = f"no answer within the deadline of {deadline_ms} ms"
        self._events.emit("CRITICAL", "inference_timeout", message, deadline_ms=deadline_ms, elapsed_ms=elapsed_ms)
        return too_late(deadline_ms)

    def _turn_away(self, reason: str, priority: str) -> RequestError:
        """Counts and logs a request that is turned away, and says when to come back: by the backlog of its priority."""
        line = self._answerer.lines.of(priority)
        line.turn_away()
        self._series.shed[priority, reason].value += 1
        retry_after_s = self._answerer.lines.retry_after_s(priority)
        refusal = shed(reason, priority, retry_after_s)
        # VIP requests are not meant to be turned away at all.
        level = "ERROR" if priority == "vip" or reason == "overload" else "WARNING"
        self._events.emit(
            level,
            "overload" if reason == "overload" else f"{priority}_shed",
            refusal.message,
            retry_after_s=retry_after_s,
            waiting=line.waiting,
            requested=self.inflight,
            limit=self._max_inflight,
        )
        return refusal

    async def _serve_ready(self, send: Send) -> None:
        """Says 200 only when a real inference has just succeeded: Triton calls itself ready when its model is dead."""
        until_s, refusal = self._ready
        if perf_counter() >= until_s:
            refusal = await self._probe()
            self._ready = (perf_counter() + READY_S, refusal)
        if refusal is None:
            await _send_json(send, 200, {"status": "ready"})
        else:
            await _send_error(send, unavailable(refusal.message, refusal.hint))

    async def _probe(self) -> RequestError | None:
        effective = self._effective()
        try:
            async with asyncio.timeout(effective.deadline_s):
                await self._answerer.probe(PROBE_QUESTION, effective.routes["stable"], effective)
        except TimeoutError:
            return too_late(effective.settings.inference.deadline_ms)
        except RequestError as refusal:
            return refusal
        return None


async def _read_body(receive: Receive) -> bytes:
    """The whole body, in most cases one message; RequestError (400) when it is too large or breaks off."""
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        if len(body) > MAX_BODY_BYTES:
            break
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise bad_request("the connection was closed before the body was complete", "Send the whole body.")
    if len(body) > MAX_BODY_BYTES:
        raise bad_request(f"the body is larger than {MAX_BODY_BYTES} bytes", "Shorten the question.", close=True)
    return body


async def _send(send: Send, status: int, kind: tuple[bytes, bytes], body: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [kind, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_json(send: Send, status: int, values: dict[str, object]) -> None:
    await _send(send, status, _JSON, json.dumps(values).encode() + b"\n")


async def _send_error(send: Send, refusal: RequestError, *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps({"error": refusal.message, "hint": refusal.hint}).encode() + b"\n"
    more = [*headers]
    if refusal.retry_after_s:
        more.append((b"retry-after", b"%d" % refusal.retry_after_s))
    if refusal.close:
        more.append((b"connection", b"close"))
    await _send(send, refusal.status, _JSON, body, *more)
