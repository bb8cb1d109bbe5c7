"""The stack's one settings file: records, strict loading, checks, and atomic writing.

The controller compiles the settings for Triton; the gateway reads deadline, cache and priorities from the same file.
The generation number at its top is repeated by both in their metrics, so anyone can see which settings are in effect.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.settings_batching import BatchingSettings, batching_violations, out_of_range, read_batching
from latencydoctor.stack.settings_canary import CanarySettings, canary_violations, read_canary
from latencydoctor.stack.settings_priorities import PrioritySettings, priority_violations, read_priorities
from latencydoctor.stack.versions import VERSIONS
from latencydoctor.stack.yaml_nodes import Fields, Problems, compose, read_text

__all__ = [
    "MAX_REPLICAS",
    "MODEL_NAME",
    "BatchingSettings",
    "CacheSettings",
    "CanarySettings",
    "InferenceSettings",
    "PreprocessingSettings",
    "PrioritySettings",
    "Settings",
    "dump",
    "load",
    "parse",
    "save",
    "validate",
    "with_values",
]

MODEL_NAME = "faq-encoder"
ACCELERATOR = re.compile(r"sim:[a-z0-9][a-z0-9-]{0,40}|cpu")
MAX_REPLICAS = 4
MAX_PATTERN_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """What serves the model and how; `deadline_ms` bounds a request from the gateway's side.

    Each of the `replicas` is a Triton with a device of its own; the controller starts and ends them at run time.

    The priorities reach Triton only with `priority_levels: true`, because a model with levels no longer fetches the
    next batch ahead.
    """

    model: str = MODEL_NAME
    precision: str = "fp32"
    replicas: int = 1
    deadline_ms: int = 5000
    batching: BatchingSettings = field(default_factory=BatchingSettings)
    priorities: PrioritySettings = field(default_factory=PrioritySettings)
    priority_levels: bool = False

    @property
    def has_levels(self) -> bool:
        """Whether VIP requests go before standard ones: levels are the batcher's, and take two of them."""
        return self.priority_levels and self.batching.enabled and self.priorities.vip < self.priorities.standard


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The answer cache in Valkey."""

    enabled: bool = True
    ttl_seconds: int = 300
    max_entries: int = 10_000
    timeout_ms: int = 100
    """A lookup that takes longer is given up and counts as a miss. A Valkey on a Unix socket answers in well under a
    millisecond; a tenth of a second means that it is in trouble."""
    single_flight: bool = True
    """Whether questions that miss at the same time and are the same share one inference."""


@dataclass(frozen=True, slots=True)
class PreprocessingSettings:
    """What is done to a question before it becomes tokens.

    `redact_pattern` is a regular expression; what it matches (personal data) is replaced by one sign before the model
    sees it. Empty: nothing is redacted.
    """

    redact_pattern: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole file. `generation` grows by one with each change."""

    generation: int = 1
    inference: InferenceSettings = InferenceSettings()
    preprocessing: PreprocessingSettings = PreprocessingSettings()
    cache: CacheSettings = CacheSettings()
    accelerator: str = "sim:small"
    canary: CanarySettings | None = None

    def of_replica(self, number: int) -> Settings:
        """The settings that replica `number` (from 1) runs: a canary of batching is the last one."""
        if self.canary is None or self.canary.batching is None or number != self.inference.replicas:
            return self
        return replace(self, inference=replace(self.inference, batching=self.canary.batching))

    @property
    def simulated(self) -> bool:
        """Whether times come from the simulated accelerator; everything that shows them has to say so."""
        return self.accelerator.startswith("sim:")

    @property
    def profile(self) -> str:
        """Name of the simulated accelerator's profile, "" on real hardware."""
        return self.accelerator.removeprefix("sim:") if self.simulated else ""

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the model that Triton serves: that of the precision, and that of a canary's beside it."""
        tried = self.canary.precision if self.canary is not None else None
        return tuple(sorted({VERSIONS[precision] for precision in (self.inference.precision, tried) if precision}))

    def next_generation(self) -> Settings:
        """The same settings with the generation number one higher."""
        return replace(self, generation=self.generation + 1)


def load(path: Path) -> Settings:
    """Settings of the file at `path`; ContentError(s) with file:line for everything wrong with it."""
    return parse(read_text(path), str(path))


def parse(text: str, name: str = "settings") -> Settings:
    """Settings of a YAML text; `name` stands for the file in error messages."""
    top, problems = compose(text, name)
    inference, preprocessing, cache = top.inner("inference"), top.inner("preprocessing"), top.inner("cache")
    batching, priorities = inference.inner("batching"), inference.inner("priorities")
    canary = top.inner("canary")
    tried = canary.inner("batching")
    default = Settings()
    generation = top.whole("generation", default.generation)
    served = _read_inference(inference, batching, priorities)
    settings = Settings(
        generation=generation,
        inference=served,
        preprocessing=PreprocessingSettings(
            redact_pattern=preprocessing.text("redact_pattern", default.preprocessing.redact_pattern),
        ),
        cache=CacheSettings(
            enabled=cache.switch("enabled", default.cache.enabled),
            ttl_seconds=cache.whole("ttl_seconds", default.cache.ttl_seconds),
            max_entries=cache.whole("max_entries", default.cache.max_entries),
            timeout_ms=cache.whole("timeout_ms", default.cache.timeout_ms),
            single_flight=cache.switch("single_flight", default.cache.single_flight),
        ),
        accelerator=top.text("accelerator", default.accelerator),
        canary=read_canary(canary, tried, served.batching),
    )
    read = (top, inference, batching, priorities, preprocessing, cache, canary, tried)
    sections = {part.path: part for part in read}
    for part in sections.values():
        part.refuse_rest()
    if not problems.found:
        for key, message, hint in _violations(settings):
            section, _, leaf = key.rpartition(".")
            problems.add(f"{key} {message}", sections[section].at(leaf), hint)
    problems.raise_any()
    return settings


