"""The gateway's process: its parts put together, its two servers, its end on SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.tokenize import TextTokenizer
from latencydoctor.stack.endpoints import LOOPBACK, Endpoints
from latencydoctor.stack.faq_entries import FaqEntry
from latencydoctor.stack.gateway.admin import admin_app
from latencydoctor.stack.gateway.admin_cache import AdminCache
from latencydoctor.stack.gateway.answering import Answerer
from latencydoctor.stack.gateway.app import MAX_INFLIGHT, GatewayApp
from latencydoctor.stack.gateway.cache import AnswerCache, ValkeyStore, connect
from latencydoctor.stack.gateway.effective import Effective, Route, SettingsFile, combine
from latencydoctor.stack.gateway.entries import Entry, cache_key
from latencydoctor.stack.gateway.events import EventLog, libraries_logged
from latencydoctor.stack.gateway.inference import TritonModel
from latencydoctor.stack.gateway.popular import Ranking
from latencydoctor.stack.gateway.redaction import Redactor
from latencydoctor.stack.gateway.refusals import too_late
from latencydoctor.stack.gateway.series import GatewaySeries
from latencydoctor.stack.gateway.turns import CatchUp, ServingFile
from latencydoctor.stack.gateway.upkeep import evict, keep_up
from latencydoctor.stack.gateway.warming import Warmer
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.settings import CacheSettings, load

KEEP_ALIVE_S = 75
"""Longer than clients keep idle connections: with the server's own 5 s, a few in 10,000 requests met a closed one."""

MAX_GRACE_S = 5
"""How long requests in flight may take after SIGTERM; supervisord kills one second later."""


class RunningGateway:
    """The parts of the gateway and what is in effect in them."""

    def __init__(
        self, layout: Layout, endpoints: Endpoints, faq: Sequence[FaqEntry], max_inflight: int = MAX_INFLIGHT
    ) -> None:
        """ContentError when the settings cannot be read: with nothing in effect there is nothing to serve."""
        self._serving = ServingFile(layout.serving, [one.grpc for one in endpoints.tritons])
        self._catch_up = CatchUp()
        self._file = SettingsFile(layout.settings)
        settings = self._file.changed() or load(layout.settings)
        self.series = GatewaySeries()
        self.events = EventLog(sys.stdout, time.time, lambda name: self.series.event(name).add())
        self.effective: Effective = combine(settings, self._serving.serving)
        self._models: dict[str, TritonModel] = {}
        self.client = connect(endpoints.valkey_socket)
        self._store = ValkeyStore(endpoints.valkey_socket)
        self.cache = AnswerCache(self._store, time.monotonic, self._cache_failed)
        self.redactor = Redactor()
        self._answerer = answerer = Answerer(
            faq, TextTokenizer(), self._model_of, self.cache, self.series, self.events, self.redactor
        )
        self._store.wait_at_most(settings.cache.timeout_ms / 1000)
        self.app = GatewayApp(answerer, lambda: self.effective, self.series, self.events, max_inflight)
        self.series.gauges(
            inflight=lambda: self.app.inflight,
            generation=lambda: self.effective.settings.generation,
            share=lambda: self.effective.canary.share_ratio,
        )

    def _model_of(self, route: Route) -> TritonModel:
        """The model of the replica whose turn it is in that arm."""
        endpoint = self._catch_up.next(route.endpoints, self._inflight_at) or next(route.turns)
        if endpoint not in self._serving.serving:
            # It has been taken out since this question came; what it was sent before is all it answers.
            endpoint = next(self.effective.routes[route.arm].turns)
        model = self._models.get(endpoint)
        if model is None:
            model = self._models[endpoint] = TritonModel(endpoint, self.effective.settings.inference.model)
        return model

    def _inflight_at(self, endpoint: str) -> int:
        model = self._models.get(endpoint)
        return 0 if model is None else model.inflight

    def _cache_failed(self, reason: str) -> None:
        self.series.cache_errors.add()
        self.events.emit("WARNING", "cache_error", f"the cache does not answer and is left alone: {reason}")

    @property
    def ttl_s(self) -> int:
        """Seconds an entry of the cache lives."""
        return self.effective.settings.cache.ttl_seconds

    @property
    def caches(self) -> bool:
        """Whether the cache is in use."""
        return self.effective.settings.cache.enabled

    @property
    def cache_settings(self) -> CacheSettings:
        """The cache's settings in effect."""
        return self.effective.settings.cache

    @property
    def waits_ms(self) -> float:
        """How long questions wait in the model's queue of late."""
        return self._answerer.waits_ms

    def ranking(self) -> Ranking:
        """What is asked of the stable arm, of the last minutes."""
        return self._answerer.popular.ranking(cache_key(self.effective.routes["stable"].key_version, ""))

    async def compute(self, key: str) -> Entry:
        """The model's answer for a key of the stable arm; RequestError when there is none in time."""
        effective, route = self.effective, self.effective.routes["stable"]
        try:
            async with asyncio.timeout(effective.deadline_s):
                return await self._answerer.compute(key, route, effective)
        except TimeoutError:
            raise too_late(effective.settings.inference.deadline_ms) from None

    def refresh(self) -> None:
        """Takes up the settings file when it has another generation; a broken file changes nothing and is logged."""
        served = self._serving.serving
        if self._serving.changed():
            self._catch_up.came(set(self._serving.serving) - set(served))
            self.effective = combine(self.effective.settings, self._serving.serving)
            self.events.emit("INFO", "replicas_changed", f"{len(self._serving.serving)} take traffic")
        before = self._file.error
        settings = self._file.changed()
        if self._file.error and self._file.error != before:
            self.events.emit("ERROR", "settings_refused", f"the old settings stay in effect: {self._file.error}")
        if settings is not None and settings.generation != self.effective.settings.generation:
            self.effective = combine(settings, self._serving.serving)
            self._store.wait_at_most(settings.cache.timeout_ms / 1000)
            generation, share = settings.generation, self.effective.canary.share_ratio
            self.events.emit(
                "INFO", "settings_in_effect", f"generation {generation}", generation=generation, canary_ratio=share
            )

    def state(self) -> dict[str, object]:
        """What is in effect, as JSON values."""
        settings, canary = self.effective.settings, self.effective.routes["canary"]
        return {
            "generation": settings.generation,
            "settings_error": self._file.error,
            "accelerator": settings.accelerator,
            "simulated": settings.simulated,
            "inflight": self.app.inflight,
            "replicas": [
                {"address": address, "serving": address in self._serving.serving, "inflight": model.inflight}
                for address, model in self._models.items()
            ],
            "canary": {"share_ratio": self.effective.canary.share_ratio, "endpoints": list(canary.endpoints)},
            "cache_resting": self.cache.resting,
            "key_prefixes": {arm: cache_key(one.key_version, "") for arm, one in self.effective.routes.items()},
        }

    async def tidy(self) -> None:
        """Keeps the cache within its size, when it works; leaves the replicas that have been ended alone."""
        await self._leave_ended()
        if not self.cache.resting:
            with suppress(ConnectionError):  # The next lookup notices as well, and logs it.
                await evict(self.client, self.effective.settings.cache.max_entries)

    async def _leave_ended(self) -> None:
        """A connection to what has gone would be slow to notice when there is something again."""
        serving = self._serving.serving
        for address in [one for one, model in self._models.items() if one not in serving and not model.inflight]:
            await self._models.pop(address).close()

    async def close(self) -> None:
        """Lets writes finish and ends the connections."""
        await self.cache.settle()
        await self._store.close()
        await self.client.aclose()
        await self.redactor.close()
        for model in self._models.values():
            await model.close()
        self.events.flush(everything=True)


