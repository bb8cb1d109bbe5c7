"""What the targets beside the bundled stack share: how --target names one, and where its lock and journals lie."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from latencydoctor.errors import UsageError

JOURNAL = "journal"

Found = TypeVar("Found")


def meant(named: str, server: str, configured: Found | None, how: str, parse: Callable[[str], Found]) -> Found | None:
    """The target that --target means, None when it means another kind than this `server`; empty for the configured one.

    `parse` reads what stands behind the kind and its colon; `how` says how to name one.
    """
    kind = server.lower()
    if named in ("", kind):
        if named and configured is None:
            raise UsageError(f"no {server} is configured as a target", hint=how)
        return configured
    found, colon, rest = named.partition(":")
    return parse(rest) if colon and found == kind else None


def own_folder(identity: bytes) -> Path:
    """In the user's state folder, named after the target: there is no place of ours on the server's side."""
    from platformdirs import user_state_path

    return user_state_path("latencydoctor", appauthor=False) / "targets" / hashlib.sha256(identity).hexdigest()[:16]
