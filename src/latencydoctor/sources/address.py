"""An address to ask and the credentials for it, checked before the first request; no message ever holds a secret."""

from __future__ import annotations

import base64
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from latencydoctor.errors import Location, SourceError
from latencydoctor.evidence.redact import plain
from latencydoctor.model.configuration import Credentials, HttpSource, Tenant

MAX_SECRET_BYTES = 16 * 1024
"""The largest credential file; a Kubernetes service-account token has about 1 kB."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,100}")
_RESERVED = ("authorization", "content-length", "content-type", "host", "transfer-encoding", "connection", "cookie")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to ask: `url` without credentials and without a slash at its end, headers for it alone, TLS files.

    `certificate` is (certificate file, key file); they are the same file where one holds both.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str = ""
    certificate: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked and its address are called so in messages; `example` is what a good address looks like."""

    name: str
    url: str
    example: str


PROMETHEUS = Asked("Prometheus", "the Prometheus URL", "http://prometheus.example:9090, a path prefix is kept")


def read_address(source: HttpSource, environment: Mapping[str, str] = os.environ, asked: Asked = PROMETHEUS) -> Address:
    """Check a source's address and read its credentials; `SourceError` says what to correct."""
    url, user_password = _split(source.url, asked)
    header = _header(source.credentials, environment, asked)
    if user_password and not header:
        header = _basic(user_password)
    headers = (("Authorization", header),) if header else ()
    if source.ca_file and not Path(source.ca_file).is_file():
        raise SourceError(
            "the CA file does not exist", hint="Correct ca_file.", location=Location(plain(source.ca_file, 300))
        )
    return Address(url, (*headers, *_tenant(source.tenant, environment, asked)), source.ca_file, _certificate(source))


def _tenant(tenant: Tenant | None, environment: Mapping[str, str], asked: Asked) -> tuple[tuple[str, str], ...]:
    """The header by which stores for many teams tell whose series are meant."""
    if tenant is None:
        return ()
    if not _HEADER_NAME.fullmatch(tenant.header) or tenant.header.lower() in _RESERVED:
        raise SourceError(
            f"{plain(tenant.header, 60)!r} cannot be the tenant's header", hint="It is X-Scope-OrgID for most stores."
        )
    return ((tenant.header, _secret(tenant.value_env, tenant.value_file, environment, asked)),)


def _certificate(source: HttpSource) -> tuple[str, str] | None:
    """The client's certificate, loaded once here: later a library would ask for a pass phrase on the terminal."""
    if not source.cert_file:
        return None
    files = (source.cert_file, source.key_file or source.cert_file)
    hint = "cert_file and key_file name a PEM certificate and its key, without a pass phrase."
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(*files, password="")
    except ssl.SSLError as error:
        reason = plain(error.reason or "it is none", 100).lower().replace("_", " ")
        raise SourceError(
            f"the client certificate cannot be used: {reason}", hint=hint, location=Location(plain(files[1], 300))
        ) from error
    except OSError as error:
        missing = next((name for name in files if not Path(name).is_file()), files[0])
        raise SourceError(
            f"the client certificate cannot be read: {error.strerror or 'unreadable'}",
            hint=hint,
            location=Location(plain(missing, 300)),
        ) from error
    return files


def bare_url(url: str, asked: Asked) -> str:
    """An address without the credentials it may carry; `SourceError` when it is none."""
    return _split(url, asked)[0]


def _split(url: str, asked: Asked) -> tuple[str, str]:
    """The URL without credentials, and `user:password` if it carried any."""
    hint = f"It should look like {asked.example}."
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise SourceError(f"{asked.url} is malformed", hint=hint) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError(f"{asked.url} must start with http:// or https:// and name a host", hint=hint)
    if parts.query or parts.fragment:
        # Not shown: a query often carries a token.
        raise SourceError(f"{asked.url} must not have a query or a fragment", hint=hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port is None else f"{host}:{port}"
    bare = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    user_password = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    return bare, user_password


def _header(credentials: Credentials, environment: Mapping[str, str], asked: Asked) -> str:
    bearer = _secret(credentials.bearer_env, credentials.bearer_file, environment, asked)
    if bearer:
        return f"Bearer {bearer}"
    password = _secret(credentials.password_env, credentials.password_file, environment, asked)
    return _basic(f"{credentials.username}:{password}") if credentials.username else ""


def _basic(user_password: str) -> str:
    return "Basic " + base64.b64encode(user_password.encode()).decode()


def _secret(variable: str, file: str, environment: Mapping[str, str], asked: Asked) -> str:
    if variable:
        value = environment.get(variable, "")
        if not value:
            raise SourceError(
                f"the environment variable {plain(variable, 100)} is not set",
                hint=f"It should hold the credentials for {asked.name}.",
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
