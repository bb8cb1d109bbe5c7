"""What a library's exception means for the user; the rest of the transport is tried against real sockets."""

from __future__ import annotations

import pytest
import requests
from urllib3.exceptions import MaxRetryError, NewConnectionError, ReadTimeoutError

from latencydoctor.sources.transport import Deadline, FailureKind, TransportError, translate


def wrapped(reason: Exception) -> requests.ConnectionError:
    """As requests wraps what urllib3 wraps."""
    return requests.ConnectionError(MaxRetryError(None, "http://h", reason))  # type: ignore[arg-type]  # no pool here


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TransportError(FailureKind.STATUS, "HTTP 500", 500), FailureKind.STATUS),
        (requests.ReadTimeout("slow"), FailureKind.DEADLINE),
        (wrapped(ReadTimeoutError(None, "u", "slow")), FailureKind.DEADLINE),  # type: ignore[arg-type]  # no pool here
        (requests.exceptions.SSLError("bad certificate"), FailureKind.TLS),
        (wrapped(ConnectionRefusedError(111, "refused")), FailureKind.REFUSED),
        (wrapped(NewConnectionError(None, "no route to host")), FailureKind.NO_ROUTE),  # type: ignore[arg-type]  # same
        (requests.exceptions.ChunkedEncodingError("cut"), FailureKind.BROKEN),
        (OSError("odd"), FailureKind.BROKEN),
    ],
)
def test_exceptions_are_told_apart(error: Exception, kind: FailureKind) -> None:
    assert translate(error, Deadline.after(10)).kind is kind


def test_after_the_deadline_everything_is_late() -> None:
    assert translate(OSError("odd"), Deadline(0.0)).kind is FailureKind.DEADLINE
    with pytest.raises(TransportError, match="deadline passed"):
        Deadline(0.0).check()


def test_exceptions_that_wrap_each_other_end() -> None:
    first, second = OSError("one"), OSError("two")
    first.__cause__, second.__cause__ = second, first
    assert translate(first, Deadline.after(10)).detail == "two"


def test_details_hold_no_secrets_or_control_bytes() -> None:
    found = translate(OSError("proxy http://ann:s3cr3t@h \x1b[31m"), Deadline.after(10))
    assert "s3cr3t" not in str(found)
    assert str(found).isprintable()
