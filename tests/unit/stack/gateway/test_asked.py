import json

import pytest

from latencydoctor.stack.gateway.asked import Asked, read_asked
from latencydoctor.stack.gateway.refusals import RequestError


def test_a_question_is_normalised_and_the_rest_has_defaults() -> None:
    assert read_asked(b'{"question": "  Where is\\n my ORDER 48213? "}') == Asked(
        "where is my order 48213?", "", "standard"
    )


def test_session_and_priority_are_taken_over() -> None:
    body = json.dumps({"question": "a", "session": "S1", "priority": "vip"}).encode()
    assert read_asked(body) == Asked("a", "S1", "vip")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 8000, "nested too deeply"),
        (b'{"question": ' + b"1" * 5000 + b"}", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "question is empty"),
        (b'{"question": " \\n "}', "question is empty"),
        (b'{"question": 7}', "question must be a text"),
        (b'{"question": null}', "question must be a text"),
        (b'{"question": "a", "session": ["x"]}', "session must be a text"),
        (b'{"question": "a", "priority": "gold"}', "priority must be vip or standard"),
        (b'{"question": "a", "priority": ["vip"]}', "priority must be vip or standard"),
        (b'{"question": "a", "qestion": "b"}', "unknown field 'qestion'"),
        (b'{"question": "\\ud800"}', "surrogate"),
        (json.dumps({"question": "x" * 1001}).encode(), "longer than 1000"),
        (json.dumps({"question": "x", "session": "x" * 201}).encode(), "longer than 200"),
    ],
)
def test_a_wrong_body_is_refused_with_what_is_wrong_and_a_hint(body: bytes, says: str) -> None:
    with pytest.raises(RequestError, match=says) as refused:
        read_asked(body)
    assert refused.value.status == 400
    assert refused.value.hint


def test_an_unknown_field_is_named_shortly_and_without_control_bytes() -> None:
    with pytest.raises(RequestError) as refused:
        read_asked(json.dumps({"question": "a", "\x1b[31m" + "z" * 500: 1}).encode())
    assert "\x1b" not in refused.value.message
    assert len(refused.value.message) < 80
