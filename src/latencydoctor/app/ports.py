"""The edges as the use cases see them.

Implementations live in `sources`, `targets` and `journal.py`; only `cli/wiring.py` and `cli/sources_wiring.py` know
both sides. Nothing here raises for an absent value: what cannot be read comes back as a `Gap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # A diagnosis needs no remedies, and making their records costs it a tenth of its start-up.
    from latencydoctor.model.builds import ModelBuild
    from latencydoctor.model.evidence import Selection, Window
    from latencydoctor.model.popular import Popularity, WarmBatch, WarmedBatch
    from latencydoctor.model.reached import Executions
    from latencydoctor.model.readings import Discovery, RangeQuery, Readings
    from latencydoctor.model.remedy import JournalEntry, Reading, RunSummary, TargetObject, TargetState
    from latencydoctor.model.rule import Dialect, LogRule


class MetricsSource(Protocol):
    """A Prometheus or what stands in for it."""

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """Look what is there at `at_s`, within the source's deadline.

        Raises `SourceError` when the source is configured wrongly (refused credentials, no Prometheus at that URL)
        and `CannotTell` when it does not answer.
        """
        ...

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        """Ask all queries side by side within one deadline; what fails or is late comes back as a gap."""
        ...


class FactSource(Protocol):
    """Something with a present but no history: what Triton or TorchServe says of itself, NVML."""

    def read(self, selection: Selection) -> Readings:
        """Facts and gaps; never raises for an absent value."""
        ...


class LogSource(Protocol):
    """Log files, read once."""

    def read(self, rules: Sequence[LogRule], window: Window) -> Readings:
        """Events of `rules` whose time lies in `window` (events without a time are kept), worst first."""
        ...


class Target(Protocol):
    """A deployment that can be looked at and asked what a change would compile to. Changes nothing."""

    @property
    def name(self) -> str:
        """The target's identity as plans record it."""
        ...

    def read(self) -> TargetState:
        """Settings, digests and the configuration in effect; `KnownError` when it cannot be read."""
        ...

    def edited(self, settings_text: str, values: Sequence[tuple[str, str]]) -> str:
        """The settings text with these dotted keys set to these YAML scalars; comments and order stay as they are."""
        ...

    def preview(self, settings_text: str) -> str:
        """The server configuration these settings would compile to, without applying them."""
        ...


Cancelled = Callable[[], bool]
"""Whether someone asked to stop; edges poll it while they wait, the command line sets it from its signal handlers."""


class Changer(Protocol):
    """The only port that changes a target; `targets/executor.py` implements it."""

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """The target's lock for as long as the context lasts, freed at once when its holder dies.

        Raises `Refused` naming the holder's run, user, host and pid, and since when, if another has it.
        """
        ...

    def refuse_held(self) -> None:
        """Raises `Refused` as `hold` does while another has the lock; takes and writes nothing."""
        ...

    def write(
        self,
        settings_text: str,
        *,
        expected: frozenset[str],
        cancelled: Cancelled,
        proof: tuple[TargetObject, ...] = (),
    ) -> TargetState:
        """Put the settings in place atomically and wait until they are in effect; return the state read back.

        `proof` are the objects as they were when these settings were last in effect, for a target that can tell by
        nothing else that they are again. Where changes are counted the generation becomes one more than the one found.
        A file whose content is already the one asked for is left alone and only waited for, unless it was refused
        before: then it is asked for again. Raises `Refused` when the digest found is not among `expected`, and
        `KnownError` when the settings did not come into effect in time or `cancelled` (the caller then writes the text
        from before).
        """
        ...


class ModelBuilds(Protocol):
    """Where rebuilt models lie that fit the target's own."""

    def find(self) -> ModelBuild:
        """The build that is there; `KnownError`, with how to make one, when there is none or it is damaged."""
        ...


class AnswerCache(Protocol):
    """The cache of a front end that counts what is asked most; questions are known by digest only.

    Every method raises `KnownError` when the front end or its cache does not answer.
    """

    def popularity(self) -> Popularity:
        """What was asked most in the last minutes; changes nothing."""
        ...

    def warm(self, batch: WarmBatch) -> WarmedBatch:
        """Write the answers that are missing, each tagged with the run; what is there is left alone."""
        ...

    def tagged(self, run_id: str) -> tuple[str, ...]:
        """Ids of the entries that are still the run's own."""
        ...

    def drop(self, run_id: str) -> int:
        """Remove the entries that are still the run's own, and let it write no more; how many were removed."""
        ...


class Verifier(Protocol):
    """Fresh metrics after a change."""

    def read(self, window: Window) -> Reading:
        """What the window shows; an absent, stale or unusable value is None, never zero. Never raises for it."""
        ...


class ArmsVerifier(Protocol):
    """Fresh metrics of a canary, and of its peers at the same time."""

    def read(self, window: Window) -> tuple[Reading, Reading]:
        """The canary's figures and its peers'; as with `Verifier`, what is absent is None, and nothing is raised."""
        ...


BatchCounter = Callable[[], "Executions | None"]
"""Executions by batch size on the target's servers so far; None where one of them does not tell."""


class RunLog(Protocol):
    """The journal as the use cases write it: each call is on disk before it returns."""

    @property
    def run_id(self) -> str:
        """The run's name, in every record and in tagged cache keys."""
        ...

    @property
    def path(self) -> str:
        """Where the journal lies."""
        ...

    def record(self, event: str, **fields: object) -> None:
        """Append one record, chained to the one before, flushed and fsynced."""
        ...


class RunHistory(Protocol):
    """All journals of a target."""

    def list(self) -> tuple[RunSummary, ...]:
        """Newest first; a run without an end is open."""
        ...

    def entries(self, run_id: str) -> tuple[JournalEntry, ...]:
        """All whole records of a run; `UsageError` for an unknown run, `KnownError` where the chain is broken."""
        ...

    def start(self) -> RunLog:
        """A new run's journal; nothing is on disk before its first record."""
        ...

    def resume(self, run_id: str) -> RunLog:
        """An unfinished run's journal, to be continued after its last whole record."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """A use case's word on what it is doing: a phase, a line for people, and a fraction done when known."""

    phase: str
    text: str
    done_ratio: float | None = None


Observer = Callable[[Progress], None]


class Clock(Protocol):
    """Time as the use cases see it, so that tests need not wait."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
