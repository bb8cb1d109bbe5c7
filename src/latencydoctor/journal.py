"""The journal of a run: append-only JSON lines, each chained to the one before, on disk before its step happens.

One file a run. Every record carries its place, the SHA-256 of the record before and its own; so a changed byte anywhere
is found, and a tail that was being written when the process died is told apart from damage: it has no newline yet.
The chain finds accidents; it is no proof against someone who can write the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from latencydoctor.errors import KnownError, UsageError
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.model.remedy import JournalEntry, RunEvent, RunState, RunSummary
from latencydoctor.remedy.plan_file import canonical
from latencydoctor.remedy.secrecy import redact

FIRST = "0" * 64
"""What stands for "the record before" in the first record."""

MAX_JOURNAL_BYTES = 64 << 20
_SUFFIX = ".jsonl"
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")


@dataclass(frozen=True, slots=True)
class Chain:
    """A journal as read: the records that hold, where it broke (empty: nowhere), and how long they are in bytes.

    `cut_bytes` is the length of an unfinished last line; such a record was never confirmed to be on disk.
    """

    entries: tuple[JournalEntry, ...]
    damage: str
    whole_bytes: int
    cut_bytes: int
    last: str


def read_chain(content: bytes) -> Chain:
    """All records that hold, in order; reading stops at the first one that does not."""
    entries: list[JournalEntry] = []
    previous, at = FIRST, 0
    while (end := content.find(b"\n", at)) >= 0:
        entry, own, problem = _read_record(content[at:end], len(entries), previous)
        if entry is None:
            return Chain(tuple(entries), f"record {len(entries) + 1}: {problem}", at, 0, previous)
        entries.append(entry)
        previous, at = own, end + 1
    return Chain(tuple(entries), "", at, len(content) - at, previous)


def _read_record(line: bytes, seq: int, previous: str) -> tuple[JournalEntry | None, str, str]:
    try:
        raw = json.loads(line)
        own = raw.pop("sha256")
        text = canonical(raw)
        entry = JournalEntry(int(raw["seq"]), float(raw["at_s"]), str(raw["event"]), dict(raw["fields"]))
        # The line must be the very bytes that were written, not only mean the same.
        same = line == _line(raw, own)
        before = raw["prev"]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None, "", "it is not a record"
    if not same or own != _sha256(text):
        return None, "", "it was changed: its own digest does not match"
    if before != previous or entry.seq != seq:
        return None, "", "it does not follow the record before"
    return entry, own, ""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _line(raw: Mapping[str, object], own: str) -> bytes:
    return canonical({**raw, "sha256": own}).encode()


def _storable(value: object) -> object:
    """A value as every journal can hold it: secrets taken out, half characters escaped, and no number that is none.

    What comes from a server may be anything, and a record that cannot be written would keep a change from being undone.
    """
    if isinstance(value, str):
        return redact(value.encode(errors="backslashreplace").decode())
    if isinstance(value, Mapping):
        return {str(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class JournalFile:
    """One run's journal, open for appending; the file is made by the first record. Implements `RunLog`."""

    def __init__(
        self,
        path: Path,
        run_id: str,
        now_s: Callable[[], float],
        after: Chain | None = None,
        effects: Effects = unwatched,
    ) -> None:
        self._path = path
        self._run_id = run_id
        self._now_s = now_s
        self._effects = effects
        self._exists = after is not None
        self._bytes = after.whole_bytes if after else 0
        self._seq = len(after.entries) if after else 0
        self._previous = after.last if after else FIRST

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self._run_id

    @property
    def path(self) -> str:
        """Where the journal lies."""
        return str(self._path)

    def record(self, event: str, **fields: object) -> None:
        """Append one record; it is on disk when this returns. KnownError when it cannot be written."""
        raw: dict[str, object] = {
            "seq": self._seq,
            "at_s": round(self._now_s(), 3),
            "event": event,
            "fields": _storable(fields),
            "prev": self._previous,
        }
        own = _sha256(canonical(raw))
        try:
            self._append(_line(raw, own) + b"\n")
        except OSError as error:
            raise KnownError(
                f"the journal {self._path} cannot be written: {error.strerror}",
                hint="Nothing may be changed without a journal; make room or fix the folder's rights.",
            ) from error
        self._seq += 1
        self._previous = own

    def _append(self, line: bytes) -> None:
        creating = 0 if self._exists else os.O_CREAT | os.O_EXCL
        if creating:
            self._make_folder()
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | creating
        with self._effects(Effect.JOURNAL_FILE):
            descriptor = os.open(self._path, flags, 0o600)
        try:
            self._exists = True
            # What an earlier process, or a full disk, left half written was never confirmed and would break the chain.
            with self._effects(Effect.JOURNAL_CUT):
                os.ftruncate(descriptor, self._bytes)
            with self._effects(Effect.JOURNAL_WRITE):
                _write_all(descriptor, line)
            with self._effects(Effect.JOURNAL_SYNC):
                os.fsync(descriptor)
            if creating:
                with self._effects(Effect.JOURNAL_ENTRY_SYNC):
                    _sync_folder(self._path.parent)
            self._bytes += len(line)
        finally:
            os.close(descriptor)

    def _make_folder(self) -> None:
        """The folder of all journals; its name must be on disk too, also when the process that made it was killed."""
        folder = self._path.parent
        with self._effects(Effect.JOURNAL_FOLDER):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._effects(Effect.JOURNAL_FOLDER_SYNC):
            _sync_folder(folder.parent)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class JournalFolder:
    """All runs of one target. Implements `RunHistory`."""

    def __init__(self, folder: Path, now_s: Callable[[], float], effects: Effects = unwatched) -> None:
        self._folder = folder
        self._now_s = now_s
        self._effects = effects

    def list(self) -> tuple[RunSummary, ...]:
        """Newest first, as far as each journal can be read; nothing is written, not even the folder.

        KnownError for a folder that cannot be read: it is not an empty one, and may hold an open run.
        """
        try:
            names = [path.stem for path in self._folder.iterdir() if path.suffix == _SUFFIX]
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise KnownError(f"{self._folder} cannot be read: {error.strerror}", hint="Check its rights.") from error
        run_ids = [name for name in names if _named_s(name) is not None]
        found = [_summary(run_id, self._chain(run_id), str(self._path(run_id))) for run_id in run_ids]
        return tuple(sorted(found, key=lambda run: (run.started_s, run.run_id), reverse=True))

    def entries(self, run_id: str) -> tuple[JournalEntry, ...]:
        """All whole records of a run; KnownError where the chain is broken."""
        return self._sound(run_id).entries

    def start(self) -> JournalFile:
        """A new run's journal; its name is the time and six random digits."""
        now_s = self._now_s()
        run_id = f"{datetime.fromtimestamp(now_s, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        return JournalFile(self._path(run_id), run_id, self._now_s, effects=self._effects)

    def resume(self, run_id: str) -> JournalFile:
        """An unfinished run's journal, continued after its last whole record."""
        return JournalFile(self._path(run_id), run_id, self._now_s, self._sound(run_id), self._effects)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}{_SUFFIX}"

    def _sound(self, run_id: str) -> Chain:
        chain = self._chain(run_id)
        if chain.damage:
            raise KnownError(
                f"the journal {self._path(run_id)} is damaged at {chain.damage}",
                hint="Compare the settings with the last record that holds, put them right by hand, "
                "then move the journal away.",
            )
        return chain

    def _chain(self, run_id: str) -> Chain:
        if _named_s(run_id) is None:
            raise UsageError(f"{run_id!r} is not a run", hint="List them with `latencydoctor runs`.")
        path = self._path(run_id)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                info = os.fstat(stream.fileno())
                if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_JOURNAL_BYTES:
                    raise KnownError(f"{path} is no journal", hint="Move it away.")
                return read_chain(stream.read())
        except FileNotFoundError as error:
            raise UsageError(f"there is no run {run_id}", hint="List them with `latencydoctor runs`.") from error
        except OSError as error:
            raise KnownError(f"{path} cannot be read: {error.strerror}", hint="Check the folder's rights.") from error


