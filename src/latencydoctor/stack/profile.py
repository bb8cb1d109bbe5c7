"""Profiles of simulated accelerators: how long a batch takes, how much memory it needs, at which clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack.yaml_nodes import Fields, compose, read_text

PROFILES = Path(__file__).with_name("profiles")

MARGIN_RATIO = 1.5
"""The profile's time must be this many times the measured compute, or the simulation cannot be kept up.

The figure is the project's own choice (design): it leaves a third of the time for a noisy machine.
"""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The same device with a model of lower precision: only what the arithmetic and the weights decide changes."""

    per_item_ms: float
    memory_model_bytes: int


@dataclass(frozen=True, slots=True)
class Profile:
    """One simulated accelerator. `origin` says whether its numbers are made up or calibrated, and from what."""

    name: str
    origin: str
    host_overhead_ms: float
    """Launch work on the host for each execution; the device idles meanwhile."""
    per_item_ms: float
    """Device time of one item at the highest clock."""
    memory_total_bytes: int
    memory_model_bytes: int
    """What the loaded model takes before the first batch."""
    memory_per_item_bytes: int
    """What the workspace grows by for each item of the largest batch seen; it never shrinks."""
    clock_mhz: float
    max_clock_mhz: float
    int8: Reduced | None = None
    """None where nobody has said, or measured, how fast the device is with INT8."""

    def at(self, precision: str) -> Profile:
        """The profile with a model of this precision; KnownError when the device's times with it are not known."""
        if precision == "fp32":
            return self
        if self.int8 is None:
            raise KnownError(
                f"sim:{self.name} has no times for {precision}", hint="Choose a profile that has, or stay with fp32."
            )
        return replace(self, per_item_ms=self.int8.per_item_ms, memory_model_bytes=self.int8.memory_model_bytes)

    @property
    def throttled(self) -> bool:
        """Whether the device runs below its highest clock."""
        return self.clock_mhz < self.max_clock_mhz

    def device_ms(self, items: int) -> float:
        """Time the device is busy with a batch of `items`, at the clock it runs at."""
        return items * self.per_item_ms * self.max_clock_mhz / self.clock_mhz

    def execution_ms(self, items: int) -> float:
        """Time of one execution of a batch of `items`, host overhead included."""
        return self.host_overhead_ms + self.device_ms(items)

    def memory_bytes(self, largest_batch: int) -> int:
        """Memory in use once a batch of `largest_batch` has been executed."""
        return self.memory_model_bytes + largest_batch * self.memory_per_item_bytes


def load(name: str, folder: Path = PROFILES) -> Profile:
    """The profile called `name`; KnownError listing what there is when it is unknown, ContentError when broken."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(f"sim:{found.stem}" for found in folder.glob("*.yaml")))
        raise KnownError(f"no simulated accelerator is called {name!r}", hint=f"There are: {known}.")
    return parse(read_text(path), str(path))


def parse(text: str, name: str = "profile") -> Profile:
    """The profile of a YAML text; ContentError(s) with the line of each problem."""
    top, problems = compose(text, name)
    profile = Profile(
        name=top.text("name", None),
        origin=top.text("origin", None),
        host_overhead_ms=top.number("host_overhead_ms", None),
        per_item_ms=top.number("per_item_ms", None),
        memory_total_bytes=top.whole("memory_total_bytes", None),
        memory_model_bytes=top.whole("memory_model_bytes", None),
        memory_per_item_bytes=top.whole("memory_per_item_bytes", None),
        clock_mhz=top.number("clock_mhz", None),
        max_clock_mhz=top.number("max_clock_mhz", None),
        int8=_reduced(top.inner("int8")),
    )
    top.refuse_rest()
    if not problems.found:
        for key in ("host_overhead_ms", "memory_model_bytes", "memory_per_item_bytes"):
            if getattr(profile, key) < 0:
                problems.add(f"{key} must not be negative", top.at(key))
        for key in ("per_item_ms", "memory_total_bytes", "clock_mhz"):
            if not getattr(profile, key) > 0:
                problems.add(f"{key} must be above 0", top.at(key))
        if profile.clock_mhz > profile.max_clock_mhz:
            problems.add("clock_mhz is above max_clock_mhz", top.at("clock_mhz"))
    problems.raise_any()
    return profile


def _reduced(section: Fields) -> Reduced | None:
    if section.node is None:
        return None
    found = Reduced(section.number("per_item_ms", None), section.whole("memory_model_bytes", None))
    section.refuse_rest()
    if not found.per_item_ms > 0:
        section.problems.add(f"{section.path}.per_item_ms must be above 0", section.at("per_item_ms"))
    if found.memory_model_bytes < 0:
        section.problems.add(
            f"{section.path}.memory_model_bytes must not be negative", section.at("memory_model_bytes")
        )
    return found
