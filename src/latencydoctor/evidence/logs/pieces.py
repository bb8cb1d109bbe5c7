"""Lines that a container's runtime cut into pieces because they were long: which belong together, and their whole.

CRI marks a piece that goes on with `P` and the last one with `F`; in Docker's json-file every piece but the last lacks
the newline. Pieces of the two streams may alternate; only those of one stream belong together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

_CRI = re.compile(rb"(\d{4}-\d\d-\d\dT[0-9:.]{8,20}(?:Z|[+-]\d\d:?\d\d) (stdout|stderr) )([PF]) ")
_DOCKER_START = b'{"log":"'
_DOCKER_END = b'\\n","'
_MOST_PIECES = 64
"""16 KiB each: far more of a line than is looked at."""


def is_piece(data: bytes) -> bool:
    """Whether more of this line follows in later ones."""
    if not data.startswith(_DOCKER_START):
        match = _CRI.match(data)
        return match is not None and match[3] == b"P"
    end = data.find(_DOCKER_END)
    # Quotes inside the text are escaped, so this is where it ends; unless the backslash itself is escaped.
    if end > 0 and data[end - 1 : end] != b"\\":
        return False
    docker = _docker(data)
    return docker is not None and not str(docker["log"]).endswith("\n")


def gather_pieces(data: bytes, following: Iterable[bytes]) -> list[bytes]:
    """A first piece and those that continue it among the lines that follow, up to the last one of its stream."""
    found = [data]
    stream = _stream(data)
    if stream is None or not is_piece(data):
        return found
    for line in following:
        if len(found) >= _MOST_PIECES:
            break
        other = _stream(line)
        if other is None:
            break
        if other == stream:
            found.append(line)
            if not is_piece(line):
                break
    return found


def join_pieces(pieces: Sequence[bytes]) -> bytes:
    """One whole line in the wrapper of the first piece, so that it reads like any other; empty of nothing."""
    if not pieces:
        return b""
    first = _CRI.match(pieces[0])
    if first is not None:
        texts = [piece[match.end() :].rstrip(b"\r") for piece in pieces if (match := _CRI.match(piece))]
        return first[1] + b"F " + b"".join(texts)
    docker = _docker(pieces[0])
    if docker is None:
        return b"".join(pieces)
    logs = [str(other["log"]) for piece in pieces if (other := _docker(piece)) is not None]
    return json.dumps({**docker, "log": "".join(logs).removesuffix("\n") + "\n"}).encode()


def _stream(data: bytes) -> bytes | None:
    match = _CRI.match(data)
    if match is not None:
        return match[2]
    docker = _docker(data)
    return None if docker is None else str(docker.get("stream", "")).encode()


def _docker(data: bytes) -> dict[str, object] | None:
    if not data.startswith(_DOCKER_START):
        return None
    try:
        parsed: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("log"), str):
        return None
    return parsed
