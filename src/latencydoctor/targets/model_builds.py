"""Reads an INT8 build where `latencydoctor quantise` left it: its sheet, and digests of its files. Reads only."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from latencydoctor.errors import KnownError
from latencydoctor.model.builds import BuildTime, ModelBuild, files_digest

SHEET_FILE = "build.json"
SCHEMA = 1
MAX_SHEET_BYTES = 64 * 1024
MAX_FILES = 16

Kind = TypeVar("Kind")


class BuildShelf:
    """Where builds lie: `locate` gives the folder of the one that fits today's model. Implements `ModelBuilds`."""

    def __init__(self, locate: Callable[[], Path]) -> None:
        self._locate = locate

    def find(self) -> ModelBuild:
        """The build that is there; KnownError when there is none or it is damaged."""
        folder = self._locate()
        if not folder.is_dir():
            raise KnownError(
                "the encoder has not been rebuilt in INT8 yet", hint="Run `latencydoctor quantise`; it takes a minute."
            )
        return read_build(folder)


def read_build(folder: Path) -> ModelBuild:
    """The build in this folder; KnownError, with what to do, when something is wrong with it."""
    try:
        content = (folder / SHEET_FILE).read_bytes()
        if len(content) > MAX_SHEET_BYTES:
            raise ValueError("its sheet is larger than one can be")
        sheet = json.loads(content)
        if not isinstance(sheet, dict) or sheet.get("schema") != SCHEMA:
            raise ValueError(f"its sheet is not of schema {SCHEMA}")
        files = tuple(_file(path) for path in sorted(folder.iterdir()))
        if len(files) > MAX_FILES:
            raise ValueError("there are more files than a build has")
        return _build(folder, sheet, files)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KnownError(
            f"the INT8 build in {folder} is damaged: {error!r}", hint="Make it anew: `latencydoctor quantise --again`."
        ) from error


def _file(path: Path) -> tuple[str, int, str]:
    if path.is_symlink() or not path.is_file():
        raise ValueError(f"{path.name} is no plain file")
    with path.open("rb") as stream:
        return path.name, path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


def _build(folder: Path, sheet: Mapping[str, object], files: tuple[tuple[str, int, str], ...]) -> ModelBuild:
    return ModelBuild(
        folder=str(folder),
        precision=_of(sheet, "precision", str),
        recipe=_of(sheet, "recipe", str),
        bytes_before=_of(sheet, "bytes_before", int),
        bytes_after=_of(sheet, "bytes_after", int),
        questions=_of(sheet, "questions", int),
        top1_before_ratio=_number(sheet, "top1_before_ratio"),
        top1_after_ratio=_number(sheet, "top1_after_ratio"),
        drop_ratio=_number(sheet, "top1_drop_ratio"),
        drop_upper_ratio=_number(sheet, "top1_drop_upper_ratio"),
        times=tuple(_time(one) for one in _of(sheet, "times", list)),
        cpu=_of(sheet, "cpu", str),
        vnni=_of(sheet, "vnni", bool),
        others=tuple((_of(one, "recipe", str), _of(one, "refused", str)) for one in _of(sheet, "others", list)),
        files=files,
        digest=files_digest({name: digest for name, _, digest in files}),
    )


def _of(sheet: Mapping[str, object], name: str, kind: type[Kind]) -> Kind:
    value = sheet[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{name} is no {kind.__name__}")
    return value


def _number(sheet: Mapping[str, object], name: str) -> float:
    value = sheet[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{name} is no number")
    return float(value)


def _time(one: Mapping[str, object]) -> BuildTime:
    before, after, ratio = (_number(one, name) for name in ("before_ms", "after_ms", "ratio"))
    if before <= 0 or after <= 0 or ratio <= 0:
        raise ValueError("a time is not above 0")
    return BuildTime(_of(one, "size", int), before, after, ratio)
