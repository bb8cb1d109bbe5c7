"""Whether a file is a log at all: folders of logs hold core dumps, pictures and journals in binary form as well."""

from __future__ import annotations

import re

_KINDS = (
    (b"LPKSHHRH", "a journal in binary form; hand on what `journalctl --file ... -o json` prints"),
    (b"\x7fELF", "a program or a core dump"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"PK\x03\x04", "a zip file; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file; unpack it first"),
    (b"%PDF-", "a PDF"),
    (b"SQLite format 3\0", "a database"),
    (b"PAR1", "a table of columns"),
    (b"\x04\x22\x4d\x18", "packed with lz4; unpack it first"),
    (b"\xff\xfe", "text in UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "text in UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`"),
)
_TAR = slice(257, 262)
_UNPRINTED = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FIRST_LINE_BYTES = 512
_MOST_ODD_RATIO = 0.3
"""Random bytes are two thirds control characters and broken UTF-8; prompts in binary among lines are far below."""


def no_log(head: bytes) -> str:
    """What a file that starts with these bytes clearly is instead of a log; empty if it may be one."""
    kind = next((words for magic, words in _KINDS if head.startswith(magic)), "")
    if kind or not head:
        return kind
    if head[_TAR] == b"ustar":
        return "a tar file; unpack it first"
    line = head[:_FIRST_LINE_BYTES].partition(b"\n")[0]
    if line and not _UNPRINTED.search(line) and b"\xef\xbf\xbd" not in line.decode("utf-8", "replace").encode():
        return ""
    broken = head.decode("utf-8", "replace").count("\ufffd") + len(_UNPRINTED.findall(head))
    return "no text" if broken > _MOST_ODD_RATIO * len(head) else ""
