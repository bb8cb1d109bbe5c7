"""The stack's dealings with the file system: atomic writes, folders, programs found, logs read, old files refused."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.stack import (
    alertmanager,
    binaries,
    endpoints,
    faq_entries,
    host,
    lifecycle,
    logs,
    monitoring,
    profile,
    supervisor,
)
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.binaries import Binaries, Tools
from latencydoctor.stack.encoder import corpus, encodings
from latencydoctor.stack.encoder.encodings import Corpus
from latencydoctor.stack.encoder.onnx_model import OnnxEncoder, model_path
from latencydoctor.stack.encoder.serving import FaqServing, Metric, Place
from latencydoctor.stack.encoder.tokenize import TextTokenizer
from latencydoctor.stack.files import clear_left, write_atomically
from latencydoctor.stack.layout import Layout, locate
from latencydoctor.stack.settings import Settings


def program(path: Path, content: bytes = b"#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_maker_left_in_the_cache_is_cleared_an_hour_later(tmp_path: Path) -> None:
    old, new, kept = tmp_path / ".int8-1-a", tmp_path / ".int8-2-b", tmp_path / "int8-3"
    file = tmp_path / ".int8-4.tmp"
    for folder in (old, new, kept):
        folder.mkdir()
        (folder / "0.onnx").write_text("x")
    file.write_text("x")
    hours_ago_s = time.time() - 2 * 3600
    for path in (old, kept, file):
        os.utime(path, (hours_ago_s, hours_ago_s))
    clear_left(tmp_path, ".int8-*")
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, kept.name]
    clear_left(tmp_path / "absent", ".int8-*")


def test_settings_are_saved_and_loaded(tmp_path: Path) -> None:
    stack_settings.save(tmp_path / "s.yaml", Settings(generation=7))
    assert stack_settings.load(tmp_path / "s.yaml") == Settings(generation=7)


@pytest.mark.parametrize(("content", "message"), [(b"\xff", "is not UTF-8"), (b"#" * 70_000, "larger than 64 kB")])
def test_a_settings_file_that_is_no_small_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "s.yaml").write_bytes(content)
    with pytest.raises(ContentError, match=message):
        stack_settings.load(tmp_path / "s.yaml")


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match=r"s\.yaml: cannot read it: No such file"):
        stack_settings.load(tmp_path / "s.yaml")


def test_a_state_folder_is_private_even_when_it_was_not(tmp_path: Path) -> None:
    made = Layout(tmp_path / "state")
    made.state.mkdir(mode=0o755)
    made.create()
    assert made.state.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_something_else_is_not_purged(tmp_path: Path) -> None:
    """`/` and `/var` have a folder `run`, too."""
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(KnownError, match="is not the state folder of a stack"):
        lifecycle.down(Layout(tmp_path), purge=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "run"]
    assert list((tmp_path / "run").iterdir()) == []


def test_a_folder_that_a_stack_began_with_is_purged(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")
    layout.create()
    lifecycle.down(layout, purge=True)
    assert not layout.state.exists()


def test_a_link_is_no_state_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KnownError, match="belongs to another user or is no folder"):
        Layout(tmp_path / "state").create()


def test_a_state_folder_is_the_same_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name's digest its processes and its shared memory are found again."""
    (tmp_path / "real" / "stack").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path / "real" / "stack")
    spelt = ["../stack", ".", str(tmp_path / "real" / "x" / ".." / "stack"), str(tmp_path / "link" / "stack")]
    assert {locate(Path(one)).identity for one in spelt} == {Layout(tmp_path / "real" / "stack").identity}
    (tmp_path / "own").symlink_to(tmp_path / "real" / "stack")
    assert locate(tmp_path / "own").state == tmp_path / "own", "a link is refused, not followed"


def test_the_default_state_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert locate(None).state == tmp_path / "latencydoctor" / "stack" / "default"


def test_a_deep_state_folder_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    assert Layout(Path("/s")).socket_folder == Path("/s/run")
    deep = Layout(tmp_path / ("x" * 90))
    deep.create()
    assert deep.sockets() != deep.run
    assert deep.socket_folder.stat().st_mode & 0o777 == 0o700
    (deep.socket_folder / "a.sock").touch()
    deep.remove_sockets()
    assert not deep.socket_folder.exists()


def test_programs_are_looked_for_in_the_agreed_order(tmp_path: Path) -> None:
    environment = {"LATENCYDOCTOR_TOOLS": str(tmp_path / "chosen"), "PATH": f"{tmp_path / 'a'}::{tmp_path / 'b'}"}
    found = binaries.tools(environment, tmp_path / "cache").folders
    assert found[:4] == (
        tmp_path / "chosen",
        tmp_path / "chosen" / "usr" / "bin",
        tmp_path / "a",
        tmp_path / "b",
    )
    assert found[-1] == tmp_path / "cache" / "tools" / "usr" / "bin"


