"""The settings that were in effect before: the text of each generation with the time, in one file beside the settings.

Whoever wants an earlier generation back finds it here, byte for byte. The newest stand last; the number and the file's
size are bounded, and the file is replaced whole, so that a reader or a crash sees one state of it.
"""

from __future__ import annotations

import json
import pwd
import time
from collections.abc import Callable
from pathlib import Path

from latencydoctor.stack.files import write_atomically

MOST_KEPT = 20
"""A night of trying things out is a handful of changes; what is older is in somebody's version control."""

MOST_BYTES = 200_000
"""Of the whole file: readers take no larger ones, and a settings file is about 1 kB."""

Entry = dict[str, object]


class KeptGenerations:
    """The file at `path`, written by the controller alone."""

    def __init__(self, path: Path, now_s: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now_s = now_s

    def keep(self, generation: int, text: str, owner: str) -> None:
        """Adds a text that has come into effect; one that is in effect already keeps its time. OSError passes."""
        entries = self._read()
        if entries and entries[-1].get("text") == text:
            return
        entries.append({"generation": generation, "in_effect_s": self._now_s(), "owner": owner, "text": text})
        entries = entries[-MOST_KEPT:]
        while len(entries) > 1 and len(_dump(entries).encode()) > MOST_BYTES:
            del entries[0]
        write_atomically(self._path, _dump(entries))

    def newest(self) -> str:
        """The text that came into effect last; empty where none is kept."""
        entries = self._read()
        text = entries[-1].get("text") if entries else ""
        return text if isinstance(text, str) else ""

    def _read(self) -> list[Entry]:
        """What was kept so far; a file that cannot be read or is damaged is begun anew."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            entries = found["generations"]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _dump(entries: list[Entry]) -> str:
    return json.dumps({"generations": entries}, ensure_ascii=False, indent=1) + "\n"


def owner_of(path: Path) -> str:
    """Whose file it is: a change replaces the file, so its owner is who made the change. Empty when it is gone."""
    try:
        uid = path.lstat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # no name for this number, as in some containers
        return str(uid)
