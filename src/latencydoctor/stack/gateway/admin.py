"""The admin API on a Unix socket that only this user can open: what a doctor may change beside the settings file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from latencydoctor.errors import ContentError, ContentErrors, KnownError, LatencyDoctorError, UsageError
from latencydoctor.stack.compile import to_pbtxt
from latencydoctor.stack.gateway.admin_ahead import AheadApi
from latencydoctor.stack.gateway.admin_cache import AdminCache, Stored
from latencydoctor.stack.gateway.admin_read import read_body, read_json, read_run
from latencydoctor.stack.gateway.entries import KEY_PREFIX, Entry
from latencydoctor.stack.gateway.warming import Warmer
from latencydoctor.stack.settings import CacheSettings, parse

Handler = Callable[[Request], Awaitable[Response]]


class Gateway(Protocol):
    """What the admin API needs of the running gateway."""

    def state(self) -> dict[str, object]:
        """What is in effect, as JSON values."""
        ...

    @property
    def ttl_s(self) -> int:
        """Seconds an entry of the cache lives."""
        ...

    @property
    def cache_settings(self) -> CacheSettings:
        """The cache's settings in effect."""
        ...


def admin_app(gateway: Gateway, cache: AdminCache, warmer: Warmer) -> Starlette:
    """The application behind the admin socket."""
    api = _Api(gateway, cache)
    ahead = AheadApi(gateway, warmer)
    return Starlette(
        routes=[
            Route("/state", _guarded(api.state), methods=["GET"]),
            Route("/render", _guarded(api.render), methods=["POST"]),
            Route("/popular", _guarded(ahead.popular), methods=["GET"]),
            Route("/warm", _guarded(ahead.tagged), methods=["GET"]),
            Route("/warm", _guarded(ahead.warm), methods=["POST"]),
            Route("/warm", _guarded(ahead.drop), methods=["DELETE"]),
            Route("/cache", _guarded(api.list_run), methods=["GET"]),
            Route("/cache/{key:path}", _guarded(api.get_entry), methods=["GET"]),
            Route("/cache/{key:path}", _guarded(api.put_entry), methods=["PUT"]),
            Route("/cache/{key:path}", _guarded(api.delete_entry), methods=["DELETE"]),
        ]
    )


def _guarded(handler: Handler) -> Handler:
    """Turns the known errors into answers: 400 for a wrong request, 503 when something beside the gateway fails."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except (ContentError, UsageError) as error:
            return _problem(400, error)
        except KnownError as error:
            return _problem(503, error)

    return guarded


def _problem(status: int, error: LatencyDoctorError) -> Response:
    return JSONResponse({"error": error.message, "hint": error.hint}, status)


def _shown(stored: Stored | None) -> dict[str, object] | None:
    return {"key": stored.key, **asdict(stored.entry), "ttl_s": stored.ttl_s} if stored else None


class _Api:
    def __init__(self, gateway: Gateway, cache: AdminCache) -> None:
        self._gateway = gateway
        self._cache = cache

    async def state(self, _request: Request) -> Response:
        try:
            entries: int | None = await self._cache.count()
        except KnownError:
            entries = None
        return JSONResponse({**self._gateway.state(), "cache_entries": entries})

    async def render(self, request: Request) -> Response:
        """What the settings in the body would compile to; nothing is applied."""
        try:
            text = (await read_body(request)).decode()
            settings = parse(text)
            own = [to_pbtxt(settings.of_replica(one)) for one in range(1, settings.inference.replicas + 1)]
            return JSONResponse({"config_pbtxt": to_pbtxt(settings), "replicas": own, "errors": []})
        except UnicodeDecodeError as error:
            raise UsageError("the settings are not UTF-8") from error
        except ContentErrors as found:
            return JSONResponse({"config_pbtxt": "", "errors": [str(error) for error in found.errors]}, 400)
        except ContentError as error:
            return JSONResponse({"config_pbtxt": "", "errors": [str(error)]}, 400)

    async def list_run(self, request: Request) -> Response:
        entries = await self._cache.of_run(read_run(request.query_params.get("run", "")))
        return JSONResponse({"entries": [_shown(stored) for stored in entries]})

    async def get_entry(self, request: Request) -> Response:
        stored = await self._cache.get(_key(request))
        return JSONResponse({"entry": _shown(stored)}, 200 if stored else 404)

    async def put_entry(self, request: Request) -> Response:
        key, values = _key(request), await read_json(request)
        if not isinstance(values, dict) or not values.keys() <= {"answer_index", "score", "run", "ttl_s"}:
            raise UsageError("expected an object with answer_index, score, run, and maybe ttl_s")
        index, score = values.get("answer_index"), values.get("score")
        ttl_s = values.get("ttl_s", self._gateway.ttl_s)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 1_000_000:
            raise UsageError("answer_index must be a whole number from 0")
        if isinstance(score, bool) or not isinstance(score, int | float) or not -1 <= score <= 1:
            raise UsageError("score must be a number from -1 to 1")
        if isinstance(ttl_s, bool) or not isinstance(ttl_s, int) or not 1 <= ttl_s <= 604_800:
            raise UsageError("ttl_s must be whole seconds, from 1 to a week")
        before = await self._cache.get(key)
        await self._cache.put(key, Entry(index, float(score), read_run(values.get("run"))), ttl_s)
        return JSONResponse({"entry": _shown(await self._cache.get(key)), "before": _shown(before)})

    async def delete_entry(self, request: Request) -> Response:
        deleted = await self._cache.delete(_key(request), read_run(request.query_params.get("run", "")))
        return JSONResponse({"deleted": deleted})


def _key(request: Request) -> str:
    key = str(request.path_params["key"])
    if not key.startswith(KEY_PREFIX):
        raise UsageError(f"a key of the cache starts with {KEY_PREFIX}", hint="See key_prefixes in /state.")
    return key
