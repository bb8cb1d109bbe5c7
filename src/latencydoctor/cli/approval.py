"""Asking a person, and reading what they hand in."""

from __future__ import annotations

import sys
from pathlib import Path

from latencydoctor.cli import streams
from latencydoctor.errors import KnownError, Refused
from latencydoctor.remedy.plan_file import MAX_PLAN_BYTES


def ask(question: str, *, yes: bool) -> None:
    """Return when approved; `Refused` on a no, or when nobody can be asked and `--yes` was not given."""
    if yes:
        return
    if not streams.interactive():
        raise Refused("not approved: there is no terminal to ask on", hint="Give --yes to approve beforehand.")
    streams.stderr().print(f"{question} [y/N] ", end="")
    if not _says_yes():
        raise Refused("not approved", hint="Nothing was changed.")


def _says_yes() -> bool:
    # typer's own prompt takes an interrupt and the end of input for one and the same, and exits 1 for both.
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except (OSError, UnicodeDecodeError):
        return False


def reader(path: Path) -> str:
    """A plan file's text; `KnownError` for one that cannot be read or cannot be a plan."""
    try:
        with path.open("rb") as file:
            # Not by its size: a pipe or a device has none, and may never end.
            content = file.read(MAX_PLAN_BYTES + 1)
        if len(content) > MAX_PLAN_BYTES:
            raise KnownError(f"{path} is too large to be a plan", hint="Name the file that `plan -o` wrote.")
        return content.decode()
    except UnicodeDecodeError as error:
        raise KnownError(f"{path} is no text", hint="Name the file that `plan -o` wrote.") from error
    except OSError as error:
        raise KnownError(
            f"cannot read {path}: {error.strerror or error}", hint="Write a plan with `latencydoctor plan FIX -o FILE`."
        ) from error
