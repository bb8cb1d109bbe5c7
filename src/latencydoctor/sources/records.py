"""Turns decoded JSON into the model's frozen records, checking every field against its annotation."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


class RecordError(ValueError):
    """A value does not fit its field; the message names the field."""


def read_record(kind: type[Record], value: object, where: str) -> Record:
    """A record of `kind` from a JSON object; unknown, missing and ill-typed fields raise `RecordError`."""
    read = _read(kind, value, where)
    if not isinstance(read, kind):
        raise RecordError(f"{where} is not what it should be")
    return read


@cache
def _hints(kind: type) -> dict[str, object]:
    return dict(get_type_hints(kind))


def _read(hint: object, value: object, where: str) -> object:
    if get_origin(hint) in (Union, UnionType):
        return _read_optional(hint, value, where)
    if get_origin(hint) is tuple:
        return _read_tuple(get_args(hint), value, where)
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_fields(hint, value, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _read_enum(hint, value, where)
    return _read_scalar(hint, value, where)


def _read_optional(hint: object, value: object, where: str) -> object:
    if value is None:
        return None
    return _read(next(part for part in get_args(hint) if part is not type(None)), value, where)


def _read_tuple(parts: tuple[object, ...], value: object, where: str) -> object:
    if not isinstance(value, list):
        raise RecordError(f"{where} must be a list")
    if len(parts) == 2 and parts[1] is Ellipsis:
        if parts[0] is float:
            # Series are by far the most of a bundle: no call for each point.
            return _read_numbers(value, where)
        return tuple(_read(parts[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if len(value) != len(parts):
        raise RecordError(f"{where} must have {len(parts)} items")
    return tuple(
        _read(part, item, f"{where}[{index}]") for index, (part, item) in enumerate(zip(parts, value, strict=True))
    )


def _read_numbers(value: list[object], where: str) -> tuple[float, ...]:
    numbers = tuple(float(item) for item in value if type(item) in (int, float) and isinstance(item, int | float))
    if len(numbers) != len(value) or not all(map(math.isfinite, numbers)):
        raise RecordError(f"{where} must hold finite numbers only")
    return numbers


def _read_fields(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise RecordError(f"{where} must be an object")
    hints = _hints(kind)
    names = [field.name for field in fields(kind)]
    unknown = sorted(set(value) - set(names))
    # What a later release added has a default, so that bundles of earlier ones can still be read.
    missing = [
        field.name
        for field in fields(kind)
        if field.name not in value and field.default is MISSING and field.default_factory is MISSING
    ]
    if unknown or missing:
        what = f"has an unknown field {unknown[0]!r}" if unknown else f"lacks the field {missing[0]!r}"
        raise RecordError(f"{where} {what}")
    return kind(**{name: _read(hints[name], value[name], f"{where}.{name}") for name in names if name in value})


def _read_enum(kind: type[Enum], value: object, where: str) -> object:
    for member in kind:
        if member.value == value:
            return member
    raise RecordError(f"{where} is none of: {', '.join(str(member.value) for member in kind)}")


def _read_scalar(hint: object, value: object, where: str) -> object:
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        raise RecordError(f"{where} must be a finite number")
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if (hint is str and isinstance(value, str)) or (hint is bool and isinstance(value, bool)):
        return value
    raise RecordError(f"{where} must be {getattr(hint, '__name__', hint)}")
