"""Which patterns of the log rules make healthy lines candidates, and what that costs: for whoever writes a rule.

`python -m benchmarks.log_candidates [FILE...]` over healthy logs of one's own, else over LINES (200,000) generated ones
of all programs. A candidate is a line that compiled code hands to Python because a pattern might match it; each costs
some ten microseconds, a thousand times what any other line costs. A pattern made of everyday words costs more than all
others together. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.log_corpus.compose import Wish, compose
from benchmarks.log_corpus.damage import encode
from benchmarks.log_corpus.formats import PROGRAMS
from benchmarks.told import explain
from latencydoctor.content.locate import locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.evidence.logs.blocks import CHUNK_BYTES, Block, whole_lines
from latencydoctor.evidence.logs.compiled import asked_for, scanner_for, seldom_patterns
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.rule import LogRule

LINES = int(os.environ.get("LINES") or 200_000)
SHOWN = 25
_SEED = 23
_BEGIN_S = 1_790_000_000.0
_WIDTH = 64


@dataclass(frozen=True, slots=True)
class Cost:
    """One pattern's share: the healthy lines that it makes candidates, and how many of those it does match."""

    pattern: str
    rules: tuple[str, ...]
    candidates: int
    matches: int


def healthy(lines: int) -> Iterator[bytes]:
    """Logs of every program on a day on which nothing happens."""
    rng = random.Random(_SEED)
    for program in PROGRAMS:
        scene = compose(rng, Wish((program,), lines // len(PROGRAMS), starts=True), _BEGIN_S, 86_400.0)
        yield encode(scene.lines) + b"\n"


def files(paths: Sequence[str]) -> Iterator[bytes]:
    """Logs of one's own."""
    for path in paths:
        with Path(path).open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
        yield b"\n"


def costs(rules: Sequence[LogRule], blocks: Sequence[Block]) -> list[Cost]:
    """Every pattern that makes any of these lines a candidate, the most expensive first."""
    seldom = seldom_patterns(rules)
    found = [_cost(pattern, owners, pattern in seldom, blocks) for pattern, owners in asked_for(rules).items()]
    return sorted((one for one in found if one.candidates), key=lambda one: (-one.candidates, one.pattern))


def _cost(pattern: str, owners: tuple[str, ...], seldom: bool, blocks: Iterable[Block]) -> Cost:
    scanner = Scanner([pattern], look_for=(), seldom={pattern} if seldom else ())
    lines = [line.data for block in blocks for line in scanner.candidates(block)]
    matches = sum(bool(scanner.which(line.decode("utf-8", "replace"))) for line in lines)
    return Cost(pattern, owners, len(lines), matches)


def all_candidates(rules: Sequence[LogRule], blocks: Iterable[Block]) -> tuple[int, float]:
    """How many lines any pattern, or a loud head, makes candidates; microseconds that each costs beyond the scan."""
    scanner = scanner_for(rules)
    scanner.prepare()
    blocks = list(blocks)
    began_s = time.perf_counter()
    count = sum(len(scanner.look(block.data).ends) for block in blocks)
    scanned_s = time.perf_counter() - began_s
    reader = LogReader(rules, scanner=scanner)
    began_s = time.perf_counter()
    reader.read("healthy", blocks, _BEGIN_S + 2 * 86_400.0)
    read_s = time.perf_counter() - began_s
    return count, max(read_s - scanned_s, 0.0) / max(count, 1) * 1e6


def report(found: Sequence[Cost], lines: int, us_each: float) -> Iterator[str]:
    """The table, worst first."""
    yield f"{'candidates':>10} {'matches':>8} {'ms':>7}   pattern, and the rules that have it; all of a million lines"
    for one in found[:SHOWN]:
        per_million = one.candidates / lines * 1e6
        shown = one.pattern if len(one.pattern) <= _WIDTH else f"{one.pattern[: _WIDTH - 1]}…"
        matches = one.matches / lines * 1e6
        ms = per_million * us_each / 1000
        yield f"{per_million:10.0f} {matches:8.0f} {ms:7.1f}   {shown}   ({', '.join(one.rules)})"
    if len(found) > SHOWN:
        yield f"and {len(found) - SHOWN} more, each with at most {found[SHOWN].candidates / lines * 1e6:.0f}"


def main(paths: Sequence[str]) -> None:
    """Print the table."""
    rules = load_log_rules(locate(None))
    blocks = list(whole_lines(files(paths) if paths else healthy(LINES)))
    lines = sum(block.data.count(b"\n") for block in blocks)
    if not lines:
        raise SystemExit("no lines to look at: give healthy log files, or none for generated ones")
    count, us_each = all_candidates(rules, blocks)
    found = costs(rules, blocks)
    print("\n".join(report(found, lines, us_each)))
    print(f"{lines} lines, {count} of them candidates (loud lines included), {us_each:.0f} µs each")
    per_million = round(count / lines * 1e6)
    print(json.dumps({"candidates_per_million": per_million, "us_each": round(us_each, 1), "patterns": len(found)}))


if __name__ == "__main__":
    explain(__doc__)
    try:
        main(sys.argv[1:])
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from error
