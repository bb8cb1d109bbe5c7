from __future__ import annotations

import pytest

from latencydoctor.stack.controller_state import Progress, metrics_page, parse_state, state_page

PROGRESS = Progress(generation=3, seen_generation=4, error="it broke", reload_s=0.25, reloads=2, model_restarts=1)


def test_the_metrics_page_says_which_settings_are_in_effect() -> None:
    lines = metrics_page(PROGRESS).splitlines()
    assert "stack_settings_generation 3" in lines
    assert "stack_settings_seen_generation 4" in lines
    assert "stack_settings_last_error 1" in lines
    assert "stack_settings_reload_seconds 0.25" in lines
    assert "# TYPE stack_model_restarts_total counter" in lines
    assert "stack_settings_last_error 0" in metrics_page(Progress()).splitlines()


def test_the_state_page_reads_back() -> None:
    assert parse_state(state_page(PROGRESS)) == PROGRESS


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"generation": "x"}', "<html>"])
def test_another_page_is_no_state(text: str) -> None:
    with pytest.raises(ValueError):
        parse_state(text)
