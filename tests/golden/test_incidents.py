"""Recorded incidents of the bundled stack, each with its exact diagnosis: as data, on the screen, and in Markdown.

The bundles were stored by `latencydoctor drill flash-crowd --fault FAULT --save FILE` on a real Triton with a simulated
accelerator. After a change that is meant to change what is said, write the expected files anew with
`python -m tests.golden.test_incidents` and read the difference before committing it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import latencydoctor
from latencydoctor.cli.wiring import DiagnoseRequest, diagnose
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.report import machine, markdown, terminal

INCIDENTS = Path(__file__).with_name("incidents")
NAMES = ("batching", "none", "saturation")
CAUSES = {"batching": "batching-failed", "none": None, "saturation": "saturation"}
REPLAYS = 100


def replay(name: str) -> Diagnosis:
    return diagnose(DiagnoseRequest(bundle=INCIDENTS / f"{name}.json.gz")).diagnosis


def forms(name: str) -> dict[str, str]:
    """The three forms by file ending."""
    result = replay(name)
    console = Console(file=io.StringIO(), width=120, color_system=None, markup=False, highlight=False)
    terminal.show(result, console)
    assert isinstance(console.file, io.StringIO)
    return {
        "json": machine.diagnosis(result) + "\n",
        "txt": console.file.getvalue(),
        "md": markdown.diagnosis(result),
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_form_is_exactly_as_recorded(name: str) -> None:
    for ending, text in forms(name).items():
        assert text == (INCIDENTS / f"{name}.{ending}").read_text(), ending


def test_the_readme_shows_the_screen_as_it_is() -> None:
    screen = (INCIDENTS / "batching.txt").read_text()
    shown = "\n".join(line.rstrip() for line in screen.splitlines())
    assert f"```text\n{shown}\n```\n" in (INCIDENTS.parents[2] / "README.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_cause_is_the_one_that_was_built_in(name: str) -> None:
    result = replay(name)
    assert (result.cause.id if result.cause else None) == CAUSES[name]
    assert result.simulated


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_of_a_cause_carries_value_threshold_query_and_window(name: str) -> None:
    cause = replay(name).cause
    for finding in cause.evidence if cause else ():
        assert finding.value is not None
        assert finding.threshold is not None
        assert finding.proof is not None
        assert finding.proof.query
        assert finding.window.length_s > 0


def test_a_hundred_replays_are_the_same_bytes() -> None:
    digests = {hashlib.sha256(machine.diagnosis(replay("batching")).encode()).hexdigest() for _ in range(REPLAYS)}
    assert len(digests) == 1


def test_hash_seed_time_zone_locale_and_folder_change_nothing(tmp_path: Path) -> None:
    bundle = str(INCIDENTS / "batching.json.gz")
    arguments = [sys.executable, "-m", "latencydoctor", "diagnose", "--bundle", bundle, "--format", "json"]
    source = str(Path(latencydoctor.__file__).parents[1])
    outputs = set()
    for number, (zone, locale) in enumerate((("UTC", "C"), ("Asia/Tokyo", "C.UTF-8"), ("America/Lima", "POSIX"))):
        changed = {"PYTHONHASHSEED": str(number * 97), "TZ": zone, "LC_ALL": locale, "PYTHONPATH": source}
        folder = tmp_path / str(number)
        folder.mkdir()
        ran = subprocess.run(arguments, env=os.environ | changed, cwd=folder, capture_output=True, timeout=60)
        assert ran.returncode == 3, ran.stderr
        outputs.add(ran.stdout)
    assert len(outputs) == 1
    document = json.loads(outputs.pop())
    assert document["cause"]["id"] == "batching-failed"
    assert str(tmp_path) not in json.dumps(document)


if __name__ == "__main__":
    for incident in NAMES:
        for ending, text in forms(incident).items():
            (INCIDENTS / f"{incident}.{ending}").write_text(text)
