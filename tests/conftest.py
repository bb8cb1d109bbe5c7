"""What every test gets: no settings of the person who runs the tests, and a terminal of a known width."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A developer's own configuration, colours and terminal must not decide what a test sees.

    LATENCYDOCTOR_TOOLS stays: it says where the servers are, not how the program behaves. The cache folder stays too,
    so that the private Triton tree is made once and not once a test.
    """
    for name in ("LATENCYDOCTOR_CONFIG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("COLUMNS", "120")
