"""Each known failure has the exit code of the table in the README."""

from __future__ import annotations

import pytest

from latencydoctor import errors
from latencydoctor.cli import exit_codes


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.KnownError, 1),
        (errors.SourceError, 1),
        (errors.ContentError, 1),
        (errors.UsageError, 2),
        (errors.CannotTell, 4),
        (errors.Held, 4),
        (errors.Refused, 5),
        (errors.RolledBack, 6),
        (errors.RollbackFailed, 7),
    ],
)
def test_exit_code(kind: type[errors.LatencyDoctorError], code: int) -> None:
    assert exit_codes.of(kind("message")) == code


def test_many_problems_of_a_file_are_one_failure() -> None:
    assert exit_codes.of(errors.ContentErrors((errors.ContentError("a"), errors.ContentError("b")))) == 1
