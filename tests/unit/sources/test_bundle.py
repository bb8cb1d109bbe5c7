"""Bundles: the same bytes for the same record, and nothing strange comes back in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.model.evidence import (
    Collected,
    Fact,
    Gap,
    GapReason,
    LogEvent,
    Proof,
    QueryRecord,
    Selection,
    Series,
    Severity,
)
from latencydoctor.sources import bundle

PROOF = Proof("prometheus", 'sum(rate(x{model="b"}[5s]))')
COLLECTED = Collected(
    now_s=1_800_000_000.125,
    window_s=5.0,
    scrape_interval_s=None,
    selection=Selection("b", 'ns="p"'),
    dialects=("triton",),
    series=(Series("queue_time_ms", "ms", (1_800_000_000.0, 1_800_000_001.0), (0.1, 1e99), PROOF, simulated=True),),
    facts=(Fact("config_max_batch_size", "items", 8.0, Proof("triton", "ModelConfig(b)")),),
    log_events=(
        LogEvent(
            "gpu_oom", Severity.CRITICAL, 3, None, 5.5, "a.log:1", "naïve \u2028 [/INST]", "m", (("queue_ms", 2.0),)
        ),
    ),
    queries=(QueryRecord("prometheus", "up", "ok", 1),),
    gaps=(Gap("logs", GapReason.NOT_CONFIGURED, "none", "--log"),),
)


@pytest.mark.parametrize("name", ["it.json", "it.json.gz"])
def test_what_was_written_is_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    bundle.write(path, COLLECTED)
    assert bundle.read(path) == COLLECTED
    assert list(tmp_path.iterdir()) == [path]
    first = path.read_bytes()
    bundle.write(path, bundle.read(path))
    assert path.read_bytes() == first


def test_the_text_is_canonical_ascii() -> None:
    text = bundle.dump(COLLECTED)
    assert text.isascii()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) + "\n"


def test_a_gzip_holds_neither_name_nor_time(tmp_path: Path) -> None:
    bundle.write(tmp_path / "a.gz", COLLECTED)
    bundle.write(tmp_path / "b.gz", COLLECTED)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def changed(path: tuple[str | int, ...], value: object) -> bytes:
    """A bundle's text with one place changed; `...` takes the place out."""
    content: Any = json.loads(bundle.dump(COLLECTED))
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "is no bundle of latencydoctor"),
        (("schema",), 2, "a schema that this release does not know (it knows 1)"),
        (("collected",), 1, "collected must be an object"),
        (("collected", "now_s"), "1", "collected.now_s must be float"),
        (("collected", "now_s"), True, "collected.now_s must be float"),
        (("collected", "now_s"), 10**400, "collected.now_s must be a finite number"),
        (("collected", "now_s"), 1e12, "collected.now_s is no moment of this age"),
        (("collected", "now_s"), -1, "collected.now_s is no moment of this age"),
        (("collected", "baseline"), {"start_s": -1e300, "end_s": 1}, "collected.baseline.start_s is no moment"),
        (("collected", "log_events", 0, "first_s"), -1e300, "collected.log_events[0].first_s is no moment"),
        (("collected", "log_events", 0, "last_s"), 1e300, "collected.log_events[0].last_s is no moment"),
        (("collected", "window_s"), 0, "collected.window_s must be at least 0.001"),
        (("collected", "window_s"), 1e-300, "collected.window_s must be at least 0.001"),
        (("collected", "series", 0, "times_s"), [-1e15, 2.0], "series[0] begins more than 10000 windows before"),
        (("collected", "dialects"), ["a", 1], "collected.dialects[1] must be str"),
        (("collected", "dialects"), "triton", "collected.dialects must be a list"),
        (("collected", "series", 0, "values"), [1.0], "collected.series[0] has 2 times but 1 values"),
        (("collected", "series", 0, "values"), [1.0, "2"], "collected.series[0].values must hold finite numbers only"),
        (("collected", "series", 0, "values"), [1.0, False], "collected.series[0].values must hold finite numbers"),
        (("collected", "series", 0, "times_s"), [2.0, 2.0], "collected.series[0].times_s must rise"),
        (("collected", "series", 0, "values"), [1.0, -1e300], "collected.series[0].values must not exceed 1e+100"),
        (("collected", "facts", 0, "value"), 1e300, "collected.facts[0].value must not exceed 1e+100"),
        (("collected", "series", 0, "simulated"), 1, "collected.series[0].simulated must be bool"),
        (("collected", "series", 0, "proof"), ..., "collected.series[0] lacks the field 'proof'"),
        (("collected", "series", 0, "more"), 1, "collected.series[0] has an unknown field 'more'"),
        (("collected", "gaps", 0, "reason"), "bored", "collected.gaps[0].reason is none of: unreachable"),
        (("collected", "log_events", 0, "count"), 1.5, "collected.log_events[0].count must be int"),
        (("collected", "log_events", 0, "numbers"), [["a"]], "collected.log_events[0].numbers[0] must have 2 items"),
    ],
)
def test_every_field_is_checked(path: tuple[str | int, ...], value: object, message: str) -> None:
    with pytest.raises(KnownError) as caught:
        bundle.load(changed(path, value), Path("it.json"))
    assert message in caught.value.message
    assert str(caught.value).startswith("it.json: the file ")
    assert caught.value.hint


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"null", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_bundle_is_refused(text: bytes) -> None:
    with pytest.raises(KnownError):
        bundle.load(text, Path("it.json"))


def test_a_file_cut_at_any_place_is_refused(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.gz", tmp_path / "cut.gz"
    bundle.write(whole, COLLECTED)
    data = whole.read_bytes()
    for end in range(0, len(data), 17):
        path.write_bytes(data[:end])
        with pytest.raises(KnownError, match="the file is"):
            bundle.read(path)


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "it.gz"
    bundle.write(path, COLLECTED)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(KnownError):
        bundle.read(path)


def test_bombs_and_giants_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_TEXT_BYTES", 2 * 1024 * 1024)
    monkeypatch.setattr(bundle, "MAX_FILE_BYTES", 1024 * 1024)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * (3 * 1024 * 1024)))
    with pytest.raises(KnownError, match="unpacks to more than 2 MiB"):
        bundle.read(path)
    path.write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(KnownError, match="is larger than 1 MiB"):
        bundle.read(path)


def test_paths_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(KnownError, match="cannot be read: No such file"):
        bundle.read(tmp_path / "absent")
    with pytest.raises(KnownError, match="cannot be written: No such file"):
        bundle.write(tmp_path / "absent" / "it.json", COLLECTED)
    (tmp_path / "folder").mkdir()
    with pytest.raises(KnownError, match="cannot be written: Is a directory"):
        bundle.write(tmp_path / "folder", COLLECTED)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
