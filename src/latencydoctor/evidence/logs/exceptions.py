"""Messages that hold a whole traceback in one record (JSON logs, Triton's escaped messages): which part says what.

In a chain of exceptions the first is the cause; source lines inside frames say nothing about what happened.
"""

from __future__ import annotations

import re

TRACEBACK = "Traceback (most recent call last)"
CHAINED = ("The above exception was the direct cause", "During handling of the above exception")

_MOST_LINES = 2000
_MOST_FRAMES = 200
_MOST_EXCEPTION_BYTES = 400
_JOINING_CHARACTERS = 256


def parts(text: str) -> list[str]:
    """The parts of a message that may say what happened, the one that decides first; of most messages the whole.

    Of a message with tracebacks: its root exception, what stands before, the exceptions that came of it.
    """
    if "\n" not in text or TRACEBACK not in text:
        return [text]
    head: list[str] = []
    blocks: list[list[str]] = []
    inside = False
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        if line.lstrip().startswith(TRACEBACK):
            inside = True
            blocks.append([])
        elif not inside:
            head.append(line)
        elif line.strip() and not line.startswith((" ", "\t")) and not any(words in line for words in CHAINED):
            blocks[-1].append(line)
    said = [blocks[0], head, *blocks[1:]]
    return ["\n".join(lines) for lines in said if any(line.strip() for line in lines)]


CAUSED_BY = re.compile(r"\s{0,16}Caused by: ")
JAVA_FRAME = re.compile(r"\s{1,16}(?:at [\w.$]{1,300}[(/]|\.\.\. \d{1,6} (?:more|common))")
EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,12}"
    r"[A-Za-z_]\w{0,80}(?:Error|Exception|Warning|Interrupt|Exit|Timeout|Iteration|Fault|OOM)\b"
    r"|(?:[a-z_]\w{0,80}\.){1,12}[A-Z]\w{0,80}(?::|$)"
)
"""How the line that ends a traceback begins: the exception's class."""


def holds_together(text: str) -> bool:
    """Whether a line is one that joins others to a record, whatever else it says."""
    start = text[:_JOINING_CHARACTERS]
    return TRACEBACK in start or any(words in start for words in CHAINED) or CAUSED_BY.match(start) is not None


def exception_after(data: bytes, following: list[bytes]) -> str:
    """The line that ends a traceback whose first line is `data`, as far as equal prefixes show it; empty if unseen."""
    prefix = max(data.find(b"Traceback"), 0)
    for line in following[:_MOST_FRAMES]:
        rest = line[prefix : prefix + _MOST_EXCEPTION_BYTES]
        if rest.strip() and rest[:1] not in (b" ", b"\t"):
            text = rest.decode("utf-8", "replace").split('\\n"', 1)[0]
            return text if EXCEPTION.match(text) else ""
    return ""
