"""The controller's pages: which generation of the settings is in effect, whether the newest one failed, and why."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urljoin, urlsplit

from latencydoctor.errors import KnownError
from latencydoctor.targets.exchange import FAILURES, exchange

TIMEOUT_S = 2.0
MAX_PAGE_BYTES = 1 << 20
MAX_REASON_CHARS = 300

_SAMPLE = re.compile(r"^(stack_settings_[a-z_]+)(?:\{[^}\n]*\})? ([0-9.eE+-]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ControllerState:
    """Generations as the controller sees them; `failed`: the newest one it saw could not be put into effect."""

    in_effect: int
    seen: int
    failed: bool


def read_controller(url: str) -> ControllerState:
    """The controller's word; KnownError when its page cannot be read or lacks the numbers."""
    status, body = _get(url)
    try:
        found = {name: float(value) for name, value in _SAMPLE.findall(body)}
        in_effect = int(found["stack_settings_generation"])
        return ControllerState(
            in_effect,
            int(found.get("stack_settings_seen_generation", in_effect)),
            found.get("stack_settings_last_error", 0.0) != 0.0,
        )
    except KeyError as error:
        raise KnownError(
            f"{url} answered {status} without {error.args[0]}", hint="Is it the controller of this version?"
        ) from error
    except (ValueError, OverflowError) as error:
        raise KnownError(
            f"{url} answered {status} with odd numbers in stack_settings_generation or beside it: {error}",
            hint="Is it the controller of this version?",
        ) from error


def read_reason(url: str) -> str:
    """What the controller says is wrong with the newest settings, cut to one line; "" where it does not say.

    `url` is the one of its metrics; the words are on the page beside it.
    """
    try:
        _, body = _get(urljoin(url, "/state"))
        found = json.loads(body)["error"]
    except (KnownError, ValueError, LookupError, TypeError):
        return ""
    return " ".join(found.split())[:MAX_REASON_CHARS] if isinstance(found, str) else ""


def _get(url: str) -> tuple[int, str]:
    """Status and text of a page; KnownError when it does not answer."""
    parts = urlsplit(url)
    # http.client follows no redirects, so the page is the one that the state folder names.
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        response, body = exchange(connection, "GET", parts.path or "/", max_bytes=MAX_PAGE_BYTES)
    except FAILURES as error:
        raise KnownError(
            f"the controller's page {url} does not answer: {error}",
            hint="Is the stack up? See `latencydoctor stack status`.",
        ) from error
    return response.status, body.decode(errors="replace")
