"""Addresses as `config check` shows them."""

from __future__ import annotations

import pytest

from latencydoctor.cli.probing import shown_address


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:9090", "http://localhost:9090"),
        ("https://prom.example/team", "https://prom.example/team"),
        ("http://ann:pw@localhost:9090/x", "http://localhost:9090/x"),
        ("http://ann:p@w:/@localhost", "http://localhost"),
        ("http://ann:p://w@localhost", "http://localhost"),
        ("http://localhost/?token=pw#pw", "http://localhost/"),
        ("ann:pw@localhost", "localhost"),
        ("ann:pw://x@localhost", "localhost"),
        ("", ""),
    ],
)
def test_without_credentials(url: str, shown: str) -> None:
    assert shown_address(url) == shown
