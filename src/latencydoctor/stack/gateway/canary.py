"""Which replica answers a session: a fixed share of the sessions goes to the canary, always the same ones."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from latencydoctor.errors import ContentError, Location
from latencydoctor.stack.files import write_atomically

FILE_NAME = "canary.json"

_BUCKETS = 2**32


@dataclass(frozen=True, slots=True)
class Canary:
    """A share of the sessions (0..1) and what serves them: a version of the model, another Triton, or both.

    An empty version means the model's default policy, an empty endpoint (host:port) the stable Triton.
    """

    share_ratio: float = 0.0
    model_version: str = ""
    endpoint: str = ""

    def arm(self, session: str) -> str:
        """`canary` for the share of the sessions, else `stable`; the same for a session until the share moves.

        A larger share keeps all sessions of the smaller one.
        """
        if self.share_ratio <= 0:
            return "stable"
        bucket = int.from_bytes(blake2b(session.encode(), digest_size=4).digest())
        return "canary" if bucket < self.share_ratio * _BUCKETS else "stable"


def check_canary(values: object, location: Location | None = None) -> Canary:
    """The canary a JSON value describes; ContentError names the first thing wrong with it."""
    if not isinstance(values, dict) or not values.keys() <= {"share_ratio", "model_version", "endpoint"}:
        message = "expected an object with share_ratio, model_version and endpoint only"
        raise ContentError(message, hint='For example {"share_ratio": 0.2, "model_version": "2"}.', location=location)
    share = values.get("share_ratio", 0.0)
    version, endpoint = values.get("model_version", ""), values.get("endpoint", "")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ContentError("share_ratio must be a number from 0 to 1", hint="0.2 is a fifth.", location=location)
    if not isinstance(version, str) or not (version == "" or (version.isdecimal() and len(version) < 10)):
        raise ContentError("model_version must be a text of digits", hint='For example "2".', location=location)
    if not isinstance(endpoint, str) or not _is_loopback(endpoint):
        hint = "The stack stays on this machine: use 127.0.0.1:PORT."
        raise ContentError("endpoint must be a port on the loopback address", hint=hint, location=location)
    return Canary(float(share), version, endpoint)


def _is_loopback(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    return endpoint == "" or (host == "127.0.0.1" and port.isdecimal() and 0 < int(port[:6]) < 65536)


def load_canary(folder: Path) -> Canary:
    """The canary that was set before the gateway was restarted, or none; ContentError when its file is broken."""
    path = folder / FILE_NAME
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Canary()
    except (OSError, ValueError) as error:
        raise ContentError(f"cannot be read: {error}", hint="Delete it.", location=Location(str(path))) from error
    return check_canary(values, Location(str(path)))


def save_canary(folder: Path, canary: Canary) -> None:
    """Keeps the canary over a restart, else routing would change and nobody had changed it. OSError passes."""
    write_atomically(folder / FILE_NAME, json.dumps(asdict(canary)) + "\n")
