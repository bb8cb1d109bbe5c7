"""A TorchServe as a target: one suite for the stand-in and for a real TorchServe 0.12.0."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pytest

from latencydoctor.app.treat import never
from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.folder import GuardedFolder
from latencydoctor.targets.torchserve import TorchServeTarget
from latencydoctor.targets.torchserve_changer import NAMES, TRIAL, TorchServeChanger
from latencydoctor.targets.torchserve_client import Connection, Management
from latencydoctor.targets.torchserve_state import SIZE, WAIT, WORKERS, Registration, parsed
from scripts.record import torchserve_server as real_server
from tests.fakes.torchserve import Archive, FakeTorchServe, serving

FIRST, FURTHER = "tiny-1.0.mar", "tiny-2.0.mar"
ARCHIVES = {"1.0": FIRST, "2.0": FURTHER}
START = Registration("", "1.0", FIRST, 4, 50, 2, 3, 120, 120)
BATCHING = ((SIZE, "16"), (WAIT, "100000"))


class Host(Protocol):
    """A TorchServe with both archives in its store."""

    @property
    def connection(self) -> Connection:
        """Its management API."""
        ...

    @property
    def quiet_s(self) -> float:
        """Longer than it executes a batch."""
        ...

    def ask(self, model: str) -> int:
        """Ask a model once; the status, 0 for no answer."""
        ...


@dataclass(frozen=True, slots=True)
class FakeHost:
    """The stand-in, which serves whoever has a worker that is ready."""

    connection: Connection
    fake: FakeTorchServe
    quiet_s: float = 0.03

    def ask(self, model: str) -> int:
        now = Management(self.connection, model).read()
        found = now.version(now.default)
        return 200 if found is not None and found.ready else 503


@dataclass(frozen=True, slots=True)
class RealHost:
    """A TorchServe of its own."""

    connection: Connection
    server: real_server.Server
    quiet_s: float = 1.0

    def ask(self, model: str) -> int:
        request = urllib.request.Request(f"{self.server.inference}/predictions/{model}", b"0")
        request.add_header("Authorization", f"Bearer {self.server.key('inference')}")
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


@pytest.fixture(scope="module")
def fake_host() -> Iterator[Host]:
    archives = {FIRST: Archive("tiny", "1.0", 2, 3), FURTHER: Archive("tiny", "2.0", 2, 3)}
    fake = FakeTorchServe(archives, start_s=0.01, token="k")
    with serving(fake) as url:
        yield FakeHost(Connection(url, (("Authorization", "Bearer k"),)), fake)


@pytest.fixture(scope="module")
def real_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    if shutil.which("java") is None:
        pytest.skip("TorchServe is a Java program, and there is no java on PATH")
    if importlib.util.find_spec("ts") is None:
        pytest.skip("torchserve is not installed: pip install torchserve==0.12.0")
    folder = tmp_path_factory.mktemp("torchserve") / "it"
    with real_server.serving(Path(sys.executable), folder) as server:
        real_server.write_archive(folder / "store", "tiny", "2.0")
        key = f"Bearer {server.key('management')}"
        yield RealHost(Connection(server.management, (("Authorization", key),)), server)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.slow)])
def host(request: pytest.FixtureRequest) -> Host:
    found: Host = request.getfixturevalue(f"{request.param}_host")
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """One model of its own, with everything to change it."""

    host: Host
    management: Management
    target: TorchServeTarget
    changer: TorchServeChanger
    folder: Path

    def write(self, text: str, *expected: str, cancelled: Callable[[], bool] = never) -> str:
        """Brings the model to a text; the digest of what is there afterwards."""
        digests = frozenset(settings_digest(one) for one in expected)
        return self.changer.write(text, expected=digests, cancelled=cancelled).digest

    def text(self) -> str:
        """The settings as they are."""
        return self.target.read().settings_text

    def versions(self) -> list[str]:
        """What is registered."""
        return [version.name for version in self.management.read().versions]

    def undisturbed(self) -> list[str]:
        """What a trial would have left; nothing."""
        return [version.name for version in self.management.of(f"{self.management.model}{TRIAL}").read().versions]


Make = Callable[..., Case]


@pytest.fixture
def make(host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Registers the first version under a name of the test's own, and takes away whatever is there at the end."""
    model = f"m{abs(hash(request.node.name)) % 10**8}"
    management = Management(host.connection, model)

    def made(archives: dict[str, str] | None = None, effects: Effects = unwatched) -> Case:
        if not management.read().versions:
            start = replace(START, model=model)
            management.register(start)
            management.scale(start)
            ready(management, 2)
        target = TorchServeTarget(Management(host.connection, model, effects), archives)
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        guarded = GuardedFolder(folder, NAMES, effects)
        return Case(host, management, target, TorchServeChanger(target, guarded, 30.0, host.quiet_s, 0.01), folder)

    yield made
    for name in (model, f"{model}{TRIAL}"):
        clear(management.of(name))