def _named_s(run_id: str) -> float | None:
    """The time that a run is named by, None for what is no run's name."""
    if not _RUN_ID.fullmatch(run_id):
        return None
    try:
        return datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _summary(run_id: str, chain: Chain, path: str) -> RunSummary:
    first = chain.entries[0] if chain.entries else None
    told: Mapping[str, object] = first.fields if first and first.event == RunEvent.STARTED else {}
    last = chain.entries[-1] if chain.entries else None
    ended = last is not None and last.event == RunEvent.ENDED and not chain.damage
    return RunSummary(
        run_id=run_id,
        fix=str(told.get("fix", "")),
        target=str(told.get("target", "")),
        state=RunState.OPEN if last is None or chain.damage else _state(last),
        started_s=first.at_s if first else _named_s(run_id) or 0.0,
        ended_s=last.at_s if ended and last else None,
        path=path,
        kind=str(told.get("kind", "apply")),
        of=str(told.get("of", "")),
        damage=chain.damage,
    )


def _state(last: JournalEntry) -> RunState:
    if last.event == RunEvent.UNDO_FAILED:
        return RunState.ROLLBACK_FAILED
    told = last.fields.get("state") if last.event == RunEvent.ENDED else None
    return RunState(told) if told in {state.value for state in RunState} else RunState.OPEN
