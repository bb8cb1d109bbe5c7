"""The crash matrix in short: every listed effect of each action is died at, and what that leaves is recovered exactly.

`make crash-matrix` goes through all of it; here recovery is killed at some of its effects only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import crash_matrix_fixes as fixes
from benchmarks import crash_matrix_torchserve as torchserve
from benchmarks.crash_matrix import Matrix, Part
from benchmarks.crash_matrix_cuts import Record, cuts
from latencydoctor.model.effects import Effect

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "160"
"""Few enough kills for half a minute, though at each effect at least once."""

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def told(module: str, *words: str) -> dict[str, object]:
    """The last line of one part of the matrix."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


SETTINGS = frozenset(
    effect
    for effect in Effect
    if effect.name.startswith(("JOURNAL_", "LOCK_", "FILE_")) and effect is not Effect.FILE_REMOVE
) | {Effect.ASK_ADMIN, Effect.ASK_CONTROLLER, Effect.ASK_TRITON}
"""What every change of the bundled stack's settings does."""


@pytest.mark.parametrize(("action", "least"), [("apply", 60), ("rollback", 50), ("canary", 100), ("canary judged", 90)])
def test_a_kill_at_any_listed_effect_ends_in_exactly_the_old_or_the_new_state(
    action: str, least: int, tmp_path: Path
) -> None:
    found = told("crash_matrix_kills", str(tmp_path / "ward"), action, "40")
    assert found["wrong"] == []
    assert found["unknown"] == 0
    assert int(str(found["kills"])) >= least
    assert found["effects"] == sorted(effect.name for effect in SETTINGS)


OF_A_REPOSITORY = frozenset(
    effect
    for effect in Effect
    if effect.name.startswith(("JOURNAL_", "LOCK_", "FILE_"))
    or effect in (Effect.ASK_TRITON, Effect.LOAD_MODEL, Effect.FOLDER_TOUCH)
)
"""What a change of somebody else's Triton does."""


@pytest.mark.parametrize("action", ["apply", "rollback"])
def test_the_same_of_a_change_of_somebody_elses_triton(action: str, tmp_path: Path) -> None:
    found = told("crash_matrix_repository", str(tmp_path / "ward"), action, "40")
    assert found["wrong"] == []
    assert found["unknown"] == 0
    assert int(str(found["kills"])) >= 50
    # What an apply makes only an undo removes, whose moments this short form seldom takes; a rollback makes nothing.
    made = {effect for effect in OF_A_REPOSITORY if effect.name.startswith("FILE_") and effect is not Effect.FILE_CLEAR}
    crossed = OF_A_REPOSITORY - ({Effect.FILE_REMOVE} if action == "apply" else made) | {Effect.FILE_ENTRY_SYNC}
    effects = found["effects"]
    assert isinstance(effects, list)
    assert {effect.name for effect in crossed} - set(effects) <= {Effect.JOURNAL_FOLDER.name}


OTHERS = [
    ("fixes", "cache-warmup", {Effect.WRITE_ANSWERS}),
    ("fixes", "cache-warmup rollback", {Effect.ASK_ANSWERS, Effect.REMOVE_ANSWERS}),
    ("fixes", "int8", {Effect.VERSION_FOLDER, Effect.VERSION_PLACE}),
    ("fixes", "int8 rollback", {Effect.VERSION_WITHDRAW, Effect.VERSION_REMOVE}),
    ("fixes", "revert-change", SETTINGS),
    ("fixes", "revert-change rollback", SETTINGS),
    ("fixes", "vip-priority", SETTINGS),
    (
        "torchserve",
        "further archive",
        {Effect.TARGET_FOLDER, Effect.ASK_TORCHSERVE, Effect.SCALE_WORKERS, Effect.SET_DEFAULT_VERSION},
    ),
    ("torchserve", "further archive rollback", {Effect.REGISTER_VERSION, Effect.UNREGISTER_VERSION}),
    ("torchserve", "registered again", {Effect.REGISTER_VERSION, Effect.UNREGISTER_VERSION}),
    ("torchserve", "registered again rollback", {Effect.REGISTER_VERSION, Effect.UNREGISTER_VERSION}),
]
"""What else is changed, and the effects of its own that it must have been killed at."""