def _read_inference(inference: Fields, batching: Fields, priorities: Fields) -> InferenceSettings:
    default = InferenceSettings()
    return InferenceSettings(
        model=inference.text("model", default.model),
        precision=inference.text("precision", default.precision),
        replicas=inference.whole("replicas", default.replicas),
        deadline_ms=inference.whole("deadline_ms", default.deadline_ms),
        batching=read_batching(batching, default.batching),
        priorities=read_priorities(priorities),
        priority_levels=inference.switch("priority_levels", default.priority_levels),
    )


def validate(settings: Settings, name: str = "settings") -> None:
    """Raises ContentError(s) when settings built in code could not be loaded from a file."""
    problems = Problems(name)
    for key, message, hint in _violations(settings):
        problems.add(f"{key} {message}", None, hint)
    problems.raise_any()


def _violations(settings: Settings) -> list[tuple[str, str, str]]:
    """(key, what is wrong, hint) for each rule the settings break."""
    inference, cache, canary = settings.inference, settings.cache, settings.canary
    found = out_of_range(
        ("generation", settings.generation, 1, 2**53),
        ("inference.replicas", inference.replicas, 1, MAX_REPLICAS),
        ("inference.deadline_ms", inference.deadline_ms, 10, 600_000),
        ("cache.ttl_seconds", cache.ttl_seconds, 1, 7 * 24 * 3600),
        ("cache.max_entries", cache.max_entries, 1, 10_000_000),
        ("cache.timeout_ms", cache.timeout_ms, 1, 60_000),
    )
    found += priority_violations(inference.priorities, has_levels=inference.has_levels)
    found += batching_violations("inference.batching", inference.batching)
    if canary is not None and canary.batching is not None:
        found += batching_violations("canary.batching", canary.batching)
    found += [*canary_violations(canary, inference.replicas), *_not_a_pattern(settings.preprocessing.redact_pattern)]
    return found + _unavailable(settings)


def _not_a_pattern(pattern: str) -> list[tuple[str, str, str]]:
    key = "preprocessing.redact_pattern"
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return [(key, f"is longer than {MAX_PATTERN_CHARACTERS} characters", "")]
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return [(key, f"is no regular expression: {error}", "")]
    return []


def _unavailable(settings: Settings) -> list[tuple[str, str, str]]:
    """Values that are reserved but not served by this release, each with what to use instead."""
    inference, found = settings.inference, []
    if inference.model != MODEL_NAME:
        found.append(("inference.model", f"must be {MODEL_NAME}", "It is the only model the stack carries."))
    found += _precision("inference.precision", inference.precision)
    if settings.canary is not None and settings.canary.precision is not None:
        found += _precision("canary.precision", settings.canary.precision)
    if settings.accelerator == "cuda":
        found.append(("accelerator", "cuda is not available in this release", "Use sim:small or cpu."))
    elif not ACCELERATOR.fullmatch(settings.accelerator):
        found.append(
            ("accelerator", f"must be sim:<profile> or cpu, not {settings.accelerator!r}", "Write sim:small or cpu.")
        )
    return found


def _precision(key: str, precision: str) -> list[tuple[str, str, str]]:
    return [] if precision in VERSIONS else [(key, f"must be {' or '.join(VERSIONS)}, not {precision!r}", "")]


def with_values(settings: Settings, values: Sequence[tuple[str, str]]) -> Settings:
    """The settings with these dotted keys set, each value written as in the file; ContentError(s) when one is wrong."""
    plain: Any = _plain(settings)  # Mappings by name down to scalars, which a type could not say without checks.
    for key, value in values:
        *sections, leaf = key.split(".")
        functools.reduce(operator.getitem, sections, plain)[leaf] = yaml.load(value, Loader=yaml.CSafeLoader)
    return parse(_text(plain))


def dump(settings: Settings) -> str:
    """The settings as YAML text that `parse` reads back to an equal value; keys keep the documented order."""
    return _text(_plain(settings))


def _text(plain: object) -> str:
    return yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=False)


def _plain(record: object) -> object:
    if is_dataclass(record):
        found = {item.name: getattr(record, item.name) for item in fields(record)}
        return {name: _plain(value) for name, value in found.items() if value is not None}
    return record


def save(path: Path, settings: Settings) -> None:
    """Writes the settings so that a reader, or a crash, sees either the old file or the new one. OSError passes."""
    write_atomically(path, dump(settings))
