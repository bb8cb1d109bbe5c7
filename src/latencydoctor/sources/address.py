"""A Prometheus's address and credentials, checked before the first request; no secret is ever part of a message."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from latencydoctor.errors import Location, SourceError
from latencydoctor.evidence.redact import plain
from latencydoctor.model.configuration import Credentials, PrometheusSource

MAX_SECRET_BYTES = 16 * 1024
"""The largest credential file; a Kubernetes service-account token has about 1 kB."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to ask: `url` without credentials and without a slash at its end, the header's value, the CA bundle."""

    url: str
    authorization: str
    ca_file: str


def read_address(source: PrometheusSource, environment: Mapping[str, str] = os.environ) -> Address:
    """Check a source's address and read its credentials; `SourceError` says what to correct."""
    url, user_password = _split(source.url)
    header = _header(source.credentials, environment)
    if user_password and not header:
        header = _basic(user_password)
    if source.ca_file and not Path(source.ca_file).is_file():
        raise SourceError(
            "the CA file does not exist", hint="Correct ca_file.", location=Location(plain(source.ca_file, 300))
        )
    return Address(url, header, source.ca_file)


def _split(url: str) -> tuple[str, str]:
    """The URL without credentials, and `user:password` if it carried any."""
    hint = "It should look like http://prometheus.example:9090, a path prefix is kept."
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise SourceError("the Prometheus URL is malformed", hint=hint) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError("the Prometheus URL must start with http:// or https:// and name a host", hint=hint)
    if parts.query or parts.fragment:
        # Not shown: a query often carries a token.
        raise SourceError("the Prometheus URL must not have a query or a fragment", hint=hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port is None else f"{host}:{port}"
    bare = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    user_password = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    return bare, user_password


def _header(credentials: Credentials, environment: Mapping[str, str]) -> str:
    bearer = _secret(credentials.bearer_env, credentials.bearer_file, environment)
    if bearer:
        return f"Bearer {bearer}"
    password = _secret(credentials.password_env, credentials.password_file, environment)
    return _basic(f"{credentials.username}:{password}") if credentials.username else ""


def _basic(user_password: str) -> str:
    return "Basic " + base64.b64encode(user_password.encode()).decode()


def _secret(variable: str, file: str, environment: Mapping[str, str]) -> str:
    if variable:
        value = environment.get(variable, "")
        if not value:
            raise SourceError(
                f"the environment variable {plain(variable, 100)} is not set",
                hint="It should hold the credentials for Prometheus.",
            )
        return _checked(value, plain(variable, 100))
    return _checked(_read_secret(Path(file)), plain(file, 300)) if file else ""


def _read_secret(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_SECRET_BYTES).decode()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise SourceError(f"the credentials cannot be read: {reason}", location=Location(str(path))) from error
    except UnicodeDecodeError:
        # The decoder's message quotes the bytes: it must not become the cause of what is shown.
        raise SourceError("the credentials are not text", location=Location(str(path))) from None


def _checked(value: str, where: str) -> str:
    """The HTTP library's complaint about a bad header quotes it, so what it would refuse is refused here."""
    secret = value.strip()
    if not secret or not secret.isascii() or not secret.isprintable():
        raise SourceError(f"the credentials in {where} are empty or hold characters that no header may have")
    return secret
