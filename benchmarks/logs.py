"""How quickly logs are read beside ripgrep: `make bench-logs` (SIZE MiB, 1024 by default; QUICK=1: 64, two repeats).

One log of mixed programs with 0.1 % and with 1 % of lines that a rule knows, warm. Ripgrep counts the lines that any
shipped pattern matches (`rg -c -a -f`), and for the histogram of levels the lines of each level (`rg -c`), with the
patterns that tell levels in all formats, and with bare words for comparison. Ours is the whole command, start
included, and the same without the start. Medians of runs that take turns. Beside them, once: Python's own `re` with
the same patterns, and lnav with a single filter, where it is installed. The last line is one JSON object; each ratio is
ripgrep's seconds over ours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.logs_lines import write
from benchmarks.told import explain
from latencydoctor.content.locate import locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.evidence.logs import levels
from latencydoctor.evidence.logs.compiled import patterns_of

QUICK = bool(os.environ.get("QUICK"))
SIZE_MIB = int(os.environ.get("SIZE") or (64 if QUICK else 1024))
REPEATS = int(os.environ.get("REPEATS") or (2 if QUICK else 5))
SHARES = {"sparse": 0.001, "1pct": 0.01}
CURVE_MIB = (1, 8, 64) if QUICK else (1, 16, 256, 1024, 4096)
_LOGS = (sys.executable, "-m", "latencydoctor", "logs", "--exit-zero", "--format", "json")
_MIB = 1024 * 1024


def seconds(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """How long a command takes; it may find nothing."""
    began_s = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    took_s = time.perf_counter() - began_s
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(argv[:3])} failed: {done.stderr[-500:]}")
    return took_s


def in_turns(runs: dict[str, Callable[[], float]], repeats: int = REPEATS) -> dict[str, float]:
    """The median seconds of each, all of them once before any of them again."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(run())
    return {name: statistics.median(times) for name, times in found.items()}


def ours(path: Path, *more: str) -> Callable[[], float]:
    return lambda: seconds([*_LOGS, *more, str(path)])


def ripgrep(path: Path, *options: str) -> Callable[[], float]:
    return lambda: seconds([_rg(), "-c", "-a", *options, str(path)])


def each_level(path: Path, patterns: Sequence[str]) -> Callable[[], float]:
    """One run a level, summed."""
    return lambda: sum(seconds([_rg(), "-c", "-a", "-e", pattern, str(path)]) for pattern in patterns)


def _rg() -> str:
    found = shutil.which("rg")
    if found is None:
        raise SystemExit(
            "ripgrep is what the ratios are measured against, and it is not installed: apt-get install ripgrep"
        )
    return found


def version_of(program: str) -> str:
    """What a program says of its version, first line."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    return (done.stdout.splitlines() or [f"{program}, which tells no version"])[0]


def plain_re(path: Path, patterns: Sequence[str]) -> float:
    """Python's own engine over the first 4 MiB, scaled to the whole."""
    either = re.compile("|".join(f"(?:{_without_flag(pattern)})" for pattern in patterns).encode())
    with path.open("rb") as file:
        data = file.read(4 * _MIB)
    began_s = time.perf_counter()
    for line in data.split(b"\n"):
        either.search(line)
    return (time.perf_counter() - began_s) * path.stat().st_size / len(data)


def _without_flag(pattern: str) -> str:
    return f"(?i:{pattern[4:]})" if pattern.startswith("(?i)") else pattern


def peak_private_mb(path: Path) -> float:
    """The most private memory that the command's processes held at a moment, in MB, looked at every 20 ms."""
    process = subprocess.Popen([*_LOGS, "--levels", str(path)], stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(_private_bytes, _family(process.pid))))
        time.sleep(0.02)
    return most / 1e6


def _family(pid: int) -> list[int]:
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _family(int(child))
    except OSError:
        pass
    return found


def _private_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * sum(int(number) for number in re.findall(r"^Private_\w+: +(\d+) kB", text, re.MULTILINE))


def processor_s(run: Callable[[], float]) -> float:
    """Seconds of processor time, all processes together: on a busy machine they tell more than the clock."""
    before = os.times()
    run()
    after = os.times()
    return (after.children_user + after.children_system) - (before.children_user + before.children_system)


