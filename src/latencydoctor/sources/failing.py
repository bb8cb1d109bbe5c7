"""One way to say why a server gives nothing, and what to do next, whichever server it is."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.sources.transport import CIRCLE, FailureKind, TransportError

_CREDENTIALS = "bearer_env, bearer_file, or username with password_env or password_file"


@dataclass(frozen=True, slots=True)
class Server:
    """What is asked, in words: how it is called, the option that names it, what its address looks like, and the
    section of the configuration that holds its credentials."""

    name: str
    option: str
    address: str
    section: str


PROMETHEUS = Server(
    "Prometheus", "--prometheus URL", "that of a Prometheus with its path prefix, no dashboard", "sources.prometheus"
)

CONFIGURED_WRONGLY = frozenset(
    {FailureKind.TLS, FailureKind.CREDENTIALS, FailureKind.NOT_FOUND, FailureKind.NOT_JSON, FailureKind.REDIRECT}
)
"""Failures that no second try will change."""


def said(server: Server, error: TransportError) -> str:
    """What is wrong, in one line: it cannot be used as configured, it answers errors, or it does not answer."""
    if error.kind in CONFIGURED_WRONGLY:
        return f"{server.name} cannot be used: {error}"
    if error.kind is FailureKind.STATUS:
        return f"{server.name} answers with an error: {error.detail}"
    return f"{server.name} does not answer: {error}"


def next_step(server: Server, error: TransportError) -> str:
    """What to do about it, in one line."""
    right = f"that its address is right: {server.address} ({server.option})"
    if error.kind is FailureKind.TLS:
        files = "your own CA as ca_file and, if it asks for one, your certificate as cert_file"
        return f"Give {files}, under {server.section} in the configuration."
    if error.kind is FailureKind.CREDENTIALS:
        return f"Give the credentials under {server.section} in the configuration: {_CREDENTIALS}."
    if error.kind is FailureKind.REDIRECT and CIRCLE not in error.detail:
        return "Give the address that it redirects to, if you trust it."
    if error.kind in CONFIGURED_WRONGLY:
        return f"Check {right}."
    if error.kind is FailureKind.STATUS:
        return f"Look into its own log, and check {right}."
    return f"Check that it runs and {right}."
