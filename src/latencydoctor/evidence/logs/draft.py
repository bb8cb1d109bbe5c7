"""What has been found out about a line so far, while its layers come off one by one."""

from __future__ import annotations

import re

LEVELS = {
    "V": "DEBUG",
    "D": "DEBUG",
    "I": "INFO",
    "W": "WARNING",
    "E": "ERROR",
    "F": "CRITICAL",
    "C": "CRITICAL",
    "VERBOSE": "DEBUG",
    "TRACE": "DEBUG",
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "NOTICE": "INFO",
    "WARN": "WARNING",
    "WARNING": "WARNING",
    "ERR": "ERROR",
    "ERROR": "ERROR",
    "SEVERE": "ERROR",
    "CRIT": "CRITICAL",
    "CRITICAL": "CRITICAL",
    "ALERT": "CRITICAL",
    "EMERG": "CRITICAL",
    "EMERGENCY": "CRITICAL",
    "FATAL": "CRITICAL",
    "PANIC": "CRITICAL",
    "DPANIC": "CRITICAL",
    "INTERNAL_ERROR": "CRITICAL",
}
"""Every program's own word for a level, and the one that stands for it here."""

FRAME = re.compile(
    r"\s|$|Traceback |During handling |The above exception |Caused by: |[|+~^]|"
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception)\b",
    re.ASCII,
)
"""How lines begin that go on with the one before: frames, links of a chain, the error at its end, rows of a table."""


class Draft:
    """Mutable while one line is read; `naive_s` and `zone_s` carry a stamp from where it is parsed to who owns it.

    Class attributes are the defaults, so that making a draft costs nothing: most lines set four or five of them.
    """

    time_s: float | None = None
    outer_s: float | None = None
    outer_naive_s: float | None = None
    """The clock of a wrapper that prints local time: kept to learn its zone from a stamp inside."""
    exact: bool = False
    """Whether `outer_s` is known for sure (it had a zone)."""
    naive_s: float = 0.0
    zone_s: float | None = None
    level: str = ""
    priority: str = ""
    """The level a wrapper gives, used where the line inside has none of its own."""
    headed: bool = False
    """Whether a program's own head (level or stamp) was found; the rest is its message then."""
    whole: bool = False
    """Whether every line of this program is a record, although none has a head inside the wrapper's."""
    structured: bool = False
    event: str = ""
    fields: tuple[tuple[str, float], ...] = ()
    count: int = 1
    rank: str = ""
    source: str = ""
    process: str = ""
    program: str = ""
    file_line: str = ""
    partial: bool = False
    stream: str = ""
    status: int = 0
    began_s: float | None = None
    quoted: bool = False

    def within(self, source: str) -> None:
        """A further wrapper names where the line comes from, outer before inner."""
        if source and source != self.source:
            self.source = f"{self.source}/{source}" if self.source else source

    def head(self, program: str, level: str = "", file_line: str = "") -> None:
        """A program's own head was found."""
        self.headed = True
        self.program = program or self.program
        self.level = level
        if file_line:
            self.file_line = file_line