def clear(management: Management) -> None:
    now = management.read()
    for version in sorted(now.versions, key=lambda one: one.name == now.default):
        management.unregister(version.name)


def ready(management: Management, workers: int) -> None:
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        now = management.read()
        found = now.version(now.default)
        if found is not None and found.ready >= workers:
            return
        time.sleep(0.05)
    raise AssertionError("the workers did not start")


@contextmanager
def asking(host: Host, model: str) -> Iterator[list[int]]:
    """Requests one after the other from two clients meanwhile; their statuses."""
    statuses: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            statuses.append(host.ask(model))
            time.sleep(0.01)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_model_is_read_as_it_was_registered(make: Make) -> None:
    case = make()
    state = case.target.read()

    assert parsed(state.settings_text) == replace(START, model=case.management.model)
    assert [one.name for one in state.objects] == ["management API", "version 1.0"]
    assert state.not_in_effect == ()
    assert state.in_use("inference.batching.enabled") == "true"
    assert [state.can_set(key) for key in (SIZE, WAIT, WORKERS)] == [True] * 3
    assert not state.can_set("inference.batching.preferred_batch_size")


def test_workers_are_scaled_and_scaled_back(make: Make) -> None:
    case = make()
    before = case.target.read()
    after = case.target.edited(before.settings_text, [(WORKERS, "4")])

    assert case.write(after, before.settings_text) == settings_digest(after)
    ready(case.management, 4)
    assert case.versions() == ["1.0"]
    case.write(before.settings_text, after)
    assert case.target.read().objects == before.objects


def test_with_a_further_archive_somebody_serves_all_the_time(make: Make) -> None:
    case = make(ARCHIVES)
    before = case.target.read()
    after = case.target.edited(before.settings_text, BATCHING)

    with asking(case.host, case.management.model) as statuses:
        case.write(after, before.settings_text)
        assert case.versions() == ["2.0"]
        case.write(before.settings_text, after)

    assert set(statuses) == {200}
    assert case.versions() == ["1.0"]
    assert case.target.read().objects == before.objects
    assert case.undisturbed() == []


def test_without_a_further_archive_the_version_is_registered_again(make: Make) -> None:
    case = make()
    before = case.target.read()
    after = case.target.edited(before.settings_text, BATCHING)

    case.write(after, before.settings_text)
    assert case.text() == after
    case.write(before.settings_text, after)
    assert case.target.read().objects == before.objects


def test_an_archive_that_is_not_there_is_found_out_before_anything_is_touched(make: Make) -> None:
    case = make({"1.0": FIRST, "3.0": "absent.mar"})
    before = case.target.read()
    after = case.target.edited(before.settings_text, BATCHING)

    with pytest.raises(KnownError, match=r"404 .*absent"):
        case.write(after, before.settings_text)

    assert case.target.read().objects == before.objects
    case.write(before.settings_text, before.settings_text, after)
    assert case.undisturbed() == []


