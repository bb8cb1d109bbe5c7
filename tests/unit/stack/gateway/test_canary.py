import pytest
from hypothesis import given
from hypothesis import strategies as some

from latencydoctor.stack.gateway.canary import Canary

SESSIONS = [f"session-{number}" for number in range(10_000)]


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.2, 1900, 2100), (1.0, 10_000, 10_000)])
def test_the_share_of_the_sessions_goes_to_the_canary(share: float, low: int, high: int) -> None:
    assert low <= sum(Canary(share).arm(session) == "canary" for session in SESSIONS) <= high


@given(some.text(), some.floats(0, 1), some.floats(0, 1))
def test_a_session_of_a_smaller_share_stays_when_the_share_grows(session: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    if Canary(small).arm(session) == "canary":
        assert Canary(large).arm(session) == "canary"
