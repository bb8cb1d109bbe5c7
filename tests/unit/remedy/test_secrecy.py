"""What looks like a secret is found, and what only sounds like one is not."""

from __future__ import annotations

import pytest

from latencydoctor.remedy.secrecy import redact, secret_line

SECRETS = [
    "password: hunter2",
    "db_password = hunter2",
    '"api_key": "hunter2"',
    "X-Api-Key: hunter2",
    "token=hunter2",
    "Authorization: Basic hunter2hunter2",
    "bearer hunter2.hunter2",
    "url: http://admin:hunter2@host:9090/",
    "https://hunter2@host/",
    "AWS_SECRET: hunter2",
]


@pytest.mark.parametrize("line", SECRETS)
def test_a_secret_is_found_and_hidden(line: str) -> None:
    assert secret_line(f"a: 1\n{line}\n") == 2
    hidden = redact(line)
    assert "hunter2" not in hidden
    assert "[redacted]" in hidden
    assert secret_line(hidden) is None


@pytest.mark.parametrize(
    "line",
    [
        "max_tokens: 16", "password_env: PROM_PASSWORD", "token_file: /run/token", "# the basics", "http://host:9090/a",
        "basic batching", "preferred_batch_size: 16", "secretary", "someone@example.org", "password:\n  from: env",
    ],
)  # fmt: skip
def test_what_only_sounds_like_one_stays(line: str) -> None:
    assert secret_line(line) is None
    assert redact(line) == line


def test_a_private_key_is_one() -> None:
    assert secret_line("-----BEGIN RSA PRIVATE KEY-----") == 1


@pytest.mark.parametrize(
    "line", [*SECRETS, "Authorization: Basic hunter2hunter2 and more", "token=hunter2 token: [redacted]"]
)
def test_hiding_twice_changes_nothing(line: str) -> None:
    """A plan is redacted when it is made and again in the journal, and must be the same plan there."""
    assert redact(redact(line)) == redact(line)