def test_an_archive_of_another_version_is_found_out_before_anything_is_touched(make: Make) -> None:
    case = make({"1.0": FIRST, "3.0": FURTHER})
    before = case.target.read()
    after = case.target.edited(before.settings_text, BATCHING)

    with pytest.raises(KnownError, match=r"holds version 2\.0, not 3\.0"):
        case.write(after, before.settings_text)

    assert case.target.read().objects == before.objects
    assert case.undisturbed() == []


def test_a_model_that_somebody_else_changed_is_not_touched(make: Make) -> None:
    case = make(ARCHIVES)
    before = case.text()
    after = case.target.edited(before, BATCHING)
    case.management.scale(replace(parsed(before), min_workers=1, max_workers=1))

    with pytest.raises(Refused, match="changed by someone else"):
        case.write(after, before)
    assert case.versions() == ["1.0"]


def test_what_is_there_already_is_only_waited_for(make: Make) -> None:
    case = make(ARCHIVES)
    text = case.text()

    assert case.write(text, text) == settings_digest(text)
    assert not (case.folder / "under-way.json").exists()


class DiedError(BaseException):
    """The process ended here; nothing may catch it."""


class Dying:
    """The hook of effects: ends the run at one moment, before or after the effect."""

    def __init__(self, moment: int) -> None:
        self._left = moment
        self.seen: list[Effect] = []

    def __call__(self, effect: Effect) -> AbstractContextManager[None]:
        return self._watched(effect)

    @contextmanager
    def _watched(self, effect: Effect) -> Iterator[None]:
        if effect is not Effect.ASK_TORCHSERVE:
            self.seen.append(effect)
            self._count()
        yield
        if effect is not Effect.ASK_TORCHSERVE:
            self._count()

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise DiedError


def died_at(case: Case, make: Make, archives: dict[str, str] | None, moment: int, ends: tuple[str, str]) -> Dying:
    """Goes from the first end to the second and dies on the way."""
    dying = Dying(moment)
    doomed = make(archives, dying)
    try:
        doomed.write(ends[1], ends[0])
    except DiedError:
        return dying
    return Dying(0)


@pytest.mark.parametrize("archives", [ARCHIVES, None], ids=["further archive", "registered again"])
@pytest.mark.parametrize("back", [True, False], ids=["undone", "completed"])
def test_a_run_that_dies_anywhere_is_brought_to_either_end_exactly(
    make: Make, host: Host, archives: dict[str, str] | None, back: bool
) -> None:
    case = make(archives)
    before = case.target.read()
    ends = (before.settings_text, case.target.edited(before.settings_text, BATCHING))
    # On the real server every fifth moment: each run starts workers, which takes it a second.
    step = 1 if isinstance(host, FakeHost) else 5
    moment, deaths, effects = 1, 0, set[Effect]()
    while True:
        dying = died_at(case, make, archives, moment, ends)
        effects |= set(dying.seen)
        if not dying.seen:
            break
        deaths += 1
        wanted = ends[0] if back else ends[1]
        case.write(wanted, *ends)
        assert case.text() == wanted
        assert case.versions() == [parsed(wanted).version]
        assert case.undisturbed() == []
        case.write(ends[0], *ends)
        assert case.target.read().objects == before.objects
        moment += step
    assert deaths >= 20 / step
    assert {Effect.REGISTER_VERSION, Effect.UNREGISTER_VERSION} <= effects


def test_a_run_that_is_interrupted_says_so_and_can_be_undone(make: Make) -> None:
    case = make(ARCHIVES)
    before = case.text()
    after = case.target.edited(before, BATCHING)
    asked = iter([False] * 4)

    with pytest.raises(KnownError, match="interrupted"):
        case.write(after, before, cancelled=lambda: next(asked, True))

    case.write(before, before, after)
    assert case.text() == before
    assert case.versions() == ["1.0"]
