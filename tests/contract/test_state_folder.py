"""A real folder: links are not followed, a replace is whole or not at all, a lock names its holder and dies with it."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.effects import Effect
from latencydoctor.targets.state_folder import LOCK, SETTINGS, Endpoints, StateFolder

HOLD = """
import sys, time
from pathlib import Path
from latencydoctor.targets.state_folder import StateFolder
with StateFolder(Path(sys.argv[1])).locked("20261130T070000Z-abcdef"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    (tmp_path / SETTINGS).write_bytes(b"a: 1\r\n")
    return StateFolder(tmp_path)


def test_text_is_read_and_replaced_byte_for_byte(folder: StateFolder) -> None:
    assert folder.read(SETTINGS) == "a: 1\r\n"
    (folder.path / SETTINGS).chmod(0o640)
    folder.replace(SETTINGS, "a: Ü\r\n")
    assert (folder.path / SETTINGS).read_bytes() == "a: Ü\r\n".encode()
    assert stat.S_IMODE((folder.path / SETTINGS).stat().st_mode) == 0o640
    folder.replace("new.yaml", "x")
    assert stat.S_IMODE((folder.path / "new.yaml").stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.path.iterdir()) == ["new.yaml", SETTINGS]


def test_links_and_odd_files_are_refused(folder: StateFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    (folder.path / "link").symlink_to(outside)
    os.mkfifo(folder.path / "pipe")
    (folder.path / "binary").write_bytes(b"\xff\xfe")
    (folder.path / "large").write_bytes(b"x" * 300_000)
    for name, message in (
        ("link", "cannot be read"), ("pipe", "not a regular file"), ("binary", "not UTF-8"), ("large", "larger than"),
        ("absent", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(KnownError, match=message):
            folder.read(name)


def test_names_that_lead_through_folders_are_followed_step_by_step(folder: StateFolder, tmp_path: Path) -> None:
    (folder.path / "models" / "faq").mkdir(parents=True)
    (folder.path / "models" / "faq" / "config.pbtxt").write_text("max_batch_size: 8")
    assert folder.read("models/faq/config.pbtxt") == "max_batch_size: 8"
    (folder.path / "other").symlink_to(folder.path / "models")
    with pytest.raises(KnownError, match="cannot be read"):
        folder.read("other/faq/config.pbtxt")
    for name in ("models/../settings.yaml", "/etc/passwd", "", "models//x", ".hidden"):
        with pytest.raises(KnownError, match="not a plain name"):
            folder.read(name)


def test_a_user_without_a_name_is_a_number(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    with folder.locked("mine"):
        assert json.loads((folder.path / LOCK).read_text())["user"] == str(os.getuid())


def test_asking_for_the_lock_takes_and_writes_nothing(folder: StateFolder) -> None:
    folder.refuse_locked()
    assert not (folder.path / LOCK).exists()
    with folder.locked("first"), pytest.raises(Refused, match="locked by run first"):
        folder.refuse_locked()
    folder.refuse_locked()
    (folder.path / LOCK).write_text('{"run": "killed"}')
    folder.refuse_locked()
    assert (folder.path / LOCK).read_text() == '{"run": "killed"}'


def test_a_replaced_link_is_replaced_itself(folder: StateFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    (folder.path / "link").symlink_to(outside)
    folder.replace("link", "inside")
    assert outside.read_text() == "untouched"
    assert (folder.path / "link").read_text() == "inside"


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(KnownError, match="there is no stack in") as refused:
        StateFolder(tmp_path / "absent").read(SETTINGS)
    assert "stack up" in refused.value.hint


def test_a_full_disk_leaves_the_old_file(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KnownError, match="No space left"):
        folder.replace(SETTINGS, "a: 2\n")
    assert [path.name for path in folder.path.iterdir()] == [SETTINGS]
    assert folder.read(SETTINGS) == "a: 1\r\n"


def test_a_disk_that_takes_nothing_more_is_one_line(folder: StateFolder) -> None:
    """A file system that met an error is read-only from one moment to the next, and nothing can be cleared either."""
    broken = False

    @contextmanager
    def effects(effect: Effect) -> Iterator[None]:
        nonlocal broken
        broken = broken or effect is Effect.FILE_SYNC
        if broken:
            raise OSError(errno.EROFS, "Read-only file system")
        yield

    with pytest.raises(KnownError, match="Read-only file system"):
        StateFolder(folder.path, effects).replace(SETTINGS, "a: 2\n")
    assert folder.read(SETTINGS) == "a: 1\r\n"


def test_endpoints_are_what_up_wrote(folder: StateFolder) -> None:
    told = {"triton_grpc": "127.0.0.1:1", "controller_metrics": "http://x/", "admin_socket": "/a", "gateway": "g"}
    (folder.path / "endpoints.json").write_text(json.dumps(told))
    assert folder.endpoints() == Endpoints(("127.0.0.1:1",), "http://x/", "/a")
    others = [{"http": "h", "grpc": f"127.0.0.1:{port}", "metrics": "m"} for port in (2, 3)]
    (folder.path / "endpoints.json").write_text(json.dumps({**told, "replicas": others}))
    assert folder.endpoints().tritons_grpc == ("127.0.0.1:1",), "there is an address for each that could run"
    (folder.path / "run").mkdir()
    for serving, expected in (([1, 2], 2), ([1, 2, 9], 2), ([], 1), ("x", 1)):
        (folder.path / "run" / "serving.json").write_text(json.dumps({"serving": serving}))
        assert len(folder.endpoints().tritons_grpc) == expected
    for damaged in ("{}", "[]", "x"):
        (folder.path / "endpoints.json").write_text(damaged)
        with pytest.raises(KnownError, match="damaged"):
            folder.endpoints()


def test_the_lock_names_its_holder_and_is_free_as_soon_as_that_is_dead(folder: StateFolder) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder.path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Refused) as refused, folder.locked("other"):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert "locked by run 20261130T070000Z-abcdef, user " in refused.value.message
    assert f"pid {holder.pid}, since 20" in refused.value.message
    with folder.locked("mine"):
        assert json.loads((folder.path / LOCK).read_text())["run"] == "mine"
    assert (folder.path / LOCK).read_text() == ""
    assert stat.S_IMODE((folder.path / LOCK).stat().st_mode) == 0o600


def test_a_holder_that_has_not_said_who_it_is(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latencydoctor.targets.folder.NAMING_S", 0.05)
    with folder.locked("first"):
        (folder.path / LOCK).write_text("")
        with pytest.raises(Refused, match="has not said who it is yet"), folder.locked("second"):
            pass


LATE = """
import fcntl, json, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
time.sleep(0.1)
os.ftruncate(lock, 0)
told = {"run": "second", "user": "ann", "host": os.uname().nodename, "pid": os.getpid(), "since": "2026"}
os.pwrite(lock, json.dumps(told).encode(), 0)
time.sleep(60)
"""


def test_a_holder_that_took_the_lock_a_moment_ago_is_named_and_not_the_dead_one_before_it(folder: StateFolder) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as dead:
        dead.wait()
    told = {"run": "first", "user": "ann", "host": os.uname().nodename, "pid": dead.pid, "since": "2026"}
    (folder.path / LOCK).write_text(json.dumps(told))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LATE, folder.path / LOCK], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        holder.stdin.write(b"now\n")
        holder.stdin.flush()
        with pytest.raises(Refused, match=f"locked by run second, user ann, host .*, pid {holder.pid},"):
            folder.refuse_locked()
        holder.kill()


def test_another_users_holder_and_one_on_another_machine_count_as_living(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_pid: int, _signal: int) -> None:
        raise PermissionError

    with folder.locked("first"):
        monkeypatch.setattr(os, "kill", forbidden)
        with pytest.raises(Refused, match="locked by run first"):
            folder.refuse_locked()
        far = {"run": "far", "user": "ann", "host": "elsewhere", "pid": 2**22 + 1, "since": "2026"}
        (folder.path / LOCK).write_text(json.dumps(far))
        with pytest.raises(Refused, match="locked by run far, user ann, host elsewhere"):
            folder.refuse_locked()


KILLED = """
import os, signal, sys
from pathlib import Path
from latencydoctor.targets.state_folder import StateFolder
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
with (folder := StateFolder(Path(sys.argv[1]))).locked("killed"):
    folder.replace("settings.yaml", "a: 2")
"""


def test_what_a_killed_holder_left_half_done_is_gone_with_the_next(folder: StateFolder) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder.path)]).returncode == -signal.SIGKILL
    assert len(list(folder.path.glob(".*.tmp"))) == 1
    with folder.locked("next"):
        assert folder.read(SETTINGS) == "a: 1\r\n"
    assert sorted(path.name for path in folder.path.iterdir()) == [SETTINGS, LOCK]


def test_a_left_over_that_cannot_be_cleared_is_one_line(folder: StateFolder) -> None:
    (folder.path / f".{SETTINGS}.latencydoctor.tmp").mkdir()
    with pytest.raises(KnownError, match="cannot be used"), folder.locked("x"):
        pass


def test_a_lock_that_is_a_link_is_not_followed(folder: StateFolder, tmp_path: Path) -> None:
    (folder.path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KnownError, match="cannot be used"), folder.locked("x"):
        pass
    assert not (tmp_path / "elsewhere").exists()
