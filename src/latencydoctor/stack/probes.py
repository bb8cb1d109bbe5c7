"""Asks each part whether it works, the way its users would: by a real inference, never by a process id alone."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit, urlunsplit

from latencydoctor.stack.controller_state import Progress, parse_state
from latencydoctor.stack.encoder.shape import MAX_TOKENS
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.programs import triton_name
from latencydoctor.stack.settings import MODEL_NAME

TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, or status 0 and the reason there is none."""

    status: int
    body: str


def http_get(url: str, timeout_s: float = TIMEOUT_S) -> Answer:
    """GET without proxies or redirects; never raises for an absent server."""
    return _http("GET", url, "", timeout_s)


def _http(method: str, url: str, body: str, timeout_s: float) -> Answer:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout_s)
    try:
        path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request(method, path, body.encode() or None)
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(MAX_ANSWER_BYTES).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, str(error) or type(error).__name__)
    finally:
        connection.close()


def _http_ready(url: str) -> str:
    answer = http_get(url)
    if answer.status == 200:
        return ""
    return f"answers {answer.status}" if answer.status else answer.body


def probe_valkey(path: str) -> str:
    """PING over the Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(path)
            connection.sendall(b"PING\r\n")
            said = connection.recv(64)
        except OSError as error:
            return error.strerror or str(error)
    return "" if said.startswith(b"+PONG") else f"answers {said!r}"


def probe_triton(base: str) -> str:
    """One real inference: after its Python stub dies, Triton fails every request and still calls itself ready."""
    tensors = [
        {"name": name, "shape": [1, MAX_TOKENS], "datatype": "INT64", "data": [values]}
        for name, values in (
            ("input_ids", [101, 102] + [0] * (MAX_TOKENS - 2)),
            ("attention_mask", [1, 1] + [0] * (MAX_TOKENS - 2)),
        )
    ]
    answer = _http("POST", f"{base}/v2/models/{MODEL_NAME}/infer", json.dumps({"inputs": tensors}), TIMEOUT_S)
    if answer.status == 200:
        return ""
    return f"answers {answer.status}: {answer.body}" if answer.status else answer.body


def ask_controller(endpoints: Endpoints) -> Progress | None:
    """Which settings are in effect; None when the controller does not answer."""
    answer = http_get(endpoints.controller_metrics.removesuffix("/metrics") + "/state")
    try:
        return parse_state(answer.body)
    except ValueError:
        return None


def probe_controller(endpoints: Endpoints) -> str:
    """Whether some settings are in effect: without, the model in Triton is not known to be the wanted one."""
    progress = ask_controller(endpoints)
    if progress is None:
        return "does not answer"
    return "" if progress.generation else progress.error or "no settings are in effect yet"


def probes(endpoints: Endpoints, replicas: Iterable[int] = (1,)) -> dict[str, Callable[[], str]]:
    """For each part of a stack with these Tritons a question whose answer is "" when it works, else what is wrong."""
    found: dict[str, Callable[[], str]] = {
        "valkey": lambda: probe_valkey(endpoints.valkey_socket),
        **{triton_name(one): partial(probe_triton, endpoints.tritons[one - 1].http) for one in replicas},
        "controller": lambda: probe_controller(endpoints),
        "gateway": lambda: _http_ready(f"{endpoints.gateway}/ready"),
        "prometheus": lambda: _http_ready(f"{endpoints.prometheus}/-/ready"),
    }
    if endpoints.alertmanager:
        found["alertmanager"] = lambda: _http_ready(f"{endpoints.alertmanager}/-/ready")
    return found
