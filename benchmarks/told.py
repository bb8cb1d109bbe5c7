"""What a benchmark says of itself."""

from __future__ import annotations

import sys


def explain(words: str | None) -> None:
    """Prints a module's own words and ends the program, when it was started with --help or -h."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((words or "").strip())
        raise SystemExit(0)
