from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencydoctor.stack.endpoints import Ports, TritonPorts, endpoints_for
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.replicas import load_serving, save_serving, start_with

PORTS = Ports(1, 2, 3, 4, 5, 6, 7, (TritonPorts(8, 9, 10), TritonPorts(11, 12, 13)))


def test_who_serves_is_read_back_in_order(tmp_path: Path) -> None:
    save_serving(tmp_path / "serving.json", [2, 1])
    assert load_serving(tmp_path / "serving.json") == (1, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"serving": 2}', '{"serving": []}', '{"serving": [0, 1]}', "[1]"])
def test_a_file_that_says_nothing_sensible_leaves_the_first_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "serving.json").write_text(text)
    assert load_serving(tmp_path / "serving.json") == (1,)
    assert load_serving(tmp_path / "absent.json") == (1,)


def test_a_stack_starts_with_the_first_of_its_tritons(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "s")
    layout.create()
    start_with(layout, endpoints_for(layout.run, PORTS, "cpu", alertmanager=False), 2)
    assert load_serving(layout.serving) == (1, 2)
    assert json.loads(layout.triton_targets.read_text()) == [{"targets": ["127.0.0.1:6", "127.0.0.1:10"]}]
