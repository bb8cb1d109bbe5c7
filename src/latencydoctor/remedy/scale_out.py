"""The fix `scale-out`: more replicas, where more traffic comes than the device can do.

It is the reflex of every incident and the answer to few of them, so it is refused where the diagnosis found a cause
that more replicas would not cure. How many are needed is for the forecast to say. A single server has no replicas to
add; there it is more instances (TorchServe: workers), which help only as long as what they share has time left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from latencydoctor.errors import Refused
from latencydoctor.model.cause import Scaling
from latencydoctor.model.diagnosis import Cause, Finding
from latencydoctor.model.remedy import NothingToDo, Requirement, TargetState
from latencydoctor.percent import percent
from latencydoctor.remedy.change import Change

FIX_ID = "scale-out"

REPLICAS = "inference.replicas"
INSTANCES = "inference.instances"
MEMORY = "accelerator_memory_used_bytes"

MOST = 4
"""What the bundled stack has room for."""

MOST_INSTANCES = 16
"""On one server; each has a copy of the model there."""

BUSY_RATIO = 0.85
"""An accelerator busier than this has no time left for another instance: the mission's bound of a healthy GPU."""

MEMORY_MARGIN = 1.25
"""Each replica has a copy of the model and batches of its own; how much more than that verification lets pass."""

SHOWN_FINDINGS = 4
"""So many of a cause's findings fit beside a refusal."""


@dataclass(frozen=True, slots=True)
class Need:
    """How many replicas hold the SLO by the forecast, and why in words; None: not known, 0: no number does."""

    replicas: int | None
    told: str


UNKNOWN = Need(None, "how many are needed was not computed")


def number(text: str) -> int:
    """The replicas that a setting's text names; one where there is no such setting."""
    return max(1, int(text)) if text.isascii() and text.isdecimal() else 1


def lever(state: TargetState) -> str:
    """The setting that adds capacity on this target: replicas where it has any, else instances."""
    return INSTANCES if not state.can_set(REPLICAS) and state.can_set(INSTANCES) else REPLICAS


def propose(
    state: TargetState, need: Need, measured: Mapping[str, float], *, insisted: bool = False
) -> Change | NothingToDo:
    """As many replicas as the forecast asks for, one more where it cannot say or a person insists."""
    key = lever(state)
    word, most = ("instances", MOST_INSTANCES) if key == INSTANCES else ("replicas", MOST)
    now = number(state.in_use(key) or "")
    if now >= most:
        return NothingToDo(
            FIX_ID,
            f"{now} {word} run, and there is room for no more; {need.told}",
            ("Add accelerators by hand, or shed standard traffic until they are there.",),
        )
    busy = measured.get("accelerator_busy_ratio")
    if key == INSTANCES and not insisted and busy is not None and busy > BUSY_RATIO:
        reason = (
            f"the accelerator is busy {percent(busy, 0)} of the time, and another instance on it would only share it"
        )
        return NothingToDo(FIX_ID, reason, ("Add a server with an accelerator of its own.",))
    if not insisted and need.replicas == 0:
        return NothingToDo(FIX_ID, f"more {word} would not be enough: {need.told}")
    if not insisted and need.replicas is not None and need.replicas <= now:
        return NothingToDo(FIX_ID, f"the {now} there {'is' if now == 1 else 'are'} should do: {need.told}")
    wanted = max(need.replicas or 0, now + 1)
    then = min(wanted, most)
    return Change(
        values=((key, str(then)),),
        side_effects=tuple(_side_effects(key, now, then, measured)),
        grounds=(f"Forecast: {need.told}.", *_short(wanted, then)),
        requirements=tuple(_requirements(measured, then / now)),
    )


def _short(wanted: int, then: int) -> Iterator[str]:
    if wanted > then:
        yield f"{wanted} would be needed and {then} is the most: shed standard traffic as well, or add accelerators."


def _side_effects(key: str, now: int, then: int, measured: Mapping[str, float]) -> Iterator[str]:
    rate = measured.get("request_rate_rps")
    arrivals = "of the requests" if rate is None else f"of the {rate:.0f} requests/s"
    if key == INSTANCES:
        yield "Instances share one server: capacity grows only while its processors and accelerator have time left."
        yield f"Memory in use grows to about {then / now:.3g} times: each instance has a copy of the model."
        return
    yield f"Each replica makes batches of its own and gets 1/{then} {arrivals}, 1/{now} before: batches fill later."
    yield f"Memory in use grows to about {then / now:.3g} times: each replica has a copy of the model."
    yield "A new replica takes traffic once it has made an inference, seconds later; the cache is shared and warm."
    yield "A rollback drains: what is to end gets no more requests, answers those it has, and is then ended."


def _requirements(measured: Mapping[str, float], growth: float) -> Iterator[Requirement]:
    used = measured.get(MEMORY)
    if used is not None:
        yield Requirement(MEMORY, "bytes", used * growth * MEMORY_MARGIN)


def refuse_where_wrong(cause: Cause) -> None:
    """Refused where more replicas are the wrong answer to this cause, with its proof."""
    if cause.scaling != Scaling.WRONG.value:
        return
    shown = [item for item in cause.evidence if item.value is not None][:SHOWN_FINDINGS]
    proof = ", ".join(map(_words, shown))
    found = f"{cause.title} ({cause.id}, confidence {cause.confidence.value})"
    instead = f"`latencydoctor plan {cause.fix}` is for it" if cause.fix else f"Instead: {cause.advice.rstrip('.')}"
    raise Refused(
        f"capacity is not the problem: {found}: {proof}. {cause.not_this}".rstrip(),
        hint=f"{instead}; `latencydoctor plan {FIX_ID} --force` plans more replicas all the same.",
    )


def _words(item: Finding) -> str:
    limit = "" if item.threshold is None else f" {item.threshold:.4g}"
    return f"{item.signal} {item.value:.4g} {item.unit}".rstrip() + f" ({item.comparison.replace('_', ' ')}{limit})"
