"""What an admin request says, read and checked; everything wrong with it is a UsageError."""

from __future__ import annotations

import json

from starlette.requests import Request

from latencydoctor.errors import UsageError
from latencydoctor.stack.gateway.entries import MAX_RUN_CHARACTERS

MAX_BODY_BYTES = 64 * 1024


async def read_body(request: Request) -> bytes:
    """The whole body."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise UsageError(f"the body is larger than {MAX_BODY_BYTES} bytes")
    return body


async def read_json(request: Request) -> object:
    """The body as JSON."""
    try:
        return json.loads(await read_body(request))
    except (ValueError, RecursionError) as error:
        raise UsageError("the body is not JSON", hint="Send one JSON object.") from error


def read_run(run: object) -> str:
    """The id of a run."""
    if not isinstance(run, str) or not 0 < len(run) <= MAX_RUN_CHARACTERS:
        raise UsageError("run is missing", hint="Give the id of the run that owns the entries.")
    return run


def read_whole(value: object, what: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{what} must be a whole number from {low} to {high}")
    return value
