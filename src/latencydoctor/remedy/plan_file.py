"""A plan as JSON: canonical for its digest, indented for people, and read back strictly."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import TypeVar

from latencydoctor.errors import Refused
from latencydoctor.model.remedy import Operation, OperationKind, Plan, Prediction, Requirement, TargetObject

SCHEMA = 1
MAX_PLAN_BYTES = 1 << 20

Part = TypeVar("Part")
Json = dict[str, object]


def canonical(value: object) -> str:
    """One text for one value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plan_digest(plan: Plan) -> str:
    """SHA-256 (hex) of every field but the digest itself."""
    content = asdict(plan)
    del content["digest"]
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def plan_to_json(plan: Plan) -> str:
    """The file's text, for people to read too; the same plan always gives the same text."""
    return json.dumps(asdict(plan), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plan_from_json(text: str) -> Plan:
    """The plan of a file's text. Refused for anything that is not exactly what `plan_to_json` writes, or was edited."""
    try:
        plan = _read(text)
        refuse_edited(plan)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise Refused(
            f"this is not a plan that this version wrote: {error}",
            hint="Make a new one with `latencydoctor plan <fix> -o plan.json`.",
        ) from error
    return plan


def refuse_edited(plan: Plan) -> None:
    """Refused when the plan is not, field for field, the one that was made."""
    if plan.digest != plan_digest(plan):
        raise Refused(
            "the plan was changed after it was made: its digest does not match",
            hint="Plans are not edited by hand; make a new one with `latencydoctor plan`.",
        )


def _read(text: str) -> Plan:
    raw = _exact(json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), Plan)
    if raw["schema"] != SCHEMA:
        raise ValueError(f"schema {raw['schema']!r} is not {SCHEMA}")
    return Plan(
        schema=SCHEMA,
        fix=_text(raw["fix"]),
        title=_text(raw["title"]),
        target=_text(raw["target"]),
        created_s=_number(raw["created_s"]),
        objects=_all(raw["objects"], _object),
        operations=_all(raw["operations"], _operation),
        diff=_text(raw["diff"]),
        compiled_diff=_text(raw["compiled_diff"]),
        predictions=_all(raw["predictions"], _prediction),
        side_effects=_all(raw["side_effects"], _text),
        blast_radius=_text(raw["blast_radius"]),
        justification=_all(raw["justification"], _text),
        requirements=_all(raw["requirements"], _requirement),
        before_values=_all(raw["before_values"], _pair),
        simulated=_switch(raw["simulated"]),
        digest=_text(raw["digest"]),
    )


def _unique(pairs: list[tuple[str, object]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _exact(value: object, record: type) -> Json:
    if not isinstance(value, dict):
        raise TypeError(f"{record.__name__} must be an object")
    expected = {item.name for item in fields(record)}
    if set(value) != expected:
        raise ValueError(f"{record.__name__} must have exactly the keys {', '.join(sorted(expected))}")
    return value


def _all(value: object, read: Callable[[object], Part]) -> tuple[Part, ...]:
    if not isinstance(value, list):
        raise TypeError("a list was expected")
    return tuple(read(item) for item in value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was expected")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false was expected")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("a whole number was expected")
    return value


def _number(value: object) -> float:
    # An integer stays one, so that the canonical text, and with it the digest, is the one that was written.
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise TypeError("a number was expected")
    return value


def _number_or_none(value: object) -> float | None:
    return None if value is None else _number(value)


def _pair(value: object) -> tuple[str, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError("a pair of name and number was expected")
    return _text(value[0]), _number(value[1])


def _object(value: object) -> TargetObject:
    raw = _exact(value, TargetObject)
    return TargetObject(_text(raw["name"]), _whole(raw["generation"]), _text(raw["digest"]))


def _operation(value: object) -> Operation:
    raw = _exact(value, Operation)
    kind = OperationKind(_text(raw["kind"]))
    return Operation(kind, *(_text(raw[name]) for name in ("object", "key", "before", "after")))


def _prediction(value: object) -> Prediction:
    raw = _exact(value, Prediction)
    before, after, low, high = (_number_or_none(raw[name]) for name in ("before", "after", "low", "high"))
    return Prediction(_text(raw["signal"]), _text(raw["unit"]), before, after, low, high, _text(raw["method"]))


def _requirement(value: object) -> Requirement:
    raw = _exact(value, Requirement)
    return Requirement(_text(raw["signal"]), _text(raw["unit"]), _number(raw["at_most"]))
