"""Errors a user can act on.

Every failure the program knows is one of these: a message that says what is wrong and where, and a hint that says
what to do next. `cli/main.py` is the only place that turns them into exit codes; see the table in README.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Where in a file a problem lies; `line` and `column` count from 1, 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}" + (f":{self.column}" if self.column else "")


class LatencyDoctorError(Exception):
    """A known failure: one line for the user, a hint for what to do next, and where it was found."""

    def __init__(self, message: str, *, hint: str = "", location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class KnownError(LatencyDoctorError):
    """Something outside the program is wrong and nothing was changed (exit 1)."""


class UsageError(LatencyDoctorError):
    """The command was asked for something it cannot mean, or for one of several candidates (exit 2)."""


class ContentError(LatencyDoctorError):
    """A rule, playbook, configuration or settings file is broken (exit 1)."""


class ContentErrors(ContentError):
    """All problems of a folder or file at once, each with its own location (exit 1)."""

    def __init__(self, errors: tuple[ContentError, ...], *, hint: str = "") -> None:
        super().__init__("\n".join(str(error) for error in errors), hint=hint)
        self.errors = errors


class SourceError(KnownError):
    """A source of evidence cannot be used at all: wrong URL, refused credentials (exit 1)."""


class CannotTell(LatencyDoctorError):
    """No source was reachable, so there may or may not be an incident (exit 4)."""


class Held(LatencyDoctorError):
    """The change stays as it is until a human decides (exit 4)."""


class Refused(LatencyDoctorError):
    """No approval, a stale or edited plan, a lock held by another, too wide a blast radius (exit 5)."""


class RolledBack(LatencyDoctorError):
    """The fix did not hold; the old state is back and verified (exit 6)."""


class RollbackFailed(LatencyDoctorError):
    """The old state could not be restored or is unknown: page someone (exit 7)."""
