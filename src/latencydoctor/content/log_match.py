"""Reads the `match` block of a log rule: which lines are looked for, and what makes an event of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from latencydoctor.content.reader import Mapping
from latencydoctor.evidence.logs.engine import PatternError, refuse
from latencydoctor.evidence.logs.quantities import unbounded
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import Burst, NumberGate, Sequel

PROGRAMS = (
    *("triton", "onnxruntime", "tensorflow", "tensorrt", "tensorrt_llm", "perf_analyzer"),
    *("torchserve", "vllm", "sglang", "tgi", "ray", "kserve", "uvicorn", "gunicorn", "knative"),
    *("uwsgi", "nginx", "envoy", "proxy", "redis", "kernel", "systemd", "kubernetes", "nvidia_smi"),
    *("pytorch", "nccl", "ucx", "alertmanager", "prometheus", "stack"),
)
"""The programs that the reading of lines tells apart."""

_LEVELS = ("WARNING", "ERROR", "CRITICAL", "INFO")
_LONGEST_S = 3600.0
_EVENT_KEYS = ("burst", "climbs", "echoes", "not_after", "recovered_by", "real_when")
"""What decides on events; a benign rule decides on lines alone."""


@dataclass(frozen=True, slots=True)
class Match:
    """The fields of a `LogRule` that its `match` block gives."""

    patterns: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    gate: NumberGate | None = None
    level_at_least: Severity | None = None
    level_at_most: Severity | None = None
    programs: tuple[str, ...] = ()
    statuses: tuple[int, int] | None = None
    burst: Burst | None = None
    climbs: str = ""
    only_after: tuple[str, ...] = ()
    echoes: tuple[str, ...] = ()
    not_after: Sequel | None = None
    recovered_by: Sequel | None = None
    real_when: Sequel | None = None


def read_matches(block: Mapping, *, compiled: bool, benign: bool) -> tuple[Match, ...]:
    """The block's fields, and those of each of its `or` blocks; a block that has `or` needs no patterns of its own.

    Problems are noted at their lines. `compiled` also tries each pattern with the engine.
    """
    others = block.mappings("or", ())
    if "or" in block and not others:
        block.problem("or is empty: leave it out", "or")
    first = (_match(block, compiled, benign),) if "any" in block or not others else ()
    if not first:
        block.close()
    return (*first, *(_match(one, compiled, benign) for one in others))


def _match(block: Mapping, compiled: bool, benign: bool) -> Match:
    for key in _EVENT_KEYS if benign else ():
        if key in block:
            block.problem(f"a benign rule decides on lines, not on events: {key} has no meaning there", key)
    match = Match(
        patterns=_patterns(block, "any", required=True, compiled=compiled),
        unless=_patterns(block, "unless", required=False, compiled=compiled),
        numbers=_numbers(block),
        gate=_gate(block),
        level_at_least=_level(block, "level_at_least"),
        level_at_most=_level(block, "level_at_most"),
        programs=_programs(block),
        statuses=_statuses(block),
        burst=_burst(block),
        climbs=_climbs(block),
        only_after=_patterns(block, "only_after", required=False, compiled=compiled),
        echoes=_patterns(block, "echoes", required=False, compiled=compiled),
        not_after=_sequel(block, "not_after", compiled),
        recovered_by=_sequel(block, "recovered_by", compiled),
        real_when=_sequel(block, "real_when", compiled),
    )
    block.close()
    return match


def _patterns(block: Mapping, key: str, *, required: bool, compiled: bool) -> tuple[str, ...]:
    patterns = block.texts(key) if required else block.texts(key, ())
    if not patterns and key in block:
        block.problem("a rule without patterns matches nothing" if required else f"{key} is empty: leave it out", key)
    kept = list(patterns)
    # Compiling them together is quick; only when that fails does it matter which one it was.
    while compiled and kept:
        try:
            refuse(kept)
            break
        except PatternError as error:
            block.problem(f"{error.message}: {kept.pop(error.index)!r}", key, error.hint)
    return tuple(kept)


def _numbers(block: Mapping) -> tuple[str, ...]:
    kept: list[str] = []
    for pattern in block.texts("numbers", ()):
        reason = unbounded(pattern)
        try:
            groups = re.compile(pattern).groupindex
        except re.error as error:
            reason = f"is no regular expression: {error}"
        else:
            reason = reason or ("" if groups else "has no named group, such as (?P<queue_ms>...)")
        if reason:
            block.problem(f"the number pattern {pattern!r} {reason}", "numbers")
        else:
            kept.append(pattern)
    return tuple(kept)


def _gate(block: Mapping) -> NumberGate | None:
    gate = block.mapping("gate", None)
    if gate is None:
        return None
    bounds = ("above" in gate or "below" in gate) + ("at_least_number" in gate) + ("above_number" in gate)
    if bounds != 1:
        gate.problem("a gate needs exactly one of: above and/or below, at_least_number, above_number")
    absent = gate.choice("when_absent", ("silent", "counts"), "silent")
    result = NumberGate(
        group=gate.text("number"),
        above=_optional(gate, "above"),
        below=_optional(gate, "below"),
        at_least_group=gate.text("at_least_number", ""),
        above_group=gate.text("above_number", ""),
        counts_when_absent=absent == "counts",
    )
    for name in filter(None, (result.group, result.at_least_group, result.above_group)):
        _check_group(gate, block, name)
    gate.close()
    return result


def _optional(gate: Mapping, key: str) -> float | None:
    value = gate.number(key, 0.0)
    return value if key in gate else None


def _check_group(at: Mapping, block: Mapping, name: str, key: str = "") -> None:
    if f"(?P<{name}>" not in " ".join(block.texts("numbers", ())):
        at.problem(f"no number pattern has a group {name!r}", key)


def _level(block: Mapping, key: str) -> Severity | None:
    chosen = block.choice(key, _LEVELS, "")
    return Severity(chosen) if key in block else None


def _programs(block: Mapping) -> tuple[str, ...]:
    programs = block.texts("programs", ())
    for name in programs:
        if name not in PROGRAMS:
            block.problem(f"programs has {name!r}, not one of: {', '.join(PROGRAMS)}", "programs")
    return programs


def _statuses(block: Mapping) -> tuple[int, int] | None:
    given = block.wholes("statuses", ())
    if "statuses" not in block:
        return None
    if len(given) != 2 or not 100 <= given[0] <= given[1] <= 599:
        block.problem("statuses must be the first and the last of a range within 100 to 599, as [500, 599]", "statuses")
        return None
    return given[0], given[1]


def _burst(block: Mapping) -> Burst | None:
    burst = block.mapping("burst", None)
    if burst is None:
        return None
    result = Burst(burst.whole("count"), _within_s(burst))
    if result.count < 2:
        burst.problem("a burst has at least 2 events", "count")
    burst.close()
    return result


def _climbs(block: Mapping) -> str:
    name = block.text("climbs", "")
    if name:
        _check_group(block, block, name, "climbs")
    return name


def _sequel(block: Mapping, key: str, compiled: bool) -> Sequel | None:
    sequel = block.mapping(key, None)
    if sequel is None:
        return None
    result = Sequel(_patterns(sequel, "any", required=True, compiled=compiled), _within_s(sequel))
    sequel.close()
    return result


def _within_s(mapping: Mapping) -> float:
    within_s = mapping.number("within_s")
    if "within_s" in mapping and not 0 < within_s <= _LONGEST_S:
        mapping.problem(f"within_s must be above 0 and at most {_LONGEST_S:g}", "within_s")
    return within_s
