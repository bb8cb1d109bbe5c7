"""What one log line says: its moment, its level, its message and its numbers, whichever known format it has.

A line is read from the outside in: wrappers first (runtimes, collectors, process prefixes, nested in any order), then
the program's own head, until the message is left. `formats.LAYERS` says what to try. Nothing here ever fails: a line
of no known format is its own message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from latencydoctor.evidence.logs import journal_export, pieces
from latencydoctor.evidence.logs.clock import parse_http_date
from latencydoctor.evidence.logs.damage import clean, unescape
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import FRAME, Draft
from latencydoctor.evidence.logs.formats import LAYERS, plain
from latencydoctor.evidence.logs.structured import journal_fields

__all__ = ["ALWAYS_LOOK", "LineRecord", "RawLike", "clean", "read_line", "read_raw"]

ALWAYS_LOOK: Final = (
    r"MESSAGE\\{0,3}(?:\"|&quot;|&#34;) ?: ?\[ ?(?:\[ ?)?\d",
    r"[0-9Z] std(?:out|err) P ",
    r'(?:[^n]|[^\\]n)","stream": ?"std',
    r"\x00{4}",
)
"""What raw lines show whose bytes hide their message: byte numbers, pieces that go on, lengths of binary fields."""

_NO_LENGTH = b"\0\0\0\0"
"""Of a length in eight bytes these are left even where one of the others is a newline and the line begins behind it."""

MOST_LAYERS: Final = 10
"""Six wrappers and a quotation around a process's line, which may relay another program's."""

_REPEATED = re.compile(
    r"\s{0,4}\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates logs[^)]{0,300}\))?", re.ASCII
)
_STATUS = re.compile(r" HTTP/\d(?:\.\d)?\"? (\d{3})\b", re.ASCII)
_EXCEPTIONS = ("Error", "Exception", "Interrupt", "Timeout", "Exit")
_TRACEBACK = "Traceback (most recent call last)"
_ENDED = re.compile(rb"\s{1,20}Finished: {1,20}(\S[^\r\n]{8,60})")
_KUBE_STATE = re.compile(
    r"\s{0,20}(?:Reason: {1,20}(?:OOMKilled|Error|Evicted|Completed)|Exit Code: {1,20}\d)", re.ASCII
)


class LineRecord(NamedTuple):
    """One line, understood. A tuple, since one is made for every candidate line and it costs half of a dataclass.

    `level` is one of DEBUG, INFO, WARNING, ERROR, CRITICAL, or empty where the format has none. `text` is the innermost
    message, without heads. `event` is the name a structured line gives itself; `count` the events it stands for.
    `continued` marks a line whose innermost part has no head of its own: a row of a table, a frame of a traceback, or a
    program that prints none; `structured` one that was a JSON object. `rank` is the worker's number where a prefix
    names one, `source` the pod, service or unit, `process` a prefix's process or actor, `file_line` the place in the
    program's own source. `partial` says that the line goes on in another. `time_s` is the line's own moment, else its
    wrapper's, which is `outer_s`; `began_s` when what it tells of began, where the format says so. `quoted` marks
    copies of lines, as tickets hold them.
    """

    time_s: float | None
    level: str
    text: str
    event: str = ""
    fields: tuple[tuple[str, float], ...] = ()
    count: int = 1  # type: ignore[assignment]  # hides the count() of tuples, which nobody needs of a record
    continued: bool = False
    structured: bool = False
    rank: str = ""
    source: str = ""
    process: str = ""
    program: str = ""
    file_line: str = ""
    partial: bool = False
    stream: str = ""
    status: int = 0
    outer_s: float | None = None
    began_s: float | None = None
    quoted: bool = False


class RawLike(Protocol):
    """A candidate line with what stands around it: `before` nearest first, `after` in order; both may be cut short."""

    @property
    def data(self) -> bytes:
        """The line without its newline."""
        ...

    def lines_before(self) -> list[bytes]:
        """The lines before it, nearest first."""
        ...

    def lines_after(self) -> list[bytes]:
        """The lines after it, nearest first."""
        ...


def read_line(text: str, reference: float | Dating) -> LineRecord:
    """What a cleaned line says. `reference` dates stamps without a year or zone; one `Dating` a file learns both."""
    dating = reference if isinstance(reference, Dating) else Dating(reference)
    draft = Draft()
    if "&" in text:
        text = unescape(text, draft)
    return _finish(_peel(text, draft, dating), draft)


def read_raw(line: RawLike, dating: Dating) -> LineRecord:
    """What a candidate line says, joined with its further pieces, or with its journal entry's other fields."""
    data = line.data
    if pieces.is_piece(data):
        return read_line(clean(pieces.join_pieces(pieces.gather_pieces(data, line.lines_after()))), dating)
    if data.startswith(b"MESSAGE=") or _NO_LENGTH in data[:8] or "export" in dating.seen:
        before = line.lines_before()
        if journal_export.is_entry_line(data, before):
            dating.saw("export")
            return _exported(data, before, line.lines_after(), dating)
    record = read_line(clean(data), dating)
    if record.continued and record.time_s is None and _KUBE_STATE.match(record.text):
        return _described(record, line)
    return record


