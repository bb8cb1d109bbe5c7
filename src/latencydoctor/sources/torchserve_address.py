"""Where a TorchServe's management API is, and its token: also out of the key file that TorchServe itself writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from latencydoctor.model.configuration import TorchServeSource
from latencydoctor.sources.address import MAX_SECRET_BYTES, Address, Asked, read_address

_ASKED = Asked("TorchServe", "TorchServe's management URL", "http://torchserve.example:8081")


def torchserve_address(source: TorchServeSource, environment: Mapping[str, str]) -> Address:
    """Check the address and read the token; `SourceError` says what to correct."""
    key = management_key(source.credentials.bearer_file)
    if not key:
        return read_address(source, environment, _ASKED)
    bare = replace(source, credentials=replace(source.credentials, bearer_file=""))
    address = read_address(bare, environment, _ASKED)
    others = tuple(header for header in address.headers if header[0] != "Authorization")
    return replace(address, headers=(("Authorization", f"Bearer {key}"), *others))


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
