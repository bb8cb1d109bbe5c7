"""Answers that are not answers: what the gateway tells a client it cannot or will not serve."""

from __future__ import annotations

from latencydoctor.errors import LatencyDoctorError


class RequestError(LatencyDoctorError):
    """A request that ends with an error status.

    `retry_after_s` > 0 tells the client when to come back; `close` ends the connection, whose rest is not read. `shed`
    is the reason where the request was turned away because there is too much to do, "" for any other failure.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str,
        retry_after_s: int = 0,
        close: bool = False,
        shed: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after_s = retry_after_s
        self.close = close
        self.shed = shed


def bad_request(message: str, hint: str, *, close: bool = False) -> RequestError:
    """400: the client has to change the request."""
    return RequestError(400, message, hint=hint, close=close)


def unavailable(message: str, hint: str) -> RequestError:
    """503: the same request may work in a second."""
    return RequestError(503, message, hint=hint, retry_after_s=1)


SHED_REASONS = {
    "queue_timeout": "it waited in the queue for as long as its priority may",
    "queue_full": "the queue is full",
    "deadline": "it would wait until its deadline had passed",
    "overload": "too many questions at once",
}


def shed(reason: str, priority: str = "", retry_after_s: int = 1) -> RequestError:
    """503: there is more to do than can be done; `retry_after_s` says when that may be over."""
    return RequestError(
        503,
        f"{priority or 'this'} request turned away: {SHED_REASONS[reason]}",
        hint="Come back after the time in Retry-After.",
        retry_after_s=retry_after_s,
        shed=reason,
    )


def too_late(deadline_ms: int) -> RequestError:
    """504: the deadline passed before there was an answer."""
    return RequestError(
        504,
        f"no answer within {deadline_ms} ms",
        hint="The service is slow or overloaded. Try again later; see the gateway's metrics for where time goes.",
    )
