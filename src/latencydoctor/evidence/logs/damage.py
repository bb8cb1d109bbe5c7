"""What happens to lines on the way: colours, control bytes, progress bars, quoting, two writers in one line.

Everything here is linear in the length of the line.
"""

from __future__ import annotations

import html
import re
from itertools import pairwise

from latencydoctor.evidence.logs.draft import Draft

LOOKED_AT_CHARACTERS = 256 * 1024
"""The part of a line that is looked at; dumps of arguments and prompts reach 100 kB, a damaged file has no newline."""

# Terminal colour sequences go as a whole (their escape may have been printed as two characters); then whatever is left
# of the control characters, of those that turn the direction of text, and of half characters that JSON can hold.
_UNSEEN = re.compile(
    r"(?:\x1b|\^\[)\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|"
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PROGRESS = re.compile(r"\d{1,3}%\||(?:it|s|B)/(?:s|it)\b|\d{1,3}% ?\[")
_MOST_STATES = 200
_ENTITY = re.compile(r"&(?:quot|lt|gt|#39|#34|#x27|amp);")
_HEADS = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d |"
    r"[EWI]\d{4} \d\d:\d\d:\d\d\.\d{1,9} {1,9}\d{1,10} [^\s:\]]{1,200}:\d{1,7}\] |"
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,40}\] |"
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d{1,9}Z? {1,4}\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b",
    re.ASCII,
)


def clean(data: bytes) -> str:
    """The text of a line as it may be shown: undecodable bytes replaced, control and direction characters gone.

    Of the states of a progress bar, which bare carriage returns separate, the last one is the line.
    """
    if b"\r" in data:
        data = _after_returns(data)
    text = data[:LOOKED_AT_CHARACTERS].decode("utf-8", "replace")
    if text.isprintable() and "^[" not in text:
        return text
    return tidy(text).replace("\n", "")


def tidy(text: str) -> str:
    """A text without colours and control characters; line breaks and tabs stay."""
    if text.isprintable() and "^[" not in text:
        return text
    return _UNSEEN.sub("", text)


def _after_returns(data: bytes) -> bytes:
    """The last state of a line that was written over itself; but never a progress bar where something else was said."""
    kept = b""
    for state in reversed(data.rsplit(b"\r", _MOST_STATES)):
        if not state.strip(b" \x00\n"):
            continue
        if not _PROGRESS.search(state[-2000:].decode("latin-1")):
            return state
        kept = kept or state
    return kept


def unescape(text: str, draft: Draft) -> str:
    """A line whose every quote or bracket was HTML-escaped (copied out of a web page), as it was before."""
    if _ENTITY.search(text, 0, 2000) is None or '"' in text or "<" in text or ">" in text.lstrip("> "):
        return text
    draft.quoted = True
    return tidy(html.unescape(text))


def split_interleaved(text: str) -> list[str]:
    """The lines in a line into which a second writer got its own: cut before every head of a known program."""
    cuts = [match.start() for match in _HEADS.finditer(text)]
    bounds = [0, *(cut for cut in cuts if cut), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]
