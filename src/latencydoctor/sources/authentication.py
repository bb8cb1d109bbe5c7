"""Credentials on their way: to one origin only, and never back out of what it answers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import requests

from latencydoctor.evidence.redact_parts import HIDDEN

SHORTEST_HIDDEN = 4
"""A shorter word is no secret, and taking it out of a message would only garble it."""


class Authentication(requests.auth.AuthBase):
    """Adds headers (credentials, a tenant) to requests for one origin; always set, or ~/.netrc would be consulted."""

    def __init__(self, origin: tuple[str, str, int | None], headers: Mapping[str, str]) -> None:
        self._origin = origin
        self._headers = dict(headers)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if origin_of(request.url or "") == self._origin:
            request.headers.update(self._headers)
        return request

    def hide(self, text: str) -> str:
        """A server's words without the credentials it was sent: some quote them when they refuse them."""
        for secret in _secrets(self._headers.get("Authorization", "")):
            text = text.replace(secret, HIDDEN) if len(secret) >= SHORTEST_HIDDEN else text
        return text


def _secrets(header: str) -> Iterator[str]:
    scheme, _, secret = header.partition(" ")
    yield secret
    if scheme == "Basic":
        try:
            yield base64.b64decode(secret).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what must stay the same for credentials to be sent."""
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default
