"""What only a GPU can show, in under four minutes: `python3 scripts/gpu_check.py [--out FOLDER]`.

On a machine with an NVIDIA card it needs the checkout, Python 3.11 and the driver, nothing else; PyTorch and
nvidia-ml-py are used where they are installed. It holds our NVML readings against nvidia-smi under a real load, looks
at memory and throttle signals, measures a batch-latency curve and writes it as a profile of a simulated accelerator,
and compares INT8 with FP32. Every piece runs in a process of its own, so that a crash or a hang takes only itself
along, and says ok, skipped or failed, and why. It never changes a setting of the card. The last line is one JSON
object; the exit status is 1 if a piece failed, else 0, also without a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripts.gpu.outcome import Outcome

ROOT = Path(__file__).resolve().parent.parent
ALL_S = 220.0
"""Under four minutes, with what Python and the table take."""
PIECE_S = 75.0


def main(arguments: Sequence[str]) -> int:
    """Run the pieces one after the other and print what they found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=Path("reports/gpu"), help="folder for the profile (%(default)s)")
    parser.add_argument("--piece", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.piece is not None:
        print(one(asked.piece, asked.out))
        return 0
    outcome = importlib.import_module("scripts.gpu.outcome")
    found = check(asked.out)
    print(outcome.table(found))
    if found[0].state == "skipped":
        print(f"no GPU to check: {found[0].detail}")
    print(outcome.summary(found))
    return int(any(each.state == "failed" for each in found))


def one(piece: str, out: Path) -> str:
    """One piece, here; what it found as a line of JSON."""
    pieces, outcome = importlib.import_module("scripts.gpu.pieces"), importlib.import_module("scripts.gpu.outcome")
    try:
        detail, figures = pieces.PIECES[piece](out)
        state = "ok"
    except (outcome.Skipped, outcome.Failed) as error:
        state = "skipped" if isinstance(error, outcome.Skipped) else "failed"
        detail, figures = str(error), getattr(error, "figures", {})
    except Exception as error:  # noqa: BLE001 - whatever a runtime on a strange machine raises is that piece's failure
        state, detail, figures = "failed", f"{type(error).__name__}: {error}", {}
    return json.dumps({"state": state, "detail": detail, "figures": figures})


def check(out: Path) -> list[Outcome]:
    """Every piece in a process of its own; without a card the others are not started."""
    pieces, outcome = importlib.import_module("scripts.gpu.pieces"), importlib.import_module("scripts.gpu.outcome")
    until = time.monotonic() + ALL_S
    found: list[Outcome] = []
    for name in pieces.PIECES:
        left = min(PIECE_S, until - time.monotonic())
        if found and found[0].state != "ok":
            found.append(outcome.Outcome(name, "skipped", "needs a card"))
        elif left <= 1:
            found.append(outcome.Outcome(name, "skipped", f"the {ALL_S:.0f} s are used up"))
        else:
            found.append(_started(name, out, left))
    return found


def _started(name: str, out: Path, limit_s: float) -> Outcome:
    outcome = importlib.import_module("scripts.gpu.outcome")
    command = [sys.executable, __file__, "--piece", name, "--out", str(out)]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        late: Outcome = outcome.Outcome(name, "failed", f"no end within {limit_s:.0f} s", limit_s)
        return late
    lines = (done.stdout.strip() or done.stderr.strip() or f"exit status {done.returncode}").splitlines()
    ended: Outcome = outcome.from_json(name, lines[-1], time.monotonic() - started)
    return ended


if __name__ == "__main__":
    # The checkout alone is enough: nothing of it needs to be installed.
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    raise SystemExit(main(sys.argv[1:]))
