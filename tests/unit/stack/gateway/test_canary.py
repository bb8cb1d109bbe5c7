import pytest
from hypothesis import given
from hypothesis import strategies as some

from latencydoctor.errors import ContentError
from latencydoctor.stack.gateway.canary import Canary, check_canary

SESSIONS = [f"session-{number}" for number in range(10_000)]


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.2, 1900, 2100), (1.0, 10_000, 10_000)])
def test_the_share_of_the_sessions_goes_to_the_canary(share: float, low: int, high: int) -> None:
    assert low <= sum(Canary(share).arm(session) == "canary" for session in SESSIONS) <= high


@given(some.text(), some.floats(0, 1), some.floats(0, 1))
def test_a_session_of_a_smaller_share_stays_when_the_share_grows(session: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    if Canary(small).arm(session) == "canary":
        assert Canary(large).arm(session) == "canary"


def test_a_canary_is_read_from_json_values() -> None:
    values = {"share_ratio": 0.2, "model_version": "2", "endpoint": "127.0.0.1:8001"}
    assert check_canary(values) == Canary(0.2, "2", "127.0.0.1:8001")
    assert check_canary({}) == Canary()


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {"share": 0.2},
        {"share_ratio": 1.1},
        {"share_ratio": -0.1},
        {"share_ratio": float("nan")},
        {"share_ratio": True},
        {"share_ratio": "0.2"},
        {"model_version": 2},
        {"model_version": "two"},
        {"endpoint": "10.0.0.1:8001"},
        {"endpoint": "127.0.0.1"},
        {"endpoint": "127.0.0.1:99999"},
        {"endpoint": "unix:/tmp/x"},
    ],
)
def test_a_wrong_canary_is_refused(values: object) -> None:
    with pytest.raises(ContentError):
        check_canary(values)
