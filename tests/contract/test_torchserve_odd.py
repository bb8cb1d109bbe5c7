"""A TorchServe that answers oddly, late or not at all, somebody else at work, and a change that only is looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from latencydoctor.app.treat import never
from latencydoctor.errors import KnownError
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets import torchserve_client
from latencydoctor.targets.folder import GuardedFolder
from latencydoctor.targets.torchserve import TorchServeTarget
from latencydoctor.targets.torchserve_changer import NAMES, TorchServeChanger
from latencydoctor.targets.torchserve_client import Connection, Management
from latencydoctor.targets.torchserve_state import SIZE, WAIT, Registration
from tests.contract.authority import found_company
from tests.contract.strangers import Answer, Asked, endless, stranger
from tests.fakes import torchserve_case
from tests.fakes.torchserve import Archive, FakeTorchServe, serving
from tests.fakes.torchserve_case import ARCHIVES, MODEL

START = Registration(MODEL, "1.0", ARCHIVES["1.0"], 1, 50, 2, 2, 120, 120)
BATCHING = ((SIZE, "16"), (WAIT, "100000"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchserve_client, "TIMEOUT_S", 0.5)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda asked: asked.reply(b"<html>hello</html>", kind="text/html"), "answered 200 and no JSON"),
        (lambda asked: asked.reply(b'{"message": "oh no"}', "500 No"), "answered 500: oh no"),
        (lambda asked: asked.reply(b'[{"modelName": "x"}]'), "not TorchServe's"),
        (lambda asked: asked.reply(b"[]"), "not TorchServe's"),
        (lambda asked: asked.reply(b"[" * 100000), "no JSON"),
        (lambda asked: asked.reply(b"{}", "302 Moved", Location="http://127.0.0.1:1/"), "not TorchServe's"),
        (lambda asked: asked.connection.close(), "does not answer"),
    ],
)
def test_a_server_that_answers_oddly_is_told(answer: Answer, says: str) -> None:
    with stranger(answer) as server, pytest.raises(KnownError, match=says):
        Management(Connection(server.url), MODEL).read()


def test_an_answer_without_an_end_is_not_waited_for() -> None:
    with stranger(endless) as server, pytest.raises(KnownError):
        Management(Connection(server.url), MODEL).read()


def test_tls_wants_the_ca_it_is_told_of_and_shows_a_certificate(tmp_path: Path) -> None:
    company = found_company(tmp_path)
    ca, mine = company.path("ca.pem"), (company.path("client.pem"), company.path("client.key"))
    with stranger(fake().answer, company.server(asks_back=True)) as server:
        assert Management(Connection(server.url, (), ca, mine), MODEL).read().versions == ()
        for connection in (Connection(server.url, (), "", mine), Connection(server.url, (), ca)):
            with pytest.raises(KnownError, match="does not answer") as caught:
                Management(connection, MODEL).read()
            assert "ca_file" in (caught.value.hint or "")


def test_a_closed_port_is_told() -> None:
    with pytest.raises(KnownError, match=r"does not answer: .*refused"):
        Management(Connection("http://127.0.0.1:1"), MODEL).read()


def test_a_token_that_is_not_accepted_is_told_without_it() -> None:
    fake = FakeTorchServe({}, token="right")
    with serving(fake) as url, pytest.raises(KnownError, match="refused the credentials") as caught:
        Management(Connection(url, (("Authorization", "Bearer s3cr3t"),)), MODEL).read()
    assert "s3cr3t" not in f"{caught.value} {caught.value.hint}"


class Odd(FakeTorchServe):
    """Does a request and does not answer it, as often as it is told to."""

    silent = 0

    def answer(self, asked: Asked) -> None:
        if self.silent and not asked.head.startswith("GET"):
            self.silent -= 1
            super().answer(replace(asked, connection=_Nowhere()))  # type: ignore[arg-type]  # odd on purpose
            asked.connection.close()
        else:
            super().answer(asked)


class _Nowhere:
    def sendall(self, _data: bytes) -> None: ...


def fake(kind: type[FakeTorchServe] = FakeTorchServe, **archive: object) -> FakeTorchServe:
    archives = {name: replace(Archive(MODEL, version), **archive) for version, name in ARCHIVES.items()}  # type: ignore[arg-type]  # odd on purpose
    return kind(archives, start_s=0.01)


Bound = tuple[FakeTorchServe, TorchServeTarget, TorchServeChanger, Management]
Bind = Callable[..., Bound]


@pytest.fixture
def bind(tmp_path: Path) -> Iterator[Bind]:
    """A model on a stand-in, and what changes it."""
    closing = []

    def made(server: FakeTorchServe, archives: dict[str, str] | None = None) -> Bound:
        held = serving(server)
        management = Management(Connection(held.__enter__()), MODEL)
        closing.append(held)
        management.register(START)
        target = TorchServeTarget(management, ARCHIVES if archives is None else archives)
        (tmp_path / "mine").mkdir()
        changer = TorchServeChanger(target, GuardedFolder(tmp_path / "mine", NAMES), 1.5, 0.02, 0.01)
        server.asked.clear()
        return server, target, changer, management

    yield made
    for held in closing:
        held.__exit__(None, None, None)


def there(bound: Bound) -> tuple[str, str]:
    """Goes to another batching; the texts before and after."""
    _, target, changer, _ = bound
    before = target.read().settings_text
    after = target.edited(before, BATCHING)
    changer.write(after, expected=frozenset({settings_digest(before)}), cancelled=never)
    return before, after


def test_an_answer_that_is_lost_is_found_out_by_asking(bind: Bind) -> None:
    server = fake(Odd)
    bound = bind(server)
    assert isinstance(server, Odd)
    server.silent = 99

    _, after = there(bound)

    assert bound[1].read().settings_text == after
    # Nothing was asked for twice: each request was looked for before it was repeated.
    assert len(server.changes) == len(set(server.changes))


def test_a_server_that_allows_no_registration_is_left_as_it_is(bind: Bind) -> None:
    server = fake()
    bound = bind(server)
    server.model_api = False
    before = bound[1].read()

    with pytest.raises(KnownError, match="answered 405") as caught:
        there(bound)

    assert "--enable-model-api" in (caught.value.hint or "")
    assert bound[1].read().objects == before.objects


def test_a_server_that_registers_something_else_is_left_as_it_is(bind: Bind) -> None:
    bound = bind(fake(forced_batch_size=4), {})
    before = bound[1].read()

    with pytest.raises(KnownError, match=r"would not register .* batch size 4") as caught:
        there(bound)

    assert "model-config.yaml" in (caught.value.hint or "")
    assert bound[1].read().objects == before.objects


def test_archives_that_are_not_the_same_model_are_not_exchanged(bind: Bind) -> None:
    server = fake()
    server.archives[ARCHIVES["2.0"]] = replace(server.archives[ARCHIVES["2.0"]], traits=(("deviceType", "gpu"),))
    bound = bind(server)

    with pytest.raises(KnownError, match="not alike: deviceType, parallelType, runtime"):
        there(bound)

    assert bound[3].read().default == "1.0"


def test_workers_that_do_not_start_are_given_up_on_and_the_old_version_serves(bind: Bind) -> None:
    server = fake()
    server.archives[ARCHIVES["2.0"]] = replace(server.archives[ARCHIVES["2.0"]], broken=True)
    _, target, changer, management = bound = bind(server)
    changer.timeout_s = -119.5  # of the 120 s that workers may take
    before = target.read()

    with pytest.raises(KnownError, match="0 of 2 workers are ready"):
        there(bound)

    assert management.read().default == "1.0"
    digests = frozenset(
        settings_digest(text) for text in (before.settings_text, target.edited(before.settings_text, BATCHING))
    )
    changer.timeout_s = 1.5
    assert changer.write(before.settings_text, expected=digests, cancelled=never).objects == before.objects


def test_the_old_version_goes_only_when_nobody_waits_for_it(bind: Bind) -> None:
    server = fake()
    bound = bind(server)
    _, _, changer, management = bound
    changer.timeout_s = -119.0
    server.wait_for(MODEL, "1.0", 5)

    with pytest.raises(KnownError, match=r"5 requests wait for version 1\.0"):
        there(bound)

    assert management.read().default == "2.0"
    assert management.read().version("1.0") is not None


def ended(*words: str) -> tuple[int, str]:
    """One run of the shipped program; its exit code and what it printed."""
    program = [sys.executable, "-m", "latencydoctor", *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_change_that_is_only_looked_at_asks_the_server_for_nothing(tmp_path: Path) -> None:
    with torchserve_case.prepared(tmp_path) as case:
        before = len(case.fake.changes)
        code, told = ended(*case.apply, "--dry-run")
        assert code == 0, told
        assert "POST /models?url=tiny-2.0.mar&batch_size=16" in (tmp_path / "plan.json").read_text()
        assert len(case.fake.changes) == before
        assert list((tmp_path / "state").iterdir()) == []


def test_the_plan_says_what_this_server_cannot(tmp_path: Path) -> None:
    with torchserve_case.prepared(tmp_path, {}):
        plan = json.loads((tmp_path / "plan.json").read_text())
        said = " ".join(plan["side_effects"])
        for words in ("no preferred batch size", "no lock", "new ones fail", "restarted TorchServe", "A handler"):
            assert words in said
        assert "torchserve_case" not in said
        assert torchserve_case.TOKEN not in json.dumps(plan)


def test_the_key_is_nowhere_in_what_is_kept_or_printed(tmp_path: Path) -> None:
    with torchserve_case.prepared(tmp_path) as case:
        code, told = ended(*case.apply)
        # Without metrics the change is held for a person to judge.
        assert code == 4, told
        assert torchserve_case.TOKEN not in told
        kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "key_file.json"]
        assert len(kept) >= 4
        assert [path for path in kept if torchserve_case.TOKEN in path.read_text()] == []


def test_somebody_elses_change_makes_a_plan_stale(tmp_path: Path) -> None:
    with torchserve_case.prepared(tmp_path) as case:
        case.management.scale(replace(torchserve_case.START, min_workers=1, max_workers=1))
        code, told = ended(*case.apply)
        assert code == 5
        assert "stale" in told


def test_of_several_applies_at_once_one_wins(tmp_path: Path) -> None:
    with torchserve_case.prepared(tmp_path) as case:
        program = [sys.executable, "-m", "latencydoctor", *case.apply]
        runs = [
            subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ)
            for _ in range(8)
        ]
        codes = sorted(run.wait(timeout=120) for run in runs)
        told = b"\n".join(run.stdout.read() for run in runs if run.stdout is not None)
        for run in runs:
            if run.stdout is not None:
                run.stdout.close()
        # Without metrics the winner's change is held for a person to judge.
        assert codes == [4, *[5] * 7], told.decode()
        assert list(case.versions()) == ["2.0", "default"]


def test_scale_out_is_one_more_worker_and_back(tmp_path: Path) -> None:
    with torchserve_case.prepared(tmp_path) as case:
        before, which = case.versions(), case.apply[3:]
        code, told = ended("plan", "scale-out", "-o", str(tmp_path / "more.json"), *which)
        assert code == 0, told
        code, told = ended("apply", str(tmp_path / "more.json"), "--yes", *which)
        assert code == 4, told
        assert case.fake.changes[-1].startswith("PUT /models/tiny/1.0?min_worker=3&max_worker=3")
        code, told = ended(*case.rollback)
        assert (code, case.versions()) == (0, before), told
