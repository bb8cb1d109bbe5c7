"""Credentials go to one origin, and what a server says of them is not repeated."""

from __future__ import annotations

import base64

import pytest
import requests

from latencydoctor.sources.authentication import Authentication, origin_of

BASIC = "Basic " + base64.b64encode(b"ann:pass:word").decode()


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://h:80/a", "Bearer t"),
        ("http://h/b", "Bearer t"),
        ("https://h/a", None),
        ("http://h:81/a", None),
        ("http://i/a", None),
    ],
)
def test_headers_are_for_one_origin(url: str, sent: str | None) -> None:
    asked = Authentication(origin_of("http://H"), {"Authorization": "Bearer t"})(requests.Request("GET", url).prepare())
    assert asked.headers.get("Authorization") == sent


@pytest.mark.parametrize(
    ("header", "said", "repeated"),
    [
        ("Bearer s3cr3t", "no s3cr3t here", "no [redacted] here"),
        (BASIC, f"{BASIC}: pass:word of ann", "Basic [redacted]: [redacted] of ann"),
        ("Basic !", "no ! here", "no ! here"),
        ("Bearer abc", "abc is a word", "abc is a word"),
        ("", "no credentials", "no credentials"),
    ],
)
def test_a_servers_words_lose_what_it_was_sent(header: str, said: str, repeated: str) -> None:
    assert Authentication(origin_of("http://h"), {"Authorization": header}).hide(said) == repeated
