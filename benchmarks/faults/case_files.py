"""The cases: one YAML file each, checked strictly, because a misspelt knob would silently be a healthy case."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.faults.simulator.knobs import ENGINES, KNOBS, Engine
from benchmarks.faults.simulator.timeline import ONSET_S, RANGE_S, Change

FOLDER = Path(__file__).parent / "cases"
EXPORTERS = frozenset({"nginx", "envoy", "dcgm", "dcgm-basic", "kubernetes", "coredns", "redis"})
USUAL_EXPORTERS = frozenset({"nginx", "dcgm", "kubernetes", "coredns", "redis"})
REQUIRED = frozenset({"id", "title", "author", "healthy", "cause", "symptoms", "do_not_scale", "engines", "confounder"})
KEYS = REQUIRED | {"also_right", "replicas", "exporters", "setup", "changes", "past", "per_engine"}
PER_ENGINE = frozenset({"setup", "changes", "confounder", "past"})
CHANGE_KEYS = frozenset({"to", "at_s", "over_s", "until_s", "replica"})


class CaseError(ValueError):
    """A case file says something that cannot be meant. The text names file and key."""


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case. `setup` holds values for the whole run, `changes` what goes wrong, and when.

    `past` adds to counters what happened before the range. `cause` is None for a healthy case.
    """

    id: str
    title: str
    author: str
    healthy: bool
    cause: str | None
    also_right: tuple[str, ...]
    symptoms: tuple[str, ...]
    do_not_scale: bool
    engines: tuple[Engine, ...]
    replicas: int
    exporters: frozenset[str]
    setup: Mapping[Engine, Mapping[str, float]]
    changes: Mapping[Engine, tuple[Change, ...]]
    past: Mapping[Engine, Mapping[str, float]]


def load_cases(folder: Path = FOLDER) -> tuple[Case, ...]:
    """Every case of the folder, by name of file."""
    cases = tuple(load_case(path) for path in sorted(folder.glob("*.yaml")))
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise CaseError(f"{case.id}: two cases have this id")
        seen.add(case.id)
    return cases