class _Server(uvicorn.Server):
    """One of two servers of a process: the signals are the process's, not each server's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(app: Any, grace_s: float) -> _Server:  # uvicorn types an application as a union of its own Protocols.
    return _Server(
        uvicorn.Config(
            app,
            http="httptools",
            loop="none",
            lifespan="off",
            ws="none",
            proxy_headers=False,  # Nobody is in front of it, and every request would pay for the look.
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(grace_s)),
        )
    )


def listen(port: int) -> socket.socket:
    """A listening socket on the loopback address; KnownError when the port is taken."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except OSError as error:
        found.close()
        raise KnownError(f"port {port} cannot be used: {error.strerror}", hint="Is a gateway running?") from error
    return found


def listen_privately(path: Path) -> socket.socket:
    """A Unix socket that only this user can open, from its first moment on."""
    path.unlink(missing_ok=True)  # Left behind by a process that was killed.
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        found.bind(str(path))
    except OSError as error:
        found.close()
        raise KnownError(f"{path} cannot be used: {error.strerror}", hint="Is its path too long?") from error
    finally:
        os.umask(before)
    return found


async def serve(build: Callable[[], RunningGateway], front: socket.socket, admin: socket.socket) -> None:
    """Serves until SIGTERM or SIGINT, then lets the requests in flight finish."""
    gateway = build()
    # What was made until now stays: without it in the way, a collection takes a tenth of the time.
    gc.collect()
    gc.freeze()
    with libraries_logged(gateway.events):
        await _serve(gateway, front, admin)


async def _serve(gateway: RunningGateway, front: socket.socket, admin: socket.socket) -> None:
    grace_s = min(gateway.effective.deadline_s, MAX_GRACE_S)
    cache = AdminCache(gateway.client)
    servers = [
        _server(gateway.app, grace_s),
        _server(admin_app(gateway, cache, Warmer(gateway, cache)), 1),
    ]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, servers)
    upkeep = asyncio.create_task(keep_up(gateway, gateway.events))
    upkeep.add_done_callback(lambda task: None if task.cancelled() else _give_up(gateway, servers, task.exception()))
    port = front.getsockname()[1]
    gateway.events.emit("INFO", "started", f"serving on {LOOPBACK}:{port}", port=port, pid=os.getpid())
    try:
        await asyncio.gather(servers[0].serve([front]), servers[1].serve([admin]))
    finally:
        upkeep.cancel()
        gateway.events.emit("INFO", "stopped", "no more requests are served")
        await gateway.close()


def _give_up(gateway: RunningGateway, servers: Sequence[uvicorn.Server], error: BaseException | None) -> None:
    """Without its upkeep a gateway never takes settings up again: better another one, which supervisord starts."""
    gateway.events.emit("CRITICAL", "upkeep_failed", f"settings would not be taken up any more: {error!r}")
    _end(servers)


def _end(servers: Sequence[uvicorn.Server]) -> None:
    for server in servers:
        server.should_exit = True
