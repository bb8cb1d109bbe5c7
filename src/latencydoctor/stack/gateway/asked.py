"""Reads the body of a request for an answer; everything a client can get wrong ends in a 400 that says what."""

from __future__ import annotations

import json
from dataclasses import dataclass

from latencydoctor.stack.encoder.tokenize import normalise
from latencydoctor.stack.gateway.refusals import bad_request
from latencydoctor.stack.gateway.series import PRIORITIES

MAX_BODY_BYTES = 8 * 1024
"""Room for the longest question with every character escaped, and no more: one event loop parses it."""

MAX_QUESTION_CHARACTERS = 1000
MAX_SESSION_CHARACTERS = 200

_FIELDS = frozenset({"question", "session", "priority"})
_SHAPE = 'Send {"question": "...", "session": "...", "priority": "vip" or "standard"}; only question is required.'


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as received, checked: `text` is normalised, `session` may be empty."""

    text: str
    session: str
    priority: str


def read_asked(body: bytes) -> Asked:
    """The question in a request's body; RequestError (400) for anything but a JSON object of the documented shape."""
    values = _parse(body)
    unknown = values.keys() - _FIELDS
    if unknown:
        raise bad_request(f"unknown field {min(unknown)[:40]!r}", _SHAPE)
    question = _text(values, "question", MAX_QUESTION_CHARACTERS)
    session = _text(values, "session", MAX_SESSION_CHARACTERS)
    priority = values.get("priority", "standard")
    if priority not in PRIORITIES:
        raise bad_request("priority must be vip or standard", _SHAPE)
    text = normalise(question)
    if not text:
        raise bad_request("question is empty", "Put the question's text into the field question.")
    return Asked(text, session, str(priority))


def _parse(body: bytes) -> dict[str, object]:
    try:
        values = json.loads(body.decode())
    except UnicodeDecodeError:
        raise bad_request("the body is not UTF-8", "Encode the JSON text as UTF-8.") from None
    except RecursionError:
        raise bad_request("the body is nested too deeply", _SHAPE) from None
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {str(error)[:80]}", _SHAPE) from None
    if not isinstance(values, dict):
        raise bad_request("the body is not a JSON object", _SHAPE)
    return values


def _text(values: dict[str, object], name: str, longest: int) -> str:
    value = values.get(name, "")
    if not isinstance(value, str):
        raise bad_request(f"{name} must be a text", _SHAPE)
    if len(value) > longest:
        raise bad_request(f"{name} is longer than {longest} characters", f"Shorten {name}.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise bad_request(f"{name} has half of a surrogate pair", "Send whole characters.") from None
    return value
