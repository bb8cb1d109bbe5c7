"""Where a TorchServe's management API is, and its token: also out of the key file that TorchServe itself writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from latencydoctor.errors import SourceError
from latencydoctor.model.configuration import Credentials, PrometheusSource, TorchServeSource
from latencydoctor.sources.address import MAX_SECRET_BYTES, Address, read_address


def torchserve_address(source: TorchServeSource, environment: Mapping[str, str]) -> Address:
    """Check the address and read the token; `SourceError` says what to correct."""
    key = management_key(source.credentials.bearer_file)
    credentials = Credentials() if key else source.credentials
    asked = PrometheusSource(source.url, credentials, source.ca_file, source.cert_file, source.key_file)
    try:
        address = read_address(asked, environment)
    except SourceError as error:
        raise _in_own_words(error) from error
    return replace(address, headers=(("Authorization", f"Bearer {key}"),)) if key else address


def management_key(file: str) -> str:
    """The management key in a `key_file.json`; empty for any other file (such as one that holds a bare token)."""
    if not file:
        return ""
    try:
        with Path(file).open("rb") as stream:
            told = json.loads(stream.read(MAX_SECRET_BYTES))
        key = told["management"]["key"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        # What cannot be read at all is told by whoever reads the file as a bare token next.
        return ""
    return key if isinstance(key, str) and key.isascii() and key.isprintable() else ""


def _in_own_words(error: SourceError) -> SourceError:
    if "the Prometheus URL" in error.message:
        message = error.message.replace("the Prometheus URL", "TorchServe's management URL")
        return SourceError(message, hint="It should look like http://torchserve.example:8081.", location=error.location)
    hint = error.hint.replace("credentials for Prometheus", "token for TorchServe's management API")
    return SourceError(error.message, hint=hint, location=error.location)
