"""The process that redacts: `python -m latencydoctor.stack.gateway.redact_worker PATTERN`, one JSON line in, one out.

A process of its own, because a regular expression holds the interpreter for as long as it takes, and the gateway has
one event loop for everybody.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator

REPLACEMENT = "*"


def redact(pattern: str, lines: Iterable[str]) -> Iterator[str]:
    """For each line, `[number, text]`, the line with what the pattern matches in its text replaced."""
    compiled = re.compile(pattern)
    for line in lines:
        number, text = json.loads(line)
        yield json.dumps([number, compiled.sub(REPLACEMENT, text)]) + "\n"


def main() -> None:
    """Works until the gateway closes the pipe, which its death does too."""
    for line in redact(sys.argv[1], sys.stdin):
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
