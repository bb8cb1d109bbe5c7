"""Kills an apply of `int8`, its rollback or their recovery with SIGKILL at each of its calls that changes a file.

    python -m tests.fakes.int8_driver FOLDER apply|rollback EVERY

As `crash_driver`, whose killing it uses; the state is the settings and the versions in the model repository together.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from latencydoctor.app import recovery, treat
from latencydoctor.app.treat import Asked, Tools
from latencydoctor.model.builds import ModelBuild
from latencydoctor.model.remedy import Plan, TargetObject, TargetState
from latencydoctor.remedy.plan import values_of
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.placed_version import BUILD_FILES, TEMPORARY, PlacedVersion, versions_object
from latencydoctor.targets.state_folder import SETTINGS
from tests.fakes import crash_driver
from tests.fakes.crash_driver import committed_run_of, fresh, killed_at
from tests.fakes.patient import BROKEN, EFFECTIVE, FakePatient
from tests.unit.model_builds import build_in

MODEL = "faq-encoder"
OBJECT = versions_object(MODEL)


class Int8Patient(FakePatient):
    """A patient with a model repository of real files: one version of its own, and a build to place beside it."""

    def __init__(self, state: Path) -> None:
        super().__init__(state)
        build = state.with_name("build")
        if not build.exists():
            build.mkdir()
            for name in BUILD_FILES:
                (build / name).write_text(name * 50, encoding="utf-8")
        if not (state / "models").exists():
            (state / "models" / MODEL / "1").mkdir(parents=True)
            (state / "models" / MODEL / "1" / "model.py").write_text("the one before", encoding="utf-8")
        self.versions = PlacedVersion(self.folder, lambda: build_in(build))

    def read(self) -> TargetState:
        """With the versions among the objects, as the real target has them."""
        found = super().read()
        return replace(found, objects=(*found.objects, TargetObject(OBJECT, 1, self.versions.digest(MODEL))))


class Shelf:
    """Where the build lies."""

    def __init__(self, build: Path) -> None:
        self._build = build

    def find(self) -> ModelBuild:
        """The build."""
        return build_in(self._build)


def tools(state: Path) -> Tools:
    """The real executor and journal on a folder."""
    patient = Int8Patient(state)
    shelf = Shelf(state.parent / "build")
    return replace(crash_driver.tools(state), target=patient, changer=patient.changer(timeout_s=5.0), builds=shelf)


def state_of(state: Path, plan: Plan) -> str:
    """ "old" or "new" when settings, server and repository agree on it exactly, else what is there."""
    digests = {settings_digest((state / name).read_text()) for name in (SETTINGS, EFFECTIVE)}
    folders = sorted(path.name for path in (state / "models" / MODEL).iterdir())
    if (state / TEMPORARY).exists() or len(digests) != 1:
        return f"mixed: {len(digests)} settings, {folders}, rest {(state / TEMPORARY).exists()}"
    new = settings_digest(Int8Patient(state).edited(BROKEN, values_of(plan)))
    if digests == {new} and folders == ["1", "2"]:
        placed = {path.name: path.read_text() for path in (state / "models" / MODEL / "2").iterdir()}
        return "new" if placed == {name: name * 50 for name in BUILD_FILES} else "damaged version"
    return "old" if digests == {settings_digest(BROKEN)} and folders == ["1"] else f"mixed: {folders}"


def judged(state: Path, plan: Plan, action: str, what: str) -> list[str]:
    """What is not as it must be after recovery, in words."""
    expected = "new" if (action == "apply") == committed_run_of(state, action) else "old"
    found = state_of(state, plan)
    return [] if found == expected else [f"{what}: {found}, {expected} expected"]


def main(folder: Path, action: str, every: int) -> dict[str, object]:
    """All kills of one action, and after every EVERY-th those of its recovery."""
    start, state, killed = folder / "start", folder / "state", folder / "killed"
    folder.mkdir(exist_ok=True)
    first = tools(state)
    patient = first.target
    assert isinstance(patient, Int8Patient)
    plan = treat.make_plan("int8", patient, first.clock, asked=Asked(builds=Shelf(folder / "build")))
    assert isinstance(plan, Plan)
    if action == "rollback":
        treat.apply(plan, first)
    fresh(state, start)

    def run() -> object:
        return treat.apply(plan, tools(state)) if action == "apply" else treat.rollback(tools(state), force=True)

    kills, recovery_kills = 0, 0
    wrong: list[str] = []
    while killed_at(run, kills + 1):
        kills += 1
        if kills % every == 0:
            fresh(state, killed)
            at = 1
            while killed_at(lambda: recovery.recover(tools(state)), at):
                recovery.recover(tools(state))
                wrong += judged(state, plan, action, f"{action} killed at {kills}, recovery at {at}")
                fresh(killed, state)
                at += 1
            recovery_kills += at - 1
            fresh(killed, state)
        recovery.recover(tools(state))
        wrong += judged(state, plan, action, f"{action} killed at {kills}")
        fresh(start, state)
    wrong += judged(state, plan, action, "not killed")
    shutil.rmtree(killed, ignore_errors=True)
    return {"kills": kills, "recovery_kills": recovery_kills, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
