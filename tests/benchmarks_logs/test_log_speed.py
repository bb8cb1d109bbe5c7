"""What the benchmark of logs says of the programs it measures against, there or not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import logs
from benchmarks.logs_lines import write


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)


@pytest.mark.usefixtures("nothing_installed")
def test_without_its_anchor_it_says_so_before_it_writes_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "write", lambda *_: pytest.fail("a log was written for nothing"))
    with pytest.raises(SystemExit, match=r"ripgrep .* not installed: apt-get install ripgrep"):
        logs.main()


@pytest.mark.usefixtures("nothing_installed")
def test_without_lnav_it_says_so_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.lnav(tmp_path / "none.log", tmp_path)
    assert capsys.readouterr().out.startswith("lnav is not installed")


@pytest.mark.skipif(shutil.which("lnav") is None, reason="lnav is not installed")
def test_lnav_is_shown_with_its_version_and_leaves_the_users_home_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "x.log", 200_000, 0.01)
    home = tmp_path / "home"
    home.mkdir()
    logs.lnav(tmp_path / "x.log", home)
    said = capsys.readouterr().out
    assert said.startswith("lnav ")
    assert " MB/s" in said
    assert list(home.iterdir()), "it kept its settings elsewhere"


def test_plain_expressions_are_scaled_to_the_whole_file(tmp_path: Path) -> None:
    write(tmp_path / "small.log", 100_000, 0.01)
    assert 0 < logs.plain_re(tmp_path / "small.log", ["Request timeout expired", "(?i)OUT OF MEMORY"]) < 60