def load_case(path: Path) -> Case:
    """One case, or CaseError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise CaseError(f"{path.name}: not YAML: {error}") from error
    return Reader(path.name).case(document)


class Reader:
    """Turns a document into a case; every refusal names the file and the place."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _refuse(self, place: str, why: str) -> CaseError:
        return CaseError(f"{self._file}: {place}: {why}")

    def case(self, document: object) -> Case:
        held = self._mapping(document, "the file", KEYS)
        if missing := sorted(REQUIRED - held.keys()):
            raise self._refuse("the file", f"{', '.join(missing)} missing")
        healthy = self._flag(held, "healthy")
        cause = None if held["cause"] is None else self._text(held["cause"], "cause")
        if healthy != (cause is None):
            raise self._refuse("cause", "a healthy case has none (null), every other has one")
        engines = self._engines(held["engines"])
        if self._text(held["id"], "id") != Path(self._file).stem:
            raise self._refuse("id", "differs from the file's name")
        return Case(
            id=Path(self._file).stem,
            title=self._text(held["title"], "title"),
            author=self._text(held["author"], "author"),
            healthy=healthy,
            cause=cause,
            also_right=self._texts(held.get("also_right", []), "also_right"),
            symptoms=self._texts(held["symptoms"], "symptoms"),
            do_not_scale=self._flag(held, "do_not_scale"),
            engines=engines,
            replicas=int(self._number(held.get("replicas", 2), "replicas")),
            exporters=self._exporters(held),
            setup={engine: self._values(held, engine, "setup") for engine in engines},
            changes={engine: self._changes(held, engine) for engine in engines},
            past={engine: self._past(held, engine) for engine in engines},
        )

    # ---- parts -------------------------------------------------------------------------------------------------
    def _engines(self, value: object) -> tuple[Engine, ...]:
        names = self._texts(value, "engines")
        chosen = tuple(engine for engine in ENGINES if engine in names)
        if not chosen or len(chosen) != len(names):
            raise self._refuse("engines", f"some of {', '.join(ENGINES)}, each once")
        return chosen

    def _exporters(self, held: Mapping[str, object]) -> frozenset[str]:
        names = held.get("exporters")
        if names is None:
            return USUAL_EXPORTERS
        chosen = frozenset(self._texts(names, "exporters"))
        if not chosen <= EXPORTERS:
            raise self._refuse("exporters", f"unknown: {', '.join(sorted(chosen - EXPORTERS))}")
        return chosen

    def _sections(self, held: Mapping[str, object], engine: Engine, name: str) -> Iterable[tuple[str, object, str]]:
        """Entries of a section for all engines, replaced by those for this one."""
        special = self._mapping(held.get("per_engine") or {}, "per_engine", frozenset(ENGINES))
        own = self._mapping(special.get(engine) or {}, f"per_engine.{engine}", PER_ENGINE)
        special_place = f"per_engine.{engine}.{name}"
        common = self._mapping(held.get(name) or {}, name, None)
        replacing = self._mapping(own.get(name) or {}, special_place, None)
        for key, value in common.items():
            if key not in replacing:
                yield key, value, f"{name}.{key}"
        for key, value in replacing.items():
            yield key, value, f"{special_place}.{key}"

    def _values(self, held: Mapping[str, object], engine: Engine, name: str) -> Mapping[str, float]:
        return {self._knob(key, at): self._number(value, at) for key, value, at in self._sections(held, engine, name)}

    def _past(self, held: Mapping[str, object], engine: Engine) -> Mapping[str, float]:
        return {key: self._number(value, at) for key, value, at in self._sections(held, engine, "past")}

    def _changes(self, held: Mapping[str, object], engine: Engine) -> tuple[Change, ...]:
        # What looks suspicious is there from the start, unless it says when; what goes wrong begins at the onset.
        made: list[Change] = []
        for name, usual_s in (("confounder", 0.0), ("changes", float(ONSET_S))):
            for key, value, place in self._sections(held, engine, name):
                steps = value if isinstance(value, list) else [value]
                made.extend(self._change(self._knob(key, place), step, usual_s, place) for step in steps)
        return tuple(made)

    def _change(self, knob: str, value: object, usual_s: float, place: str) -> Change:
        if not isinstance(value, dict):
            # From the warm-up on where it holds for the whole range.
            return Change(knob, self._number(value, place), at_s=usual_s or -math.inf)
        held = self._mapping(value, place, CHANGE_KEYS)
        if "to" not in held:
            raise self._refuse(place, "`to` missing")
        numbers = {key: self._number(number, f"{place}.{key}") for key, number in held.items() if key != "replica"}
        at_s = numbers.get("at_s", usual_s or -math.inf)
        if at_s > RANGE_S:
            raise self._refuse(place, f"at_s lies after the range's end ({RANGE_S})")
        replica = None if "replica" not in held else int(self._number(held["replica"], f"{place}.replica"))
        until_s = numbers.get("until_s", math.inf)
        return Change(knob, numbers["to"], at_s, numbers.get("over_s", 0.0), until_s, replica)

    # ---- values ------------------------------------------------------------------------------------------------
    def _knob(self, name: str, place: str) -> str:
        if name not in KNOBS:
            raise self._refuse(place, "no such knob (see README.md)")
        return name

    def _mapping(self, value: object, place: str, keys: frozenset[str] | None) -> Mapping[str, object]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self._refuse(place, "must be a mapping")
        if keys is not None and (unknown := sorted(value.keys() - keys)):
            raise self._refuse(place, f"unknown: {', '.join(unknown)}")
        return value

    def _number(self, value: object, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refuse(place, "must be a number (switches are 0 or 1)")
        return float(value)

    def _flag(self, held: Mapping[str, object], key: str) -> bool:
        value = held[key]
        if not isinstance(value, bool):
            raise self._refuse(key, "must be true or false")
        return value

    def _text(self, value: object, place: str) -> str:
        if not isinstance(value, str) or not value:
            raise self._refuse(place, "must be a text")
        return value

    def _texts(self, value: object, place: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self._refuse(place, "must be a list")
        return tuple(self._text(each, place) for each in value)