def test_missing_programs_are_named(tmp_path: Path) -> None:
    empty = Tools((tmp_path,))
    with pytest.raises(KnownError, match="prometheus was not found") as caught:
        binaries.discover(empty)
    assert "LATENCYDOCTOR_TOOLS" in caught.value.hint
    program(tmp_path / "prometheus")
    with pytest.raises(KnownError, match="redis-server was not found"):
        binaries.discover(empty, "redis")
    program(tmp_path / "redis-server")
    found = binaries.discover(empty, "redis")
    assert found.cache_server == tmp_path / "redis-server"
    assert found.alertmanager is None
    assert binaries.discover(empty).cache_server.name == "valkey-server"


def test_a_file_that_cannot_be_executed_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "prometheus").touch(mode=0o644)
    assert Tools((tmp_path,)).find("prometheus") is None


def unpacked(tmp_path: Path, content: bytes) -> Binaries:
    binary = program(tmp_path / "usr" / "bin" / "prometheus-alertmanager", content)
    return Binaries(Path("prometheus"), None, binary, Path("valkey-server"))


def test_an_unpacked_alertmanager_is_made_to_run_from_there(tmp_path: Path) -> None:
    content = b"abc/usr/share/prometheus/alertmanager/ui/xyz/usr/share/prometheus/alertmanager355"
    found = unpacked(tmp_path, content)
    assert alertmanager.runnable(found, tmp_path / "cache") is None
    templates = tmp_path / "usr" / "share" / "prometheus" / "alertmanager"
    templates.mkdir(parents=True)
    for name in alertmanager.TEMPLATES:
        (templates / name).write_text(name, encoding="utf-8")
    made = alertmanager.runnable(found, tmp_path / "cache")
    assert made is not None
    changed = made.binary.read_bytes()
    assert len(changed) == len(content)
    assert changed.startswith(b"abc/usr/share/prometheus/alertmanager/ui/xyz./share////")
    assert changed.endswith(b"////355")
    alertmanager.place_templates(made, tmp_path)
    assert (tmp_path / "share" / "default.tmpl").read_text(encoding="utf-8") == "default.tmpl"
    again = alertmanager.runnable(found, tmp_path / "cache")
    assert again == made


def test_another_alertmanager_runs_as_it_is(tmp_path: Path) -> None:
    found = unpacked(tmp_path, b"upstream")
    made = alertmanager.runnable(found, tmp_path / "cache")
    assert made == alertmanager.Alertmanager(tmp_path / "usr" / "bin" / "prometheus-alertmanager", None)
    alertmanager.place_templates(made, tmp_path)
    assert alertmanager.runnable(Binaries(Path("p"), None, None, Path("v")), tmp_path) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"gateway": 1}'])
def test_damaged_endpoints_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "endpoints.json").write_text(content, encoding="utf-8")
    with pytest.raises(KnownError, match="cannot be used"):
        endpoints.load(tmp_path / "endpoints.json")


def test_endpoints_are_written_and_read(tmp_path: Path) -> None:
    made = endpoints.endpoints_for(tmp_path, endpoints.free_ports(), "cpu", alertmanager=True)
    endpoints.save(tmp_path / "endpoints.json", made)
    assert endpoints.load(tmp_path / "endpoints.json") == made
    assert json.loads((tmp_path / "endpoints.json").read_text(encoding="utf-8"))["accelerator"] == "cpu"
    endpoints.refuse_taken(made.ports())


def test_a_state_folder_without_a_stack_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(KnownError, match="no stack in") as caught:
        endpoints.load(tmp_path / "endpoints.json")
    assert "stack up" in caught.value.hint


def test_the_last_lines_and_the_last_trouble_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("one\nE1130 it broke\n\x1b[31mtwo\n" + "\n", encoding="utf-8")
    assert logs.tail(path, 2) == ["two", ""]
    assert logs.tail(path, 0) == []
    assert logs.last_reason(path) == "E1130 it broke"
    path.write_text("fine\n" + "x" * 1000, encoding="utf-8")
    assert len(logs.last_reason(path)) == logs.MAX_REASON
    assert logs.last_reason(tmp_path / "absent.log") == ""


def test_new_lines_are_followed_over_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("old\n", encoding="utf-8")
    followed = logs.follow({"x": path, "later": tmp_path / "later.log"}, pause_s=0.001)
    writes: list[tuple[str, str]] = [("a", "half"), ("a", " and rest\n"), ("w", "new\n")]
    with path.open("a", encoding="utf-8") as stream:
        stream.write("first\n")

    def write_next() -> None:
        mode, text = writes.pop(0)
        with path.open(mode, encoding="utf-8") as stream:
            stream.write(text)

    assert next(followed) == logs.LogLine("x", "first")
    write_next()
    write_next()
    assert next(followed).text == "half and rest"
    write_next()
    assert next(followed).text == "new"


