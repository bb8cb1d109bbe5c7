"""What the program's exit code says; the table in README.md is checked against this enum."""

from __future__ import annotations

from enum import IntEnum

from latencydoctor import errors


class ExitCode(IntEnum):
    """One meaning a number, everywhere."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FOUND = 3
    CANNOT_TELL = 4
    REFUSED = 5
    ROLLED_BACK = 6
    ROLLBACK_FAILED = 7
    UNEXPECTED = 70
    INTERRUPTED = 130
    TERMINATED = 143


_BY_ERROR: tuple[tuple[type[errors.LatencyDoctorError], ExitCode], ...] = (
    (errors.UsageError, ExitCode.USAGE),
    (errors.CannotTell, ExitCode.CANNOT_TELL),
    (errors.Held, ExitCode.CANNOT_TELL),
    (errors.Refused, ExitCode.REFUSED),
    (errors.RolledBack, ExitCode.ROLLED_BACK),
    (errors.RollbackFailed, ExitCode.ROLLBACK_FAILED),
)


def of(error: errors.LatencyDoctorError) -> ExitCode:
    """The exit code of a known error; 1 for every class that is not in the table."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.FAILED)