def _exported(data: bytes, before: Sequence[bytes], after: Sequence[bytes], dating: Dating) -> LineRecord:
    message, values = journal_export.entry(data, before, after)
    draft = Draft()
    journal_fields(values, draft, dating)
    return _finish(_peel(clean(message), draft, dating), draft)


def _described(record: LineRecord, line: RawLike) -> LineRecord:
    """`Reason:` and `Exit Code:` of a container's last state: its end stands a few lines below."""
    for following in line.lines_after()[:6]:
        ended = _ENDED.match(following)
        if ended is not None:
            moment = parse_http_date(ended[1].decode("ascii", "replace"))
            return record._replace(time_s=moment, program="kubernetes", text=record.text.strip())
    return record._replace(program="kubernetes", text=record.text.strip())


def _peel(text: str, draft: Draft, dating: Dating) -> str:
    """Take layer after layer off; what is left is the message."""
    for _ in range(MOST_LAYERS):
        for layer in LAYERS.get(text[:1], ()):
            rest = layer(text, draft, dating)
            if rest is not None:
                text = rest
                break
        else:
            break
        if draft.headed:
            break
    return text


def _finish(text: str, draft: Draft) -> LineRecord:
    if "across cluster]" in text:
        text = _repeated(text, draft)
    if not draft.status and " HTTP/" in text:
        status = _STATUS.search(text)
        draft.status = int(status[1]) if status else 0
    level = draft.level or draft.priority
    if not draft.headed:
        draft.program = draft.program or plain.owner(text)
        level = level or _bare_level(text)
    time_s, outer_s = draft.time_s, draft.outer_s
    # A wrapper's stamp of the same second is the finer one of the two.
    if time_s is None or (
        outer_s is not None and draft.exact and time_s.is_integer() and 0.0 <= outer_s - time_s < 1.0
    ):
        time_s = outer_s
    return LineRecord(
        time_s,
        level,
        text,
        draft.event,
        draft.fields,
        draft.count,
        not draft.headed and (not draft.whole or FRAME.match(text) is not None),
        draft.structured,
        draft.rank,
        draft.source,
        draft.process,
        draft.program,
        draft.file_line,
        draft.partial,
        draft.stream,
        draft.status,
        outer_s,
        draft.began_s,
        draft.quoted,
    )


def _bare_level(text: str) -> str:
    """A traceback's first and last line are errors, though they have no level."""
    if text.startswith(_TRACEBACK):
        return "ERROR"
    name, colon, _ = text[:200].partition(":")
    return "ERROR" if name.endswith(_EXCEPTIONS) and " " not in name and (colon or len(name) < 200) else ""


def _repeated(text: str, draft: Draft) -> str:
    """Ray writes once what many workers said, with their number behind it."""
    match = _REPEATED.search(text, max(0, len(text) - 600))
    if match is None:
        return text
    draft.count *= max(1, int(match[1]))
    return text[: match.start()] + text[match.end() :]
