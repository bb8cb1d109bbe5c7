"""The ports `Target` and `Changer` on somebody else's Triton: real servers in every control mode, with odd models."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from latencydoctor.app import treat
from latencydoctor.app.planning import Asked
from latencydoctor.app.treat import Tools
from latencydoctor.errors import KnownError, Refused, RolledBack
from latencydoctor.journal import JournalFolder
from latencydoctor.model.configuration import TritonTarget
from latencydoctor.model.remedy import Plan, RunState
from latencydoctor.remedy.batch_floor import BatchFloor
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets import triton_message as message
from latencydoctor.targets.triton_changer import TritonChanger
from latencydoctor.targets.triton_repository import ABSENT, TritonRepository
from tests.contract import foreign_triton as foreign
from tests.contract.foreign_triton import CONFIG, Foreign
from tests.fakes.clock import FakeClock
from tests.unit.builders import evidence, values

pytestmark = [pytest.mark.stack, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
TENSORS = (
    'input { name: "x" data_type: TYPE_INT64 dims: [ 1 ] }\noutput { name: "y" data_type: TYPE_INT64 dims: [ 1 ] }\n'
)
ODD = {
    "flat": 'backend: "python"\n' + TENSORS,
    "turns": 'backend: "python"\nmax_batch_size: 8\nsequence_batching { }\n' + TENSORS,
    "pair": 'platform: "ensemble"\nmax_batch_size: 8\n' + TENSORS + "ensemble_scheduling {\n"
    '  step { model_name: "ranker" model_version: -1 input_map { key: "x" value: "x" } output_map '
    '{ key: "y" value: "y" } }\n}\n',
    "stream": 'backend: "python"\nmax_batch_size: 8\nmodel_transaction_policy { decoupled: true }\n' + TENSORS,
}


@dataclass(frozen=True, slots=True)
class Ward:
    """One model of a running server, and the hand that changes it."""

    server: Foreign
    target: TritonRepository
    tools: Tools

    @classmethod
    def of(cls, server: Foreign, shelf: Path, model: str = "ranker", wait_s: float = 30.0) -> Ward:
        target = TritonRepository(TritonTarget(str(server.repository), server.grpc, model, wait_s))
        history = JournalFolder(shelf / "journal", time.time)
        tools = Tools(target, TritonChanger(target, quiet_s=3.0), history, None, FakeClock(), lambda _: None)
        return cls(server, target, tools)

    def plan(self, wanted: BatchFloor | None = None) -> Plan:
        asked = Asked() if wanted is None else Asked(wanted=wanted)
        made = treat.make_plan("batch-floor", self.target, self.tools.clock, asked=asked)
        assert isinstance(made, Plan)
        return made

    def files(self) -> dict[str, bytes]:
        return foreign.without_lock(foreign.files(self.server.repository))

    def digests(self) -> list[str]:
        return [item.digest for item in self.target.read().objects]

    def set(self, *values: tuple[str, str]) -> None:
        before = self.target.settings_text()
        self.put(self.target.edited(before, values))

    def put(self, text: str) -> None:
        expected = frozenset({settings_digest(self.target.settings_text())})
        self.tools.changer.write(text, expected=expected, cancelled=treat.never)


@pytest.fixture(scope="module")
def explicit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    repository = tmp_path_factory.mktemp("foreign") / "models"
    foreign.put_model(repository, "ranker", CONFIG)
    foreign.put_model(repository, "auto", None)
    for name, config in ODD.items():
        foreign.put_model(repository, name, config)
    with foreign.serving(repository, "explicit", ready=("ranker", "auto", *ODD)) as server:
        yield server


@pytest.fixture
def ward(explicit: Foreign, tmp_path: Path) -> Ward:
    return Ward.of(explicit, tmp_path)


@pytest.mark.parametrize("model", ["ranker", "auto", "stream"])
def test_a_fix_is_in_effect_and_its_rollback_restores_every_byte(explicit: Foreign, tmp_path: Path, model: str) -> None:
    ward = Ward.of(explicit, tmp_path, model)
    files, digests, loads, asked = ward.files(), ward.digests(), explicit.loads(model), explicit.asked()
    plan = ward.plan()
    treat.preview(plan, ward.tools)
    assert (ward.files(), explicit.asked()) == (files, asked), "a plan and a dry run change nothing and load nothing"
    assert [item.name for item in plan.objects] == [f"{model}/config.pbtxt", f"triton model {model}", f"{model}/1"]

    applied = treat.apply(plan, ward.tools)
    assert applied.state is RunState.HELD, "nothing verifies here: no data is never kept"
    served = dict(ward.target.read().effective)
    assert (served[message.PREFERRED], served[message.MAXIMUM], served[message.WAIT]) == ("16", "32", "100000")
    assert (explicit.loads(model), explicit.asked()) == (loads + 1, asked + 1)
    assert model == "stream" or explicit.infer(model) == 7
    with pytest.raises(Refused, match="stale"):
        treat.apply(plan, ward.tools)

    rolled = treat.rollback(ward.tools, force=True)
    assert isinstance(rolled, treat.Outcome)
    assert (rolled.state, rolled.error) == (RunState.ROLLED_BACK, None)
    assert ward.files() == files
    assert ward.digests() == digests
    assert explicit.loads(model) == loads + 2


def test_vip_priority_is_set_and_taken_back(ward: Ward) -> None:
    files, digests = ward.files(), ward.digests()
    flood = {"e2e_p99_ms": 2000.0, "arrival_rate_rps": 600.0, "queue_time_ms": 900.0, "vip_share_ratio": 0.2}
    plan = treat.make_plan(
        "vip-priority", ward.target, ward.tools.clock, treat.Basis(evidence=evidence(*values(flood)))
    )
    assert isinstance(plan, Plan)
    assert any("Requests must ask for the first level themselves" in line for line in plan.side_effects)
    treat.apply(plan, ward.tools)
    served = dict(ward.target.read().effective)
    assert served[message.LEVELS] == "true"
    assert int(served[message.STANDARD_TIMEOUT]) > 0
    treat.rollback(ward.tools, force=True)
    assert (ward.files(), ward.digests()) == (files, digests)


def test_only_the_asked_fields_of_a_file_change(ward: Ward) -> None:
    gone = [line for line in ward.plan().diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert gone == ["-max_batch_size: 8   # measured in March"]


def test_a_load_that_fails_leaves_the_old_model_serving_and_the_old_file(ward: Ward) -> None:
    files, digests = ward.files(), ward.digests()
    outcome = treat.apply(ward.plan(BatchFloor(16, 128, 100.0)), ward.tools)
    assert outcome.state is RunState.UNDONE
    assert isinstance(outcome.error, RolledBack)
    assert "refused to load ranker, the old one still serves" in outcome.error.message
    assert "at most 64 at once" in outcome.error.message
    assert (ward.files(), ward.digests(), ward.server.infer()) == (files, digests, 7)


@pytest.mark.parametrize(
    ("model", "reason"),
    [("pair", "is an ensemble"), ("turns", "batches by sequence"), ("flat", "takes no batches")],
)
def test_models_that_a_fix_cannot_help_are_refused_in_words(
    explicit: Foreign, tmp_path: Path, model: str, reason: str
) -> None:
    ward = Ward.of(explicit, tmp_path, model)
    with pytest.raises(KnownError, match=r"which triton:.* cannot") as told:
        ward.plan()
    assert reason in told.value.hint


def test_instances_and_priorities_are_set_and_taken_back(ward: Ward) -> None:
    files, digests = ward.files(), ward.digests()
    ward.set((message.INSTANCES, "2"), (message.LEVELS, "true"), (message.STANDARD_TIMEOUT, "300"))
    served = dict(ward.target.read().effective)
    assert (served[message.INSTANCES], served[message.LEVELS], served[message.STANDARD_TIMEOUT]) == ("2", "true", "300")
    ward.put(CONFIG)
    assert (ward.files(), ward.digests()) == (files, digests)


def test_files_from_the_future_do_not_hide_a_change(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    code = foreign.put_model(repository, "ranker", CONFIG) / "1" / "model.py"
    # Triton never forgets a time that it has seen, so this server is the test's own.
    with foreign.serving(repository, "explicit") as server:
        ward = Ward.of(server, tmp_path)
        os.utime(code, (2_000_000_000, 2_000_000_000))
        for size in ("16", "24"):
            ward.set((message.MAXIMUM, size))
            assert dict(ward.target.read().effective)[message.MAXIMUM] == size
        ward.put(CONFIG)
        assert dict(ward.target.read().effective)[message.MAXIMUM] == "8"
        os.utime(code)
        with pytest.raises(KnownError, match="does not run what the file asks for") as told:
            ward.set((message.MAXIMUM, "16"))
        assert "restart it" in told.value.hint


def test_a_folder_that_the_server_does_not_read_is_found_out(ward: Ward, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    foreign.copy(ward.server.repository, copy)
    files, elsewhere = ward.files(), Foreign(copy, ward.server.grpc, ward.server.log, ward.server.process)
    outcome = treat.apply(Ward.of(elsewhere, tmp_path).plan(), Ward.of(elsewhere, tmp_path).tools)
    assert outcome.state is RunState.UNDONE
    assert "does not run what the file asks for" in outcome.reason
    assert foreign.without_lock(foreign.files(copy)) == files == ward.files()


def test_what_somebody_else_changed_is_noticed(ward: Ward) -> None:
    plan, file = ward.plan(), ward.target.model_folder / "config.pbtxt"
    try:
        file.write_text(CONFIG + "# a word\n", encoding="utf-8")
        with pytest.raises(Refused, match=r"the plan is stale: ranker/config\.pbtxt has changed since"):
            treat.apply(plan, ward.tools)
        file.write_text(CONFIG.replace("size: 8", "size: 9"), encoding="utf-8")
        with pytest.raises(KnownError, match="not in effect: max_batch_size: 9 asked for, 8 in effect"):
            ward.plan()
        file.write_text(
            CONFIG + 'parameters { key: "hub_token" value { string_value: "planted" } }\n', encoding="utf-8"
        )
        with pytest.raises(Refused, match="'hub_token' that looks like a secret") as refused:
            ward.plan()
        assert "planted" not in str(refused.value)
        file.unlink()
        file.symlink_to(ward.server.log)
        with pytest.raises(KnownError, match="cannot be read"):
            ward.plan()
        file.unlink()
        file.write_text(ABSENT, encoding="utf-8")
        with pytest.raises(KnownError, match="says that it is not there"):
            ward.plan()
    finally:
        file.unlink()
        file.write_text(CONFIG, encoding="utf-8")


def test_a_server_that_is_not_there_is_one_line(ward: Ward) -> None:
    target = TritonRepository(TritonTarget(str(ward.server.repository), "127.0.0.1:9", "ranker"))
    with pytest.raises(KnownError, match=r"Triton at 127\.0\.0\.1:9 does not give the configuration of ranker"):
        target.read()


def test_twenty_applies_at_once_have_one_winner(explicit: Foreign, tmp_path: Path) -> None:
    ward, plan = Ward.of(explicit, tmp_path), tmp_path / "plan.json"
    environment = os.environ | {
        "XDG_STATE_HOME": str(tmp_path / "xdg"), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }  # fmt: skip

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "latencydoctor", *words, "--target", ward.target.name]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)

    files, loads, asked = ward.files(), explicit.loads(), explicit.asked()
    planned = run("plan", "batch-floor", "-o", str(plan))
    assert planned.returncode == 0
    assert planned.stderr.endswith(f"next: latencydoctor apply {plan} --target {ward.target.name}\n")
    assert run("apply", str(plan), "--dry-run").returncode == 0
    assert (ward.files(), explicit.asked()) == (files, asked)
    with ThreadPoolExecutor(20) as pool:
        ended = list(pool.map(lambda _: run("apply", str(plan), "--yes"), range(20)))
    codes = sorted(one.returncode for one in ended)
    assert codes == [4] + [5] * 19, [one.stderr for one in ended if one.returncode not in (4, 5)]
    assert explicit.loads() == loads + 1
    (winner,) = [one for one in ended if one.returncode == 4]
    assert re.search(
        rf"to undo it: latencydoctor rollback \S+ --target {re.escape(ward.target.name)}$", winner.stdout, re.MULTILINE
    )
    listed = run("runs", "--format", "json")
    assert [one["state"] for one in json.loads(listed.stdout)["runs"]] == ["held"]
    undone = run("rollback", "--force", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert ward.files() == files


def test_a_polling_server_is_waited_for(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    foreign.put_model(repository, "ranker", CONFIG)
    with foreign.serving(repository, "poll", "--repository-poll-secs=1") as server:
        ward = Ward.of(server, tmp_path)
        files, digests, loads = ward.files(), ward.digests(), server.loads()
        with ward.tools.changer.hold("somebody"):
            time.sleep(2.5)
        assert server.loads() == loads, "the lock is no part of the model"
        applied = treat.apply(ward.plan(), ward.tools)
        assert applied.state is RunState.HELD
        assert dict(ward.target.read().effective)[message.MAXIMUM] == "32"
        rolled = treat.rollback(ward.tools, force=True)
        assert isinstance(rolled, treat.Outcome)
        assert rolled.state is RunState.ROLLED_BACK
        assert (ward.files(), ward.digests(), server.infer()) == (files, digests, 7)
        failed = treat.apply(ward.plan(BatchFloor(16, 128, 100.0)), Ward.of(server, tmp_path, wait_s=8.0).tools)
        assert failed.state is RunState.UNDONE
        assert (ward.files(), ward.digests(), server.infer()) == (files, digests, 7)


def test_a_server_that_takes_up_nothing_is_left_as_it_was_and_told_how(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    foreign.put_model(repository, "ranker", CONFIG)
    with foreign.serving(repository, "none") as server:
        ward = Ward.of(server, tmp_path, wait_s=2.0)
        files, digests = ward.files(), ward.digests()
        with pytest.raises(KnownError, match="after 2 s Triton does not run") as told:
            ward.set((message.MAXIMUM, "32"))
        assert "--model-control-mode=explicit" in told.value.hint
        ward.put(CONFIG)
        assert (ward.files(), ward.digests()) == (files, digests)
