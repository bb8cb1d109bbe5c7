"""Access lines as JSON are read as the text that they stand for; what clients wrote is left out."""

from __future__ import annotations

import json

import pytest

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, read_line
from tests.unit.evidence.logs.examples import REFERENCE_S


def read(values: dict[str, object]) -> LineRecord:
    return read_line(json.dumps(values), Dating(REFERENCE_S))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"request": "POST /v1/a?q=x HTTP/1.1", "status": 504}, '"POST /v1/a HTTP/1.1" 504'),
        ({"request": "POST /v1/a HTTP/1.1", "status": "502"}, '"POST /v1/a HTTP/1.1" 502'),
        ({"method": "POST", "path": "/v1/a", "protocol": "HTTP/2", "response_code": 503, "response_flags": "UH",
          "response_code_details": "no_healthy_upstream"}, '"POST /v1/a HTTP/2" 503 UH no_healthy_upstream'),
        ({"method": "POST", "path": "/v1/a", "response_code": 200, "response_flags": "-"}, '"POST /v1/a HTTP/1.1" 200'),
        ({"RequestMethod": "POST", "RequestPath": "/v1/a", "DownstreamStatus": 502, "msg": ""},
         '"POST /v1/a HTTP/1.1" 502'),
        ({"msg": "said: out of memory", "request": {"method": "GET", "uri": "/a", "proto": "HTTP/2.0"}, "status": 500},
         '"GET /a HTTP/2.0" 500'),
        ({"msg": "cut off", "level": "error", "req": {"method": "GET", "url": "/a"}, "res": {"statusCode": 504}},
         'cut off: "GET /a HTTP/1.1" 504'),
    ],
)  # fmt: skip
def test_access_line_of_any_proxy(values: dict[str, object], text: str) -> None:
    assert read(values).text == text


@pytest.mark.parametrize(
    "values",
    [
        {"message": "m", "status": 504},
        {"message": "m", "method": "POST", "path": "/a"},
        {"message": "m", "method": "POST", "path": "/a", "status": 12},
        {"message": "m", "method": "POST", "path": "/a", "status": True},
        {"message": "m", "method": "POST", "status": 504},
        {"message": "m", "request": "free text", "status": 504},
    ],
)
def test_what_lacks_a_part_is_no_access_line(values: dict[str, object]) -> None:
    assert read(values).text == "m"


def test_a_long_path_is_cut() -> None:
    text = read({"method": "GET", "path": "/" + "a" * 9000, "status": 404}).text
    assert text == f'"GET /{"a" * 199} HTTP/1.1" 404'


def test_a_host_that_envoy_takes_out_is_told() -> None:
    values: dict[str, object] = {"type": "CONSECUTIVE_5XX", "action": "EJECT", "cluster_name": "c", "upstream_url": "u"}
    assert read(values).text == "outlier detection ejected u: CONSECUTIVE_5XX"
    assert read({**values, "action": "UNEJECT"}).text == ""
