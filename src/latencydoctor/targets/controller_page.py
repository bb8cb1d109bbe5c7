"""The controller's metrics page: which generation of the settings is in effect, and whether the newest one failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from latencydoctor.errors import KnownError

TIMEOUT_S = 2.0
MAX_PAGE_BYTES = 1 << 20

_SAMPLE = re.compile(r"^(stack_settings_[a-z_]+)(?:\{[^}\n]*\})? ([0-9.eE+-]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ControllerState:
    """Generations as the controller sees them; `failed`: the newest one it saw could not be put into effect."""

    in_effect: int
    seen: int
    failed: bool


def read_controller(url: str) -> ControllerState:
    """The controller's word; KnownError when its page cannot be read or lacks the numbers."""
    parts = urlsplit(url)
    # http.client follows no redirects, so the page is the one that the state folder names.
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/")
        response = connection.getresponse()
        body = response.read(MAX_PAGE_BYTES)
    except (OSError, HTTPException) as error:
        raise KnownError(
            f"the controller's metrics page {url} does not answer: {error}",
            hint="Is the stack up? See `latencydoctor stack status`.",
        ) from error
    finally:
        connection.close()
    found = {name: float(value) for name, value in _SAMPLE.findall(body.decode(errors="replace"))}
    try:
        in_effect = int(found["stack_settings_generation"])
        return ControllerState(
            in_effect,
            int(found.get("stack_settings_seen_generation", in_effect)),
            found.get("stack_settings_last_error", 0.0) != 0.0,
        )
    except KeyError as error:
        raise KnownError(
            f"{url} answered {response.status} without {error.args[0]}", hint="Is it the controller of this version?"
        ) from error
