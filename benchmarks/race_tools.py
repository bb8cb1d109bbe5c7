"""The tools of the race: how each is run, and how its answer is read. Every run is a new process, from a cold start."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults import Run
from benchmarks.race_environment import Environment
from benchmarks.race_pages import page
from benchmarks.race_words import INFERPILOT, INFERPILOT_NOTHING, OURS, VLLM_DOCTOR

GIVE_UP_S = 120.0
BETWEEN_PAGES_S = 60.0
"""Between the two snapshots; inferpilot asks for 30 to 60 s."""

NO_CAUSE = "no known cause"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer's content: its findings in its own words, first one first, and whether the first advises replicas."""

    words: tuple[str, ...]
    advises_replicas: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One tool's answer on one case; `said` is None when it could not be run or read."""

    tool: str
    said: Said | None
    exit_code: int | None
    took_s: float


def ours(text: str) -> Said:
    """Read `latencydoctor diagnose --format json`."""
    document = json.loads(text)
    if document["incident"]["state"] != "incident":
        return Said((), False)
    cause = document["cause"]
    if cause is None:
        return Said((NO_CAUSE,), False)
    words = [cause["id"], *(one["id"] for one in document["contributing"])]
    return Said(tuple(words), cause["scaling"] in ("cures", "buys time"))


def vllm_doctor(text: str) -> Said:
    """Read `vllm-doctor diagnose --output json`; it lists the worst finding first.

    A recommendation that sets a condition ("add replicas if errors correlate with traffic") is none.
    """
    found = [(check["id"], check["finding"]) for check in json.loads(text)["checks"] if check["finding"]]
    first = found[0][1]["recommendations"] if found else []
    advises = any(re.search(r"\badd(ing)? replicas\b(?! if)", one, re.IGNORECASE) for one in first)
    return Said(tuple(str(name) for name, _ in found), advises)


def inferpilot(text: str) -> Said:
    """Read `inferpilot inspect --json`; it has one verdict."""
    document = json.loads(text)
    verdict = str(document["verdict"])
    words = () if verdict in INFERPILOT_NOTHING else (verdict,)
    return Said(words, bool(words) and "look at scaling" in document["next_step"])


class Field:
    """The tools, ready to be run. `home` is an empty folder: none finds a configuration there, so all use defaults."""

    def __init__(self, environment: Environment, home: Path) -> None:
        self._environment = environment
        self._home = home

    def ask(self, run: Run, url: str) -> list[Answer]:
        """All answers on a run that a Prometheus at `url` holds and that is about to end; ours comes last."""
        before, after = self._home / "before.prom", self._home / "after.prom"
        before.write_text(page(run, BETWEEN_PAGES_S), encoding="utf-8")
        after.write_text(page(run, 0.0), encoding="utf-8")
        theirs = {name: str(self._environment.program(name)) for name in (VLLM_DOCTOR, INFERPILOT)}
        # Its own settings; both have a way to choose a model, and ours a namespace as well.
        doctor = [theirs[VLLM_DOCTOR], "diagnose", url, "--model", run.model, "--output", "json"]
        pilot = [theirs[INFERPILOT], "inspect", str(before), str(after), "--json"]
        selection = ["--selector", f'namespace="{run.namespace}"', "--model", run.model]
        mine = [*_own_command(), "diagnose", "--prometheus", url, *selection, "--format", "json"]
        return [
            self._run(VLLM_DOCTOR, doctor, vllm_doctor),
            self._run(INFERPILOT, pilot, inferpilot),
            self._run(OURS, mine, ours),
        ]

    def _run(self, tool: str, command: Sequence[str], read: Callable[[str], Said]) -> Answer:
        begun_s = time.monotonic()
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=GIVE_UP_S,
                cwd=self._home,
                env=self._variables(tool),
            )
        except (subprocess.TimeoutExpired, OSError) as error:
            _complain(tool, str(error))
            return Answer(tool, None, None, time.monotonic() - begun_s)
        took_s = time.monotonic() - begun_s
        try:
            return Answer(tool, read(done.stdout), done.returncode, took_s)
        except (ValueError, KeyError, TypeError) as error:
            _complain(tool, f"{error!r}: {(done.stderr or done.stdout)[-300:]}")
            return Answer(tool, None, done.returncode, took_s)

    def _variables(self, tool: str) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LATENCYDOCTOR_")}
        if tool != OURS:
            kept.pop("PYTHONPATH", None)
        return {**kept, "HOME": str(self._home), "XDG_CONFIG_HOME": str(self._home), "NO_COLOR": "1"}


def _own_command() -> list[str]:
    """The installed command, or the module where the checkout is only on the path."""
    installed = Path(sys.executable).with_name(OURS)
    return [str(installed)] if installed.is_file() else [sys.executable, "-m", OURS]


def _complain(tool: str, text: str) -> None:
    print(f"{tool}: {text}", file=sys.stderr, flush=True)
