"""The ports `Target` and `Changer`: one suite for the fake patient and a real stack, then what only the real one has.

Every test leaves the stack as it found it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from latencydoctor.app import recovery, treat
from latencydoctor.app.ports import Changer
from latencydoctor.app.treat import Tools
from latencydoctor.errors import ContentError, KnownError, Refused
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import NothingToDo, Plan, RunState, TargetState
from latencydoctor.remedy.settings_text import generation_of, settings_digest
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.targets.bundled import BundledTarget
from latencydoctor.targets.executor import BundledChanger
from latencydoctor.targets.kept_generations import KEPT
from tests.fakes.clock import FakeClock
from tests.fakes.patient import FakePatient

PREFIX = "inference.batching."
BROKEN = ((PREFIX + "preferred_batch_size", "0"), (PREFIX + "max_batch_size", "8"), (PREFIX + "timeout_micros", "0"))
SCENE = {"preferred_batch_size": "16", "max_batch_size": "32", "timeout_micros": "100000", "enabled": "true"}

KILLED = """
import os, signal, sys
from pathlib import Path
from latencydoctor.targets.executor import BundledChanger
from tests.contract.test_bundled_target import apply_to

BundledChanger._settled = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
apply_to(Path(sys.argv[1]))
"""


@dataclass(frozen=True, slots=True)
class Ward:
    """A target with broken batching, and the hand that changes it."""

    target: BundledTarget
    changer: Changer

    def write(self, text: str) -> TargetState:
        digest = self.target.read().digest
        return self.changer.write(text, expected=frozenset({digest}), cancelled=treat.never)


@pytest.fixture
def real(live_stack: Endpoints, live_layout: Layout) -> Iterator[Ward]:
    target = BundledTarget(live_layout.state)
    ward = Ward(target, BundledChanger(target))
    healthy = target.settings_text()
    ward.write(target.edited(healthy, BROKEN))
    try:
        yield ward
    finally:
        found = settings_digest(target.settings_text())
        ward.changer.write(healthy, expected=frozenset({found}), cancelled=treat.never)


@pytest.fixture
def fake(tmp_path: Path) -> Ward:
    patient = FakePatient(tmp_path / "stack")
    return Ward(patient, patient.changer())


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.stack)])
def ward(request: pytest.FixtureRequest) -> Ward:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Ward)
    return found


def served(state: TargetState) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in state.effective if key.startswith(PREFIX)}


def test_what_is_read_is_what_is_in_effect(ward: Ward) -> None:
    state = ward.target.read()
    assert state.not_in_effect == ()
    assert served(state)["max_batch_size"] == state.setting(PREFIX + "max_batch_size") == "8"
    assert "max_batch_size: 8" in state.compiled
    assert state.digest == settings_digest(state.settings_text)
    assert len({item.digest for item in state.objects}) == len(state.objects) >= 2
    assert ward.target.read() == state


def test_a_preview_says_what_would_be_and_changes_nothing(ward: Ward) -> None:
    before = ward.target.read()
    after = ward.target.edited(before.settings_text, [(PREFIX + "max_batch_size", "32")])
    assert "max_batch_size: 32" in ward.target.preview(after)
    with pytest.raises(ContentError, match="refuses these settings"):
        ward.target.preview(ward.target.edited(before.settings_text, [(PREFIX + "max_batch_size", "129")]))
    assert ward.target.read() == before


def test_a_write_is_in_effect_when_it_returns_and_the_way_back_restores_every_digest(ward: Ward) -> None:
    before = ward.target.read()
    new = ward.target.edited(before.settings_text, [(PREFIX + key, value) for key, value in SCENE.items()])
    after = ward.write(new)
    assert served(after) == SCENE
    assert after.generation == before.generation + 1
    assert after.digest == settings_digest(new)
    back = ward.write(before.settings_text)
    assert [item.digest for item in back.objects] == [item.digest for item in before.objects]
    assert back.generation == before.generation + 2


@pytest.mark.stack
def test_what_was_in_effect_is_kept_by_the_stack_byte_for_byte_and_for_its_owner_only(real: Ward) -> None:
    before = real.target.read()
    new = "# by hand\n" + real.target.edited(
        before.settings_text, [(PREFIX + key, value) for key, value in SCENE.items()]
    )
    started_s = time.time()
    real.write(new)
    after = real.target.read()
    real.write(before.settings_text)
    # The controller says that a generation is in effect just before it writes it down.
    end_s = time.monotonic() + 5
    while len(real.target.read().kept) < 3 and time.monotonic() < end_s:
        time.sleep(0.05)
    last, newest = real.target.read().kept[-2:]
    assert (last.text, last.digest, last.generation) == (after.settings_text, after.digest, after.generation)
    assert (newest.digest, newest.generation) == (before.digest, after.generation + 1)
    assert started_s <= last.in_effect_s <= newest.in_effect_s <= time.time()
    assert last.owner
    assert (real.target.folder.path / KEPT).stat().st_mode & 0o777 == 0o600


def test_writing_what_is_there_changes_no_generation(ward: Ward) -> None:
    before = ward.target.read()
    assert ward.write(before.settings_text).generation == before.generation


def test_another_digest_than_expected_is_refused_and_nothing_is_written(ward: Ward) -> None:
    before = ward.target.read()
    with pytest.raises(Refused, match="changed by someone else"):
        ward.changer.write("generation: 1\n", expected=frozenset({"0" * 64}), cancelled=treat.never)
    assert ward.target.read() == before


def test_the_lock_has_one_holder(ward: Ward) -> None:
    with ward.changer.hold("first"), pytest.raises(Refused, match="locked by run first"), ward.changer.hold("second"):
        pass
    with ward.changer.hold("third"):
        pass


def tools_for(ward: Ward, folder: Path) -> Tools:
    history = JournalFolder(folder / "journal", time.time)
    return Tools(ward.target, ward.changer, history, None, FakeClock(), lambda _: None)


def apply_to(state: Path) -> None:
    """Plan and apply in a process of its own."""
    target = BundledTarget(state)
    tools = tools_for(Ward(target, BundledChanger(target)), state)
    plan = treat.make_plan("batch-floor", target, tools.clock)
    assert isinstance(plan, Plan)
    treat.apply(plan, tools)


@pytest.mark.stack
def test_plan_apply_and_rollback_on_a_real_server(real: Ward, tmp_path: Path) -> None:
    tools = tools_for(real, tmp_path)
    before = real.target.read()
    plan = treat.make_plan("batch-floor", real.target, tools.clock)
    assert isinstance(plan, Plan)
    assert "+max_batch_size: 32" in plan.compiled_diff.splitlines()
    treat.preview(plan, tools)
    assert real.target.read() == before

    applied = treat.apply(plan, tools)
    assert applied.state is RunState.HELD  # nothing verifies here: no data is never kept
    assert served(real.target.read()) == SCENE
    assert isinstance(treat.make_plan("batch-floor", real.target, tools.clock), NothingToDo)
    with pytest.raises(Refused, match="stale"):
        treat.apply(plan, tools)

    rolled = treat.rollback(tools, force=True)
    assert isinstance(rolled, treat.Outcome)
    assert (rolled.state, rolled.error) == (RunState.ROLLED_BACK, None)
    after = real.target.read()
    assert [item.digest for item in after.objects] == [item.digest for item in before.objects]
    assert after.generation == before.generation + 2


@pytest.mark.stack
def test_a_kill_between_file_and_server_is_recovered_to_the_old_state(real: Ward, live_layout: Layout) -> None:
    before = real.target.read()
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(live_layout.state)],
        cwd=root,
        env=environment,
        capture_output=True,
        timeout=60,
    )
    assert killed.returncode == -9, killed.stderr.decode()
    tools = tools_for(real, live_layout.state)
    assert "max_batch_size: 32" in real.target.settings_text()
    with pytest.raises(Refused, match="never finished"):
        treat.rollback(tools)
    (outcome,) = recovery.recover(tools)
    assert (outcome.state, outcome.error) == (RunState.UNDONE, None)
    after = real.target.read()
    assert [item.digest for item in after.objects] == [item.digest for item in before.objects]


@pytest.mark.stack
def test_settings_that_the_controller_refuses_are_told_soon_and_can_be_taken_back(real: Ward) -> None:
    before = real.target.read()
    bad = before.settings_text.replace("max_batch_size: 8", "max_batch_size: 100000")
    started_s = time.monotonic()
    with pytest.raises(KnownError, match=r"generation \d+ into effect \(.*max_batch_size.*\); generation \d+ is"):
        real.write(bad)
    assert time.monotonic() - started_s < 15
    assert generation_of(real.target.settings_text()) == before.generation + 1
    back = real.changer.write(before.settings_text, expected=frozenset({settings_digest(bad)}), cancelled=treat.never)
    assert [item.digest for item in back.objects] == [item.digest for item in before.objects]


@pytest.mark.stack
def test_a_model_that_the_server_lacks_is_one_line(real: Ward, live_stack: Endpoints) -> None:
    from latencydoctor.targets.triton import read_effective

    with pytest.raises(KnownError, match="does not give the configuration of absent"):
        read_effective(live_stack.triton_grpc, "absent")
    with pytest.raises(KnownError, match="does not give the configuration"):
        read_effective("127.0.0.1:9", "faq-encoder")