def core_mb_per_s(path: Path, start_path: Path) -> float:
    """Bytes a second of processor time, the start left out, all processes together."""
    spent_s = processor_s(ours(path)) - processor_s(ours(start_path))
    return path.stat().st_size / spent_s / 1e6


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def compare(folder: Path, patterns: Sequence[str]) -> dict[str, float]:
    """The ratios, with the seconds behind them printed."""
    listed = folder / "patterns"
    listed.write_text("\n".join(patterns) + "\n", encoding="utf-8")
    empty = folder / "empty.log"
    empty.write_text("started\n")
    start_s = statistics.median(ours(empty)() for _ in range(REPEATS))
    print(f"{len(patterns)} patterns, {SIZE_MIB} MiB, medians of {REPEATS}; our start alone takes {start_s:.2f} s")
    found: dict[str, float] = {}
    for name, share in SHARES.items():
        path = folder / f"{name}.log"
        say(f"writing {path.name} ...")
        write(path, SIZE_MIB * _MIB, share)
        took = in_turns({"ours": ours(path), "rg": ripgrep(path, "-f", str(listed))})
        spent = {"ours": processor_s(ours(path)), "rg": processor_s(ripgrep(path, "-f", str(listed)))}
        found[f"ratio_{name}"] = took["rg"] / took["ours"]
        print(
            f"{share:6.1%} of lines match: ours {took['ours']:.2f} s ({took['ours'] - start_s:.2f} without the start), "
            f"rg {took['rg']:.2f} s, plain re {plain_re(path, patterns):.0f} s; "
            f"processor seconds: ours {spent['ours']:.2f}, rg {spent['rg']:.2f}"
        )
    return (
        found
        | compare_levels(folder / "1pct.log")
        | {"mb_per_s_core": core_mb_per_s(folder / "sparse.log", start_path=empty)}
    )


def compare_levels(path: Path) -> dict[str, float]:
    """The histogram beside one `rg -c` a level: with the patterns that know all formats, and with words alone."""
    full = [levels.pattern_of(level) for level in levels.LEVELS]
    words = [rf"\b(?:{levels.words_of(level)})\b" for level in levels.LEVELS]
    took = in_turns(
        {"ours": ours(path, "--levels"), "rg": each_level(path, full), "words": each_level(path, words)},
        max(REPEATS // 2, 1),
    )
    print(
        f"levels: ours with the pyramid {took['ours']:.2f} s, one rg a level {took['rg']:.2f} s, "
        f"one rg a level for words alone {took['words']:.2f} s (ratio {took['words'] / took['ours']:.2f})"
    )
    return {"ratio_levels": took["rg"] / took["ours"]}


def curve(folder: Path) -> None:
    """Seconds against size."""
    for size in CURVE_MIB:
        path = folder / "curve.log"
        write(path, size * _MIB, SHARES["sparse"])
        took_s = statistics.median(ours(path)() for _ in range(3))
        print(f"{size:5} MiB: {took_s:.2f} s, {size * _MIB / took_s / 1e6:.0f} MB/s, start included")
        path.unlink()


def lnav(path: Path, home: Path) -> None:
    """lnav beside it, where it is installed: it indexes the file and keeps the lines of one text. `home` is its own."""
    program = shutil.which("lnav")
    if program is None:
        print("lnav is not installed: nothing to show beside ours (apt-get install lnav)")
        return
    own = os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    took_s = seconds([program, "-n", "-c", ":filter-in Request timeout expired", str(path)], own)
    rate = path.stat().st_size / took_s / 1e6
    print(f"{version_of(program)}, one filter and no classes: {took_s:.2f} s, {rate:.0f} MB/s")


def main() -> None:
    anchor = _rg()
    patterns = patterns_of(load_log_rules(locate(None)))
    print(f"beside {version_of(anchor)}")
    with tempfile.TemporaryDirectory(prefix="bench-logs-") as name:
        folder = Path(name)
        found = compare(folder, patterns)
        found["rss_mb"] = peak_private_mb(folder / "1pct.log")
        lnav(folder / "sparse.log", folder)
        for one in SHARES:
            (folder / f"{one}.log").unlink()
        curve(folder)
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


if __name__ == "__main__":
    explain(__doc__)
    main()