def test_restarts_are_counted_since_the_supervisors_last_start(tmp_path: Path) -> None:
    log = tmp_path / "supervisord.log"
    assert supervisor.restarts(log) == {}
    before = "supervisord started with pid 1\nspawned: 'triton' with pid 2\nspawned: 'triton' with pid 3\n"
    after = "supervisord started with pid 4\nspawned: 'triton' with pid 5\nspawned: 'valkey' with pid 6\n"
    log.write_text(before + after + "spawned: 'triton' with pid 7\n", encoding="utf-8")
    assert supervisor.restarts(log) == {"triton": 1, "valkey": 0}


def test_too_little_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host.refuse_full_disk(tmp_path)
    monkeypatch.setattr(host, "MIN_FREE_BYTES", 2**60)
    with pytest.raises(KnownError, match=r"MB are free at .*, the stack needs"):
        host.refuse_full_disk(tmp_path)


def test_the_profiles_and_rules_that_ship_are_sound() -> None:
    names = [path.stem for path in profile.PROFILES.glob("*.yaml")]
    assert {"small", "compute-bound"} <= set(names)
    for name in names:
        found = profile.load(name)
        assert found.name == name
        assert found.origin
    assert {path.name for path in monitoring.rule_files()} >= {"gateway.yaml", "stack.yaml"}


def test_a_damaged_faq_is_refused(tmp_path: Path) -> None:
    (tmp_path / "faq.yaml").write_text("topics: [{id: a}]", encoding="utf-8")
    with pytest.raises(ContentError, match="the FAQ cannot be read"):
        faq_entries.load_entries(tmp_path / "faq.yaml")


def test_held_out_texts_are_known_but_not_indexed() -> None:
    entries, built = faq_entries.load_entries(), corpus.faq_corpus()
    held_out = {text for entry in entries for text in entry.held_out}
    assert held_out <= set(built.others)
    assert not held_out & set(built.index)
    assert max(built.answers) == len(entries) - 1


SMALL_CORPUS = Corpus(
    index=("Where is my parcel?", "How can I pay?"),
    answers=(0, 1),
    others=("When does my package arrive?", "Do you take credit cards?"),
)


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real encodings of a very small corpus."""
    cache = tmp_path_factory.mktemp("cache")
    path = encodings.prepare(SMALL_CORPUS, model_path(), cache)
    assert encodings.prepare(SMALL_CORPUS, model_path(), cache) == path
    return path


def test_the_real_model_finds_the_nearest_answer(encoded: Path) -> None:
    found = encodings.load(encoded)
    rows = TextTokenizer().batch(["When does my package arrive?", "Do you take credit cards?", "paying by card"])
    ids = np.array([row.ids for row in rows], dtype=np.int64)
    mask = np.array([row.mask for row in rows], dtype=np.int64)
    direct = OnnxEncoder(model_path())(ids, mask)
    assert found.nearest(direct)[0].tolist() == [0, 1, 1]
    looked_up = encodings.LookupEncoder(found, OnnxEncoder(model_path()))(ids, mask)
    np.testing.assert_allclose(looked_up, direct, atol=1e-4)


def test_damaged_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "e.npz").write_bytes(b"PK nonsense")
    with pytest.raises(KnownError, match="cannot be read"):
        encodings.load(tmp_path / "e.npz")


class Series:
    """A metric that remembers."""

    def __init__(self) -> None:
        self.value = 0.0

    def increment(self, value: float) -> None:
        self.value += value

    def set(self, value: float) -> None:
        self.value = value


@pytest.mark.parametrize("accelerator", ["sim:small", "cpu"])
def test_a_batch_is_answered_and_accounted_for(tmp_path: Path, encoded: Path, accelerator: str) -> None:
    made: dict[str, Series] = {}

    def make(name: str, text: str, counter: bool, labels: dict[str, str]) -> Metric:
        assert counter == name.endswith("_total")
        assert labels == {"profile": "small"}
        made[name] = Series()
        return made[name]

    place = Place(model_path(), encoded, tmp_path / "device.lock", tmp_path / "device.clock")
    serve = FaqServing(accelerator, (1, 2), place, make)
    rows = TextTokenizer().batch(["Where is my parcel?", "How can I pay for what I ordered?"])
    ids = np.array([row.ids for row in rows], dtype=np.int64)
    mask = np.array([row.mask for row in rows], dtype=np.int64)
    for _ in range(2):
        assert serve(ids, mask, lambda found: found[0].tolist()) == [0, 1]
    if accelerator == "cpu":
        assert made == {}
        return
    assert made["sim_accelerator_executions_total"].value == 2
    assert made["sim_accelerator_busy_seconds_total"].value == pytest.approx(0.004)
    assert made["sim_accelerator_instances_busy_seconds_total"].value == pytest.approx(0.044)
    used = profile.load("small").memory_bytes(2)
    assert made["sim_accelerator_memory_used_bytes"].value == used
    assert made["sim_accelerator_throttled"].value == 0
    place.device_clock.write_text("500")
    serve(ids, mask, lambda found: found[0].tolist())
    assert made["sim_accelerator_clock_mhz"].value == 500
    assert made["sim_accelerator_throttled"].value == 1
    assert made["sim_accelerator_busy_seconds_total"].value == pytest.approx(0.010)
