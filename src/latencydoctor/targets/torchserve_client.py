"""The management API of one TorchServe: questions, and the few requests that change a model. One request a connection.

http.client follows no redirect and uses no proxy, so that credentials go to the named server and nowhere else.
"""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from urllib.parse import quote, urlencode, urlsplit

from latencydoctor.errors import KnownError
from latencydoctor.evidence.redact import plain
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.targets.exchange import FAILURES, exchange
from latencydoctor.targets.torchserve_state import Registration, Served, served

TIMEOUT_S = 10.0
"""TorchServe answers within milliseconds, with GPUs within a fraction of a second a worker; an unregistration within
seconds, since it waits for workers to end."""

MAX_ANSWER_BYTES = 4 << 20
"""A description has 0.7 kB and 0.2 kB for each worker; all versions of a model are told in one answer."""

_ENABLE = "TorchServe 0.11 and newer register and unregister only when started with --enable-model-api."
_TOKEN = "Name the file with the management key: bearer_file, such as TorchServe's own key_file.json."

_UP = "Is it the management address (port 8081 by default), and is the server up?"
_CA = "Name the CA of its certificate: ca_file; and cert_file, key_file where it wants to see one of yours."


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the management API is: an address without credentials, the headers to send, and the files for TLS."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str = ""
    certificate: tuple[str, str] | None = None


class UnansweredError(KnownError):
    """A request whose answer did not arrive: whether it was done, only the server's state can tell."""


class Management:
    """One model of one TorchServe. Every request passes through `effects`."""

    def __init__(self, connection: Connection, model: str, effects: Effects = unwatched) -> None:
        self.url = connection.url
        self.model = model
        self.effects = effects
        self._connection = connection
        self._path = f"/models/{quote(model, safe='')}"

    def of(self, model: str) -> Management:
        """Another model of the same server."""
        return Management(self._connection, model, self.effects)

    def read(self) -> Served:
        """The model's versions; none when it is not there. KnownError when the server does not say."""
        with self.effects(Effect.ASK_TORCHSERVE):
            status, default = self._asked("GET", self._path)
            every: object = None
            if status != 404:
                status, every = self._asked("GET", f"{self._path}/all")
        if status == 404:
            return Served()
        return served(default, every, self.model)

    def register(self, wanted: Registration) -> None:
        """Add the version with all its workers; they start afterwards."""
        asked = {
            "url": wanted.archive,
            "model_name": wanted.model,
            "batch_size": wanted.batch_size,
            "max_batch_delay": wanted.delay_ms,
            "initial_workers": wanted.min_workers,
            "response_timeout": wanted.response_timeout_s,
            "startup_timeout": wanted.startup_timeout_s,
            "synchronous": "false",
        }
        with self.effects(Effect.REGISTER_VERSION):
            self._done("POST", f"/models?{urlencode(asked)}")

    def scale(self, wanted: Registration) -> None:
        """Let the version have between so many workers; they start, or end, afterwards."""
        asked = {"min_worker": wanted.min_workers, "max_worker": wanted.max_workers, "synchronous": "false"}
        with self.effects(Effect.SCALE_WORKERS):
            self._done("PUT", f"{self._version(wanted.version)}?{urlencode(asked)}")

    def set_default(self, version: str) -> None:
        """Let requests that name no version go to this one."""
        with self.effects(Effect.SET_DEFAULT_VERSION):
            self._done("PUT", f"{self._version(version)}/set-default")

    def unregister(self, version: str) -> None:
        """Take the version away. What it executes fails with 500, and what waits for it is never answered."""
        with self.effects(Effect.UNREGISTER_VERSION):
            self._done("DELETE", self._version(version))

    def _version(self, version: str) -> str:
        return f"{self._path}/{quote(version, safe='')}"

    def _done(self, method: str, path: str) -> None:
        status, told = self._asked(method, path)
        if status not in (200, 202, 206):
            word = told.get("message") if isinstance(told, dict) else ""
            said = f": {plain(word)}" if isinstance(word, str) and word else ""
            hint = _ENABLE if status in (403, 405) else "See TorchServe's log (ts_log.log)."
            raise KnownError(f"TorchServe answered {status} to {method} {plain(path)}{said}", hint=hint)

    def _asked(self, method: str, path: str) -> tuple[int, object]:
        place, headers = urlsplit(self.url).path + path, dict(self._connection.headers)
        try:
            response, body = exchange(self._connect(), method, place, headers=headers, max_bytes=MAX_ANSWER_BYTES)
        except FAILURES as error:
            said = plain(str(error)) or type(error).__name__
            raise UnansweredError(
                f"TorchServe's management API at {self.url} does not answer: {said}",
                hint=_CA if isinstance(error, ssl.SSLError) else _UP,
            ) from error
        return response.status, self._told(response, body)

    def _told(self, response: HTTPResponse, body: bytes) -> object:
        try:
            told: object = json.loads(body) if len(body) <= MAX_ANSWER_BYTES else None
        except (ValueError, RecursionError):
            told = None
        message = told.get("message") if isinstance(told, dict) else None
        # TorchServe itself answers 400, not 401, to a token that is missing, wrong or expired.
        if response.status == 401 or (response.status == 400 and "Token Authorization" in str(message)):
            raise KnownError("TorchServe refused the credentials, or there were none", hint=_TOKEN)
        if response.status >= 500 or told is None:
            raise KnownError(
                f"{self.url} answered {response.status}{'' if told else ' and no JSON'}: {plain(str(message or ''))}",
                hint="Is it TorchServe's management address (port 8081 by default)?",
            )
        return told

    def _connect(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme != "https":
            return HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
        context = ssl.create_default_context(cafile=self._connection.ca_file or None)
        if self._connection.certificate is not None:
            context.load_cert_chain(*self._connection.certificate, password="")
        return HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=context)
