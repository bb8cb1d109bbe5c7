"""Which of the stack's Tritons get questions: the controller says it in a file, the gateway looks again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from latencydoctor.stack.replicas import serving_in


class ServingFile:
    """The Tritons that take traffic, of all those there can be; `addresses` are `host:port`, the first one first."""

    def __init__(self, path: Path, addresses: Sequence[str]) -> None:
        self._path = path
        self._addresses = tuple(addresses)
        self._seen: tuple[int, int, int] | None = None
        self.serving = self._addresses[:1]
        self.changed()

    def changed(self) -> bool:
        """Whether others than at the last call take traffic; a look at an unchanged file costs one stat."""
        try:
            found = self._path.stat()
            identity = (found.st_ino, found.st_mtime_ns, found.st_size)
            if identity == self._seen:
                return False
            numbers = serving_in(self._path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            # A gateway without a controller, whom nobody will tell; or one that may open no more files for now.
            return False
        self._seen, before = identity, self.serving
        self.serving = tuple(self._addresses[one - 1] for one in numbers if one <= len(self._addresses)) or before
        return self.serving != before


class CatchUp:
    """Replicas that have just come, while the others have a backlog: a fair turn would leave it as it is.

    Each takes all new questions until it has as many in flight as the least busy of the others; from then on it has its
    turn like they do.
    """

    def __init__(self) -> None:
        self._new: set[str] = set()

    def came(self, addresses: Iterable[str]) -> None:
        """These have just begun to take traffic."""
        self._new.update(addresses)

    def next(self, addresses: Sequence[str], inflight: Callable[[str], int]) -> str | None:
        """The one of these that is to get the next question, None when it goes by turns."""
        if not self._new:
            return None
        others = [inflight(one) for one in addresses if one not in self._new]
        for address in [one for one in addresses if one in self._new]:
            if others and inflight(address) < min(others):
                return address
            self._new.discard(address)
        return None
