"""What `latencydoctor --help` costs beside the `--help` of a two-command Typer program with the same settings.

Runs of both are interleaved, so that a busy machine slows both alike, and their medians compared. The last line of
stdout is one JSON object: `{"ratio", "ours_ms", "reference_ms"}`. Target: a ratio of at most 1.5.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks.told import explain

TARGET_RATIO = 1.5
OURS = "import sys; sys.argv[0] = 'latencydoctor'; from latencydoctor.cli.main import main; main()"

# The settings of cli/main.py on the smallest program that still is a group of commands.
REFERENCE = '''
from pathlib import Path
from typing import Annotated
import typer
app = typer.Typer(
    name="reference",
    help="Two commands.",
    epilog="Start with: reference first",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@app.command()
def first(file: Annotated[Path | None, typer.Option("--file", help="A file.")] = None) -> None:
    """The first command."""
@app.command()
def second(name: Annotated[str, typer.Option("--name", help="A name.")] = "") -> None:
    """The second command."""
app()
'''


def help_ms(program: str) -> float:
    """Wall time of one cold interpreter that prints the program's help."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, env=clean)
    elapsed_ms = (time.perf_counter() - started) * 1000
    if done.returncode != 0:
        raise SystemExit(f"--help exits {done.returncode}:\n{done.stderr[-2000:]}")
    return elapsed_ms


def measure(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of `rounds` runs of ours and of the reference, after one of each that warms the caches."""
    help_ms(OURS), help_ms(REFERENCE)
    pairs = [(help_ms(OURS), help_ms(REFERENCE)) for _ in range(rounds)]
    return [ours for ours, _ in pairs], [reference for _, reference in pairs]


def main() -> None:
    ours, reference = measure(rounds=7 if os.environ.get("QUICK") else 25)
    ours_ms, reference_ms = statistics.median(ours), statistics.median(reference)
    ratio = ours_ms / reference_ms
    print(f"{'program':<28}{'median':>10}{'best':>10}{'worst':>10}")
    for name, times in (("latencydoctor --help", ours), ("two-command Typer --help", reference)):
        print(f"{name:<28}{statistics.median(times):>7.0f} ms{min(times):>7.0f} ms{max(times):>7.0f} ms")
    print(f"ratio {ratio:.2f}, target {TARGET_RATIO} or less: {'met' if ratio <= TARGET_RATIO else 'MISSED'}")
    figures = {"ratio": round(ratio, 3), "ours_ms": round(ours_ms, 1), "reference_ms": round(reference_ms, 1)}
    print(json.dumps(figures))


if __name__ == "__main__":
    explain(__doc__)
    main()
