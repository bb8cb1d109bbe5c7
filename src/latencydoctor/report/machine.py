"""The same answer as data: JSON with sorted keys, so that equal diagnoses are equal bytes."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from enum import Enum

from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.evidence import IncidentState

DIAGNOSIS_SCHEMA = 1

_Json = None | bool | int | float | str | list["_Json"] | dict[str, "_Json"]


def diagnosis(result: Diagnosis) -> str:
    """The whole diagnosis; `cause` is null when it is healthy or cannot be told, `state` says which."""
    document = plain(result)
    assert isinstance(document, dict), "a record becomes an object"
    document["schema"] = DIAGNOSIS_SCHEMA
    document["state"] = result.incident.state.value
    document["healthy"] = result.incident.state is IncidentState.HEALTHY
    return dump(document)


def dump(document: object) -> str:
    """Any record or plain value as indented JSON text without a trailing newline."""
    return json.dumps(plain(document), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def plain(value: object) -> _Json:
    """Records to objects, enums to their values, tuples to lists; `TypeError` for anything else."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _number(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} has no form as data")


def _number(value: float) -> _Json:
    """Fifteen significant digits: epoch times to the microsecond, and free of the last bits' noise."""
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return float(f"{value:.15g}")
