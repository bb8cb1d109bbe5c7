"""Answers that are not answers: what the gateway tells a client it cannot or will not serve."""

from __future__ import annotations

from latencydoctor.errors import LatencyDoctorError


class RequestError(LatencyDoctorError):
    """A request that ends with an error status.

    `retry_after_s` > 0 tells the client when to come back; `close` ends the connection, whose rest is not read.
    """

    def __init__(self, status: int, message: str, *, hint: str, retry_after_s: int = 0, close: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after_s = retry_after_s
        self.close = close


def bad_request(message: str, hint: str, *, close: bool = False) -> RequestError:
    """400: the client has to change the request."""
    return RequestError(400, message, hint=hint, close=close)


def unavailable(message: str, hint: str) -> RequestError:
    """503: the same request may work in a second."""
    return RequestError(503, message, hint=hint, retry_after_s=1)


def too_late(deadline_ms: int) -> RequestError:
    """504: the deadline passed before there was an answer."""
    return RequestError(
        504,
        f"no answer within {deadline_ms} ms",
        hint="The service is slow or overloaded. Try again later; see the gateway's metrics for where time goes.",
    )