@pytest.mark.parametrize(("part", "action", "own"), OTHERS, ids=lambda given: given if isinstance(given, str) else "")
def test_the_same_of_what_else_is_changed(part: str, action: str, own: set[Effect], tmp_path: Path) -> None:
    found = told(f"crash_matrix_{part}", str(tmp_path / "ward"), action, SAMPLE)
    assert found["wrong"] == []
    assert found["unknown"] == 0
    assert int(str(found["kills"])) >= 40
    effects = found["effects"]
    assert isinstance(effects, list)
    assert {effect.name for effect in own} <= set(effects)


def test_there_is_no_effect_that_none_of_them_is_killed_at() -> None:
    assert SETTINGS.union(OF_A_REPOSITORY, *(own for _, _, own in OTHERS)) == set(Effect)


def test_every_action_of_the_matrix_is_tried() -> None:
    places = {"fixes": fixes.ACTIONS, "torchserve": torchserve.ACTIONS}
    assert {(part, one) for part, actions in places.items() for one in actions} <= {one[:2] for one in OTHERS}


def test_a_part_that_breaks_off_is_told_and_counts_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = Matrix(tmp_path)
    matrix.go([Part("fixes", ("no such fix", "1"), "nothing"), Part("fixes", ("vip-priority", "1000"), "levels")], 2)
    told = capsys.readouterr().err
    assert matrix.broke_off
    assert "nothing: broke off with 1" in told
    assert "KeyError: 'no'" in told
    assert not [path for path in tmp_path.iterdir() if " " in path.name]
    assert f"levels: {matrix.tally.kills} kills, 0 not exact" in told
    assert matrix.tally.kills > 0


def test_a_journal_cut_at_any_byte_is_recovered_exactly(tmp_path: Path) -> None:
    found = told("crash_matrix_cuts", str(tmp_path / "ward"), "apply judged", "60")
    assert found["wrong"] == []
    assert int(str(found["kills"])) >= 60


FORGETFUL = """
import sys
from dataclasses import replace
from pathlib import Path
from benchmarks import crash_matrix_kills as kills
from benchmarks.crash_matrix_patient import Patient
from benchmarks.crash_matrix_program import Moment, warm
from latencydoctor.app import recovery
from latencydoctor.app.runs import Phase
from latencydoctor.model.effects import Effect

real, tally, folder = recovery.read_run, kills.Tally(), Path(sys.argv[1])
folder.mkdir()
with kills.small_stack(folder / "stack"):
    patient = Patient(folder / "stack", folder / "shelf")
    warm(patient.which)
    trial = kills.prepared(patient, "apply")
    for forgetful in (False, True):
        if forgetful:
            recovery.read_run = lambda *given: replace(real(*given), phase=Phase.NOTHING)
        patient.restore(trial.start)
        assert kills.dies(trial, trial.arguments, Moment(Effect.FILE_RENAME, after=True, nth=1), tally)
        kills.recover(trial, patient.journalled(trial.known), ["killed"], tally)
        print(tally.unknown, *tally.wrong)
"""


def test_a_recovery_that_undoes_nothing_is_found_out(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORGETFUL, str(tmp_path / "ward")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["0", "1 killed: the other state"]), done


def test_every_byte_of_every_record_is_a_place_to_cut() -> None:
    records = (Record(0, 40, "a"), Record(40, 50, "a"), Record(50, 53, "b"))
    found = cuts(records, 1)
    assert {cut for record, cut in found if record is records[0]} == {0, 16, 32, 39}
    assert {cut for record, cut in found if record is records[1]} == set(range(40, 50))
    assert {cut for record, cut in found if record is records[2]} == {50, 51, 52}
