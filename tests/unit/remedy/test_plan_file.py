"""A plan as a file: read back exactly, refused when it is anything else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.errors import Refused
from latencydoctor.model.remedy import Operation, OperationKind, Plan, Prediction, Requirement, TargetObject
from latencydoctor.remedy.plan_file import MAX_PLAN_BYTES, plan_digest, plan_from_json, plan_to_json

texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)


def signed(**fields: object) -> Plan:
    given_fields: dict[str, object] = {
        "schema": 1,
        "fix": "batch-floor",
        "title": "t",
        "target": "bundled:/x",
        "created_s": 1.5,
        "objects": (TargetObject("settings.yaml", 7, "ab"),),
        "operations": (Operation(OperationKind.SET_SETTING, "settings.yaml", "a.b", "", "1"),),
        "diff": "-a\n+b\n",
        "compiled_diff": "",
        "predictions": (Prediction("e2e_p99_ms", "ms", 1.0, None, None, None, "m"),),
        "side_effects": ("s",),
        "blast_radius": "b",
        "justification": ("j",),
        "requirements": (Requirement("e2e_p99_ms", "ms", 1000),),
        "before_values": (("e2e_p99_ms", 2000.0),),
        "simulated": True,
        "digest": "",
        **fields,
    }
    unsigned = Plan(**given_fields)  # type: ignore[arg-type]  # built from names
    return Plan(**{**given_fields, "digest": plan_digest(unsigned)})  # type: ignore[arg-type]  # built from names


@given(title=texts, created_s=numbers, before=st.tuples(texts, numbers))
def test_every_plan_is_read_back_as_it_was(title: str, created_s: float, before: tuple[str, float]) -> None:
    plan = signed(title=title, created_s=created_s, before_values=(before,))
    text = plan_to_json(plan)
    assert plan_from_json(text) == plan
    assert plan_to_json(plan_from_json(text)) == text


def test_every_edited_value_is_refused() -> None:
    text = plan_to_json(signed())
    raw = json.loads(text)

    def edits(value: object) -> list[object]:
        if isinstance(value, dict):
            return [{**value, key: changed} for key, inner in value.items() for changed in edits(inner)]
        if isinstance(value, list):
            inside = [
                [*value[:at], changed, *value[at + 1 :]] for at, inner in enumerate(value) for changed in edits(inner)
            ]
            return [*inside, value[1:]]
        if isinstance(value, bool):
            return [not value]
        return [value + 1] if isinstance(value, int | float) else ["edited"]

    edited = edits(raw)
    assert len(edited) > 25
    for case in edited:
        with pytest.raises(Refused):
            plan_from_json(json.dumps(case))


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "not json", '{"schema": 1, "schema": 1}', "[" * 200_000,
        "x" * (MAX_PLAN_BYTES + 1), '{"schema": NaN}',
    ],
)  # fmt: skip
def test_what_is_no_plan_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(Refused, match="not a plan") as refused:
        plan_from_json(text)
    assert "latencydoctor plan" in refused.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", 2), ("fix", 1), ("created_s", True), ("created_s", "1"), ("objects", {}), ("objects", [{}]),
        ("operations", [{"kind": "run", "object": "", "key": "", "before": "", "after": ""}]),
        ("objects", [{"name": "a", "generation": 1.5, "digest": ""}]), ("before_values", [["a"]]),
        ("simulated", 1), ("justification", [1]), ("requirements", [3]), ("created_s", 10**400), ("title", "\ud800"),
    ],
)  # fmt: skip
def test_fields_of_another_form_are_refused(field: str, value: object) -> None:
    raw = {**json.loads(plan_to_json(signed())), field: value}
    with pytest.raises(Refused, match="not a plan"):
        plan_from_json(json.dumps(raw))


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(Refused, match="exactly the keys"):
        plan_from_json(json.dumps({**json.loads(plan_to_json(signed())), "run": "rm"}))
