"""A model's configuration as a file, without its server."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.errors import Refused
from latencydoctor.model.configuration import TritonTarget
from latencydoctor.targets.triton_repository import TritonRepository


def test_a_parameter_that_is_a_secret_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """Where the server made the file up, its parameters are in no file that was read before."""
    target = TritonRepository(TritonTarget(str(tmp_path), "127.0.0.1:1", "m"))
    text = 'name: "m"\nmax_batch_size: 8\nparameters { key: "%s" value { string_value: "x" } }\n'
    assert "eos_token" in target.preview(text % "eos_token")
    with pytest.raises(Refused, match="'auth_token' that looks like a secret"):
        target.preview(text % "auth_token")
