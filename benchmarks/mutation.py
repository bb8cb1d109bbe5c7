"""How many faults put into the deciding code its own unit tests notice: the mutation score, by mutmut.

    python -m benchmarks.mutation            about five minutes on a busy machine
    QUICK=1 python -m benchmarks.mutation    only walk.py, under a minute

A copy of the package gets one small fault at a time (a condition turned round, an argument left out, a number or a
text changed), and the tests in tests/unit/diagnosis have to fail. A fault that makes them hang counts as noticed, one
in code that no test runs does not. The table shows every module and, below it, what survived. The last line of stdout
is one JSON object, `{"score", "killed", "survived", "mutants"}`, over conditions.py and walk.py. Target: 0.85.

mutmut changes functions only. Not changed, and so not in the score: the table of comparisons and other statements at
the top of a module, and methods under a decorator (the properties of `Examined`).

Survivors that no test can tell from the original, because they do the same:

- conditions: `_unknown` reads of its leaf only the signal and the comparison, and the evidence only where no measure
  was seen; so another basis, or no evidence beside a measure, changes nothing. A leaf without a threshold and without
  a second signal is refused by the reader, so the name that it would look up does not matter.
- examine: no refutation and one of None are both none.
- suspects: None is as false as False; a cause that waits for nothing adds nothing to what is waited for.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.told import explain

ROOT = Path(__file__).resolve().parents[1]
PINS = Path(__file__).with_name("mutation-constraints.txt")
PACKAGE = Path("src/latencydoctor/diagnosis")
TESTS = Path("tests/unit/diagnosis")
COPIED = (
    Path("src"),
    Path("playbooks"),
    Path("rules"),
    TESTS,
    Path("tests/unit/builders.py"),
    Path("tests/unit/shipped.py"),
)

SCORED = ("conditions", "walk")
BESIDE = ("findings", "examine", "suspects", "confidence")
QUICK = ("walk",)
TARGET = 0.85
NOTICED = frozenset({"killed", "timeout"})
LIMIT_S = 1200
NICENESS = 10

SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {modules}
also_copy = ["playbooks", "rules"]
pytest_add_cli_args_test_selection = ["{tests}"]
# The copy is made anew each time and is no checkout: there is nothing to compare with.
use_git_change_detection = false
track_dependencies = false
"""


@dataclass(frozen=True, slots=True)
class Tally:
    """Mutants of some modules, and how many of them the tests noticed."""

    killed: int
    mutants: int

    @property
    def survived(self) -> int:
        """Those that no test noticed."""
        return self.mutants - self.killed

    @property
    def score(self) -> float:
        """The share that was noticed; 0 where there is nothing to notice."""
        return self.killed / self.mutants if self.mutants else 0.0


def prepare() -> Path:
    """The folder in the user's cache of mutmut and what of its needs the checkout lacks; filled unless it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made_from = PINS.read_bytes() + sys.version.encode()
    folder = cache / "latencydoctor" / f"mutation-{hashlib.sha256(made_from).hexdigest()[:12]}"
    # Written last, so that an installation that was broken off is begun again.
    stamp = folder / "ready"
    if not stamp.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing mutmut into {folder}", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip", "-q", "-q", "--disable-pip-version-check", "--no-input"]
        wanted = ["install", "--no-deps", "--target", str(folder), "--requirement", str(PINS)]
        done = subprocess.run([*pip, *wanted], stdin=subprocess.DEVNULL, stdout=sys.stderr)
        if done.returncode != 0:
            sys.exit("mutmut could not be installed, see above; is the package index reachable?")
        stamp.touch()
    return folder


def copy_to(folder: Path, modules: Sequence[str]) -> None:
    """What is mutated and what its tests need, with mutmut's settings in the copy's pyproject.toml."""
    for name in COPIED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, target)
    names = json.dumps([str(PACKAGE / f"{module}.py") for module in modules])
    settings = SETTINGS.format(modules=names, tests=TESTS)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(project + settings, encoding="utf-8")


def mutmut(tool: Path, folder: Path, *arguments: str) -> str:
    """What one command of mutmut prints; ends the program when it fails."""
    # Only the copy of the package may be imported, so no path of the caller's goes along.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment["PYTHONPATH"] = str(tool)
    command = [sys.executable, "-m", "mutmut", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"mutmut {arguments[0]} took longer than {LIMIT_S} s")
    printed = done.stdout.decode("utf-8", errors="replace")
    if done.returncode != 0:
        sys.exit(f"mutmut {arguments[0]} exits {done.returncode}:\n{printed[-3000:]}")
    return printed


def statuses_in(printed: str) -> dict[str, str]:
    """How each mutant ended, of what `mutmut results` prints: one `name: status` a line."""
    lines = (line.strip().split(": ", 1) for line in printed.splitlines() if ": " in line)
    return {name: status for name, status in lines if "__mutmut_" in name}


def module_of(mutant: str) -> str:
    """`walk` of `latencydoctor.diagnosis.walk.x_walk__mutmut_1`."""
    return mutant.split(".")[-2]


def tally(statuses: Mapping[str, str], modules: Sequence[str]) -> Tally:
    """The mutants of these modules taken together."""
    ends = Counter(status for mutant, status in statuses.items() if module_of(mutant) in modules)
    return Tally(sum(ends[status] for status in NOTICED), ends.total())


def changed_lines(diff: str) -> str:
    """The lines that differ."""
    lines = (line for line in diff.splitlines() if line.startswith(("-", "+")) and not line.startswith(("---", "+++")))
    return "\n".join(f"    {line[0]} {line[1:].strip()}" for line in lines)


def report(statuses: Mapping[str, str], modules: Sequence[str]) -> Tally:
    """Prints the table; the score that counts."""
    scored = [module for module in modules if module in SCORED]
    rows = [(f"{module}.py", tally(statuses, [module])) for module in modules]
    rows += [(" and ".join(scored), tally(statuses, scored)), ("all", tally(statuses, modules))]
    print(f"{'module':<20}{'mutants':>9}{'killed':>9}{'survived':>10}{'score':>8}")
    for name, one in rows:
        print(f"{name:<20}{one.mutants:>9}{one.killed:>9}{one.survived:>10}{one.score:>8.3f}")
    return tally(statuses, scored)


def main() -> None:
    modules = QUICK if os.environ.get("QUICK") else (*SCORED, *BESIDE)
    tool = prepare()
    # Minutes of work that nobody waits for: whatever else runs here goes first.
    os.nice(NICENESS)
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        copy_to(folder, modules)
        mutmut(tool, folder, "run", "--max-children", "1")
        statuses = statuses_in(mutmut(tool, folder, "results", "--all", "true"))
        survivors = {mutant: status for mutant, status in statuses.items() if status not in NOTICED}
        shown = {mutant: changed_lines(mutmut(tool, folder, "show", mutant)) for mutant in sorted(survivors)}
    score = report(statuses, modules)
    print("\nsurvived:" if shown else "\nnone survived")
    for mutant, lines in shown.items():
        print(f"  {mutant.removeprefix('latencydoctor.diagnosis.')} ({survivors[mutant]})\n{lines}")
    print(f"\nscore {score.score:.3f}, target {TARGET} or more: {'met' if score.score >= TARGET else 'MISSED'}")
    figures = {"killed": score.killed, "survived": score.survived, "mutants": score.mutants}
    print(json.dumps({"score": round(score.score, 3), **figures}))


if __name__ == "__main__":
    explain(__doc__)
    main()
