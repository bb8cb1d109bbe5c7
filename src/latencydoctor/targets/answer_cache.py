"""The bundled stack's answer cache through the gateway's admin API; implements the port `AnswerCache`.

Two remote effects: writing a batch of missing answers, and removing a run's. Both may be repeated: the first writes
only where there is nothing, the second removes only what still carries the run's tag.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar
from urllib.parse import quote

from latencydoctor.errors import KnownError
from latencydoctor.model.effects import Effect
from latencydoctor.model.popular import Popularity, PopularQuestion, WarmBatch, WarmedBatch
from latencydoctor.targets.admin import asked
from latencydoctor.targets.state_folder import StateFolder

MAX_QUESTIONS = 5000
"""So many of the most asked are looked at; the rest of the traffic counts as not repeated."""

Found = TypeVar("Found")
Json = dict[str, object]


class BundledAnswerCache:
    """The cache of the stack whose files lie in `folder`."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder

    def popularity(self) -> Popularity:
        """What the gateway was asked most; changes nothing."""
        with self._folder.effects(Effect.ASK_ANSWERS):
            return self._read("GET", f"/popular?limit={MAX_QUESTIONS}", None, _popularity)

    def warm(self, batch: WarmBatch) -> WarmedBatch:
        """Writes what is missing; the remote effect of a warm-up."""
        order = asdict(batch)
        order["run"] = order.pop("run_id")
        order["entries"] = dict(batch.entries)
        with self._folder.effects(Effect.WRITE_ANSWERS):
            return self._read("POST", "/warm", order, _warmed)

    def tagged(self, run_id: str) -> tuple[str, ...]:
        """Ids of what is still the run's own."""
        with self._folder.effects(Effect.ASK_ANSWERS):
            return self._read("GET", f"/warm?run={quote(run_id, safe='')}", None, lambda found: _texts(found["ids"]))

    def drop(self, run_id: str) -> int:
        """Removes what is still the run's own; the remote effect of undoing a warm-up."""
        path = f"/warm?run={quote(run_id, safe='')}"
        with self._folder.effects(Effect.REMOVE_ANSWERS):
            return self._read("DELETE", path, None, lambda found: _whole(found["dropped"]))

    def _read(self, method: str, path: str, values: object, read: Callable[[Json], Found]) -> Found:
        socket = self._folder.endpoints().admin_socket
        body = None if values is None else json.dumps(values).encode()
        status, answer = asked(socket, method, path, body)
        try:
            found = json.loads(answer)
            if status == 200:
                return read(found)
            message = str(found["error"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise KnownError(
                f"the admin API at {socket} answered {status} to {path.partition('?')[0]} with something unknown",
                hint="Is the gateway of this version?",
            ) from error
        raise KnownError(f"the gateway refuses: {message}", hint="See `latencydoctor stack status`.")


def _popularity(found: Json) -> Popularity:
    questions, settings = found["questions"], found["settings"]
    if not isinstance(questions, list) or not isinstance(settings, dict):
        raise TypeError("questions and settings were expected")
    return Popularity(
        window_s=_number(found["window_s"]),
        asked=_whole(found["asked"]),
        missed=_whole(found["missed"]),
        distinct=_whole(found["distinct"]),
        once=_whole(found["once"]),
        questions=tuple(_question(one) for one in questions),
        settings=tuple((f"cache.{key}", json.dumps(value)) for key, value in settings.items()),
    )


def _question(one: Json) -> PopularQuestion:
    left_s = one["left_s"]
    return PopularQuestion(
        str(one["id"]),
        _whole(one["asked"]),
        _whole(one["missed"]),
        bool(one["known"]),
        None if left_s is None else _number(left_s),
    )


def _warmed(found: Json) -> WarmedBatch:
    written, present, pending, gone = (_texts(found[name]) for name in ("written", "present", "pending", "gone"))
    return WarmedBatch(written, present, pending, gone, _number(found["waits_ms"]))


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("a list was expected")
    return tuple(str(item) for item in value)


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("a whole number was expected")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError("a number was expected")
    return float(value)
