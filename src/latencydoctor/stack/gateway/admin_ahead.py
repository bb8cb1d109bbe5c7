"""The admin API's part for answers put into the cache ahead: what is asked most, and writing and removing by run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from latencydoctor.errors import UsageError
from latencydoctor.stack.gateway.admin_read import read_json, read_run, read_whole
from latencydoctor.stack.gateway.warming import Order, Warmer
from latencydoctor.stack.settings import CacheSettings

MAX_LISTED = 5000
MAX_ORDERED = 500
MAX_COMPUTED = 100
MAX_TTL_S = 604_800
MAX_WAIT_MS = 60_000


class Gateway(Protocol):
    """What this part needs of the running gateway."""

    @property
    def cache_settings(self) -> CacheSettings:
        """The cache's settings in effect."""
        ...


class AheadApi:
    """The handlers of `/popular` and `/warm`."""

    def __init__(self, gateway: Gateway, warmer: Warmer) -> None:
        self._gateway = gateway
        self._warmer = warmer

    async def popular(self, request: Request) -> Response:
        """The repeated questions by digest, most asked first, with what the cache holds of them. Changes nothing."""
        text = request.query_params.get("limit", "1000")
        limit = read_whole(int(text) if text.isdecimal() else None, "limit", 1, MAX_LISTED)
        ranking, first = await self._warmer.popular(limit)
        settings = self._gateway.cache_settings
        return JSONResponse(
            {
                "window_s": ranking.window_s,
                "asked": ranking.asked,
                "missed": ranking.missed,
                "distinct": ranking.distinct,
                "once": ranking.once,
                "questions": [
                    {
                        "id": one.id,
                        "asked": one.asked,
                        "missed": one.missed,
                        "known": one.value is not None,
                        # JSON has no infinity: what never expires is far enough away.
                        "left_s": None if left_s is None else min(left_s, MAX_TTL_S),
                    }
                    for one, left_s in first
                ],
                "settings": {
                    name: asdict(settings)[name] for name in ("enabled", "ttl_seconds", "max_entries", "single_flight")
                },
            }
        )

    async def warm(self, request: Request) -> Response:
        """Writes what is missing of an order."""
        return JSONResponse(asdict(await self._warmer.warm(_order(await read_json(request)))))

    async def tagged(self, request: Request) -> Response:
        """Ids of a run's entries."""
        return JSONResponse({"ids": await self._warmer.tagged(read_run(request.query_params.get("run", "")))})

    async def drop(self, request: Request) -> Response:
        """Removes a run's entries, those that are still its own."""
        return JSONResponse({"dropped": await self._warmer.drop(read_run(request.query_params.get("run", "")))})


def _order(values: object) -> Order:
    if not isinstance(values, dict) or values.keys() != {"run", "entries", "compute", "wait_limit_ms"}:
        raise UsageError("expected an object with run, entries, compute and wait_limit_ms")
    entries = values["entries"]
    if not isinstance(entries, dict) or len(entries) > MAX_ORDERED:
        raise UsageError(f"entries must be an object of at most {MAX_ORDERED} ids, each with its ttl in seconds")
    return Order(
        run=read_run(values["run"]),
        entries=tuple((name, read_whole(ttl_s, "a ttl", 1, MAX_TTL_S)) for name, ttl_s in entries.items()),
        compute=read_whole(values["compute"], "compute", 0, MAX_COMPUTED),
        wait_limit_ms=_wait_ms(values["wait_limit_ms"]),
    )


def _wait_ms(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WAIT_MS:
        raise UsageError(f"wait_limit_ms must be milliseconds from 0 to {MAX_WAIT_MS}")
    return float(value)
