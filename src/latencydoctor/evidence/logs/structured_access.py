"""Access lines of proxies that write JSON: Envoy, nginx, Traefik, Caddy, and servers whose logger does the same.

Such a line has no message. It is read as the line that its program writes as text, `"<METHOD> <path> <protocol>"
<status> <flags> <details>`, so that one set of patterns serves both.
"""

from __future__ import annotations

from collections.abc import Mapping

_STATUS_KEYS = ("response_code", "status", "status_code", "statusCode", "DownstreamStatus", "resp_status")
_METHOD_KEYS = ("method", "request_method", "RequestMethod", "req_method")
_PATH_KEYS = ("path", "uri", "request_uri", "url", "RequestPath", "x-envoy-original-path")
_PROTOCOL_KEYS = ("protocol", "proto", "server_protocol", "RequestProtocol")
_HOLDERS = (("request", "req"), ("response", "res"))
_LONGEST_PATH = 200


def access_text(values: Mapping[str, object]) -> str:
    """The access line that these keys stand for; empty where they are none."""
    request = values.get("request")
    asked, answered = (_inner(values, names) for names in _HOLDERS)
    status = _status(values) or _status(answered)
    if not status:
        return ""
    if isinstance(request, str) and " HTTP/" in request:
        line = request
    else:
        method = _first(values, _METHOD_KEYS) or _first(asked, _METHOD_KEYS)
        path = _first(values, _PATH_KEYS) or _first(asked, _PATH_KEYS)
        if not method or not path:
            return ""
        line = f"{method} {path} {_first(values, _PROTOCOL_KEYS) or _first(asked, _PROTOCOL_KEYS) or 'HTTP/1.1'}"
    method, _, rest = line.partition(" ")
    path, _, protocol = rest.rpartition(" ")
    # What a client asked for is no witness: its question and whatever is long are left out.
    path = path.partition("?")[0][:_LONGEST_PATH]
    flags = _first(values, ("response_flags",))
    details = _first(values, ("response_code_details",))
    told = [f'"{method} {path} {protocol}"', str(status), flags, details]
    return " ".join(one for one in told if one and one != "-")


def _inner(values: Mapping[str, object], names: tuple[str, ...]) -> Mapping[str, object]:
    for name in names:
        value = values.get(name)
        if isinstance(value, dict):
            return value
    return {}


def _first(values: Mapping[str, object], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := values.get(key), str) and value), "")


def _status(values: Mapping[str, object]) -> int:
    for key in _STATUS_KEYS:
        value = values.get(key)
        # nginx quotes what its configuration quotes.
        if isinstance(value, str) and len(value) == 3 and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return value
    return 0
