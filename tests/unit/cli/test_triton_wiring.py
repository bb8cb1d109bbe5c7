"""Which model of which Triton a --target means, and where its journals lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.cli import targets_wiring, triton_wiring
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.model.configuration import Configuration, TritonTarget
from latencydoctor.model.effects import unwatched

PLACE = TritonTarget("/models", "triton:8001", "ranker", 600.0)
CONFIGURED = Configuration(triton_target=PLACE)


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("", PLACE),
        ("triton", PLACE),
        ("triton:/models@triton:8001/ranker", PLACE),
        ("triton:/models@triton:8001", PLACE),
        ("triton:/models@triton:8001/other", TritonTarget("/models", "triton:8001", "other", 600.0)),
        ("triton:/a@b@[::1]:8001/m", TritonTarget("/a@b", "[::1]:8001", "m")),
        ("/some/folder", None),
        ("bundled", None),
        ("torchserve:http://server:8081/models/m", None),
    ],
)
def test_what_is_meant(named: str, meant: TritonTarget | None) -> None:
    assert triton_wiring.chosen(CONFIGURED, named) == meant


@pytest.mark.parametrize(
    "named", ["triton:", "triton:/models", "triton:/models@host", "triton:@host:8001", "triton:/m@:1"]
)
def test_a_target_that_names_too_little_says_how(named: str) -> None:
    with pytest.raises(UsageError, match="does not name a repository and a server") as told:
        triton_wiring.chosen(CONFIGURED, named)
    assert "triton:REPOSITORY@HOST:PORT/MODEL" in told.value.hint


def test_a_kind_that_is_not_configured_is_told() -> None:
    with pytest.raises(UsageError, match="no Triton is configured"):
        triton_wiring.chosen(Configuration(), "triton")


def test_of_several_configured_targets_one_must_be_named() -> None:
    both = Configuration(bundled_state="/state", triton_target=PLACE)
    with pytest.raises(UsageError, match="several targets are configured: bundled, triton") as told:
        targets_wiring.bound(both, "", float, unwatched)
    assert told.value.hint == "Choose one: --target bundled, --target triton."
    with pytest.raises(KnownError, match="no model repository in /models"):
        targets_wiring.bound(both, "triton", float, unwatched)
    with pytest.raises(KnownError, match="no stack in /state"):
        targets_wiring.bound(both, "bundled", float, unwatched)


def test_the_only_model_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    repository = tmp_path / "models"
    (repository / "ranker" / "1").mkdir(parents=True)
    named = f"triton:{repository}@127.0.0.1:8001"
    found = targets_wiring.bound(Configuration(), named, float, unwatched)
    assert (found.target.name, found.model) == (f"{named}/ranker", "ranker")
    (repository / "other").mkdir()
    with pytest.raises(UsageError, match="holds 2 models: other, ranker"):
        targets_wiring.bound(Configuration(), named, float, unwatched)
    assert targets_wiring.bound(Configuration(model="other"), named, float, unwatched).model == "other"
    assert list((tmp_path / "xdg").rglob("*")) == []


def test_journals_go_by_the_model_s_folder_however_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "models" / "m").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "models")
    by_folder = triton_wiring.journal(TritonTarget(str(tmp_path / "models"), "a:1", "m"), "")
    by_link = triton_wiring.journal(TritonTarget(str(tmp_path / "link"), "b:2"), "m")
    assert by_folder == by_link is not None
    assert triton_wiring.journal(TritonTarget(str(tmp_path / "models"), "a:1"), "") is None
    assert targets_wiring.journals(Configuration(triton_target=TritonTarget("/x", "a:1", "m")))[0] != by_folder
