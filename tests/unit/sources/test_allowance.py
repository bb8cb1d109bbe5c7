"""What one diagnosis may cost."""

from __future__ import annotations

from latencydoctor.sources.allowance import Allowance


def test_requests_and_bytes_run_out() -> None:
    allowance = Allowance(requests=2, bytes=10)
    assert [allowance.take_request() for _ in range(3)] == [True, True, False]
    assert [allowance.take_bytes(count) for count in (6, 4, 1)] == [True, True, False]
