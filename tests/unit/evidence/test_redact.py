"""Secrets are taken out, and what only looks like one stays."""

from __future__ import annotations

import time

import pytest

from latencydoctor.evidence.redact import plain, redact

SECRET = "hunter2-Zx9_longer"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"'Authorization': 'Bearer {SECRET}'",
        f'{{"password": "{SECRET}"}}',
        f"password={SECRET} user=ann",
        f"db_passwd: '{SECRET}'",
        f"REDIS_PASSWORD={SECRET}",
        f"api_key={SECRET}&x=1",
        f"X-Api-Key: {SECRET}",
        f"access-token = {SECRET}",
        f"client_secret:{SECRET}",
        f"Cookie: {SECRET}",
        f"redis://:{SECRET}@cache:6379/0",
        f"https://ann:{SECRET}@host/path",
        f"https://{SECRET}@host/path",
        f"sent bearer {SECRET} along",
    ],
)
def test_named_secrets_are_taken_out(text: str) -> None:
    assert SECRET not in redact(text)
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "ABCDEFGH12345678",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2" * 9,
        "sk-" + "proj_a1B2" * 4,
        "hf_" + "a1B2" * 8,
        "xoxb-" + "1234567890-abc",
        "glpat-" + "a1B2" * 6,
        "nvapi-" + "a1B2" * 8,
        "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".c2lnbmF0dXJl",
        "-----BEGIN RSA " + "PRIVATE KEY-----MIIE",
    ],
)
def test_secrets_are_known_by_their_shape(secret: str) -> None:
    assert redact(f"it said {secret}") == "it said [redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=512 num_tokens: 12",
        "token: 42",
        "http://127.0.0.1:8000/v2/models/faq-encoder",
        "exceeds maximum queue size",
        "key=abc secretary: yes",
        "batch_size=8 at 12:30:05",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_the_name_of_the_secret_is_kept() -> None:
    assert redact("password=abc next=1") == "password=[redacted] next=1"


def test_hostile_lines_are_quick() -> None:
    lines = ["a-" * 100_000, "password" * 30_000, "://" * 80_000, "eyJ" * 80_000, "bearer " * 30_000, "a" * 250_000]
    started_s = time.perf_counter()
    for line in lines:
        redact(line)
    assert time.perf_counter() - started_s < 15


def test_plain_text_is_one_short_line_without_control_bytes() -> None:
    assert plain("a\x1b[31mb\n\tc") == "a [31mb c"
    assert plain("x" * 500, 20) == "x" * 19 + "…"
    assert plain(f"failed: password={SECRET}") == "failed: password=[redacted]"
