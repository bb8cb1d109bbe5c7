"""Records of logs as data: what a program says at once, in lines that its format will give heads to.

A record is written `HEAD| first line` and further lines below it. HEAD is `[+SECONDS] [FORMAT:]LEVEL [FILE [TAG]]`:
`+2.5 ort:E bfc_arena.cc AllocateRawInternal| ...`. Without a FORMAT it is the program's own; `raw| ...` has no head.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.log_corpus.values import Template

FOLDER = Path(__file__).parent
_HEAD = re.compile(r"(?:([+-][\d.]+) )?(?:(\w+):)?([DIWEC]|raw)(?: (\S+))?(?: ([^|]+))?\| ?")
_WEIGHTS = {"often": 30, "sometimes": 6, "rare": 1}


@dataclass(frozen=True, slots=True)
class Record:
    """One record: `shift_s` after its signature's moment; `form` is the format's name, empty for the program's own."""

    shift_s: float
    form: str
    level: str
    file: str
    tag: Template
    lines: tuple[Template, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What shows one event of a class, or, with `benign`, what looks like one and is none.

    `classes` are the accepted answers, `also` those that do no harm beside them; `any_other` excuses every class but
    the `never` ones. `count` is a number of events, or the name of a value that holds it. `ranks` copies each record.
    """

    id: str
    program: str
    classes: tuple[str, ...]
    also: tuple[str, ...]
    never: tuple[str, ...]
    any_other: bool
    records: tuple[Record, ...]
    count: str
    times: tuple[int, int]
    every_s: tuple[float, float]
    ranks: int
    began_ms: str
    trap: int
    at_start: bool
    sealed: bool

    @property
    def benign(self) -> bool:
        return not self.classes


def parse_record(text: str, drawn_in: str) -> Record:
    """A record from its written form; `drawn_in` names it in errors."""
    match = _HEAD.match(text)
    if match is None:
        raise ValueError(f"{drawn_in}: no head in {text[:60]!r}")
    shift, form, level, file, tag = match.groups()
    body = text[match.end() :].rstrip("\n")
    raw = level == "raw"
    return Record(
        shift_s=float(shift or 0),
        form="raw" if raw else (form or ""),
        level="I" if raw else level,
        file="" if file in (None, "-") else file,
        tag=Template(tag or ""),
        lines=tuple(Template(line) for line in body.split("\n")),
    )


def load_signatures(*folders: str) -> tuple[Signature, ...]:
    """All signatures of these folders (such as `signatures`, `sealed3`, `traps`), in the order of their files."""
    found = [
        _signature(entry, path.stem, folder)
        for folder in folders
        for path in sorted((FOLDER / folder).glob("*.yaml"))
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]
    repeated = {one.id for one in found if sum(other.id == one.id for other in found) > 1}
    if repeated:
        raise ValueError(f"two signatures are called {sorted(repeated)}")
    return tuple(found)


def _signature(entry: Mapping[str, Any], program: str, folder: str) -> Signature:
    values = dict(entry)
    name = values.pop("id") if folder != "traps" else f"{program}:{values.pop('id')}"
    classes = values.pop("class", ())
    others = values.pop("also", ())
    times = values.pop("times", [1, 3] if classes else [1, 1])
    result = Signature(
        id=name,
        program=values.pop("in", program.partition(".")[0]),
        classes=(classes,) if isinstance(classes, str) else tuple(classes),
        also=() if others == "any" else tuple(others),
        never=tuple(values.pop("never", ())),
        any_other=others == "any",
        records=tuple(parse_record(text, name) for text in values.pop("say")),
        count=str(values.pop("count", 1)),
        times=(times, times) if isinstance(times, int) else (times[0], times[1]),
        every_s=tuple(values.pop("every", (200.0, 600.0))),
        ranks=values.pop("ranks", 1),
        began_ms=values.pop("began_ms", ""),
        trap=values.pop("trap", 0),
        at_start=values.pop("at_start", False),
        sealed=folder.startswith("sealed"),
    )
    if values:
        raise ValueError(f"{name}: unknown keys {sorted(values)}")
    return result


@dataclass(frozen=True, slots=True)
class Chatter:
    """A program's harmless lines: `startup` in order, `records` with how often each is said."""

    startup: tuple[Record, ...]
    records: tuple[Record, ...]
    weights: tuple[int, ...]


def load_chatter() -> dict[str, Chatter]:
    """The harmless lines of every program, by its name."""
    return {path.stem: _chatter(path) for path in sorted((FOLDER / "benign").glob("*.yaml"))}


def _chatter(path: Path) -> Chatter:
    top = yaml.safe_load(path.read_text(encoding="utf-8"))
    said = [(text, weight) for name, weight in _WEIGHTS.items() for text in top.get(name, ())]
    return Chatter(
        startup=tuple(parse_record(text, path.stem) for text in top.get("startup", ())),
        records=tuple(parse_record(text, path.stem) for text, _ in said),
        weights=tuple(weight for _, weight in said),
    )
