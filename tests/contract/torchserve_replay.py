"""What a TorchServe's management API said when it was recorded, said again; and what is to be read from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from latencydoctor.model.evidence import GapReason
from latencydoctor.model.readings import Readings
from latencydoctor.sources.torchserve_description import SIGNALS
from tests.contract.strangers import Answer, Asked

PAGES = Path(__file__).parent / "pages"
RECORDED: dict[str, dict[str, Any]] = json.loads(
    (PAGES / "torchserve_management" / "torchserve-0.12.0" / "answers.json").read_text(encoding="utf-8")
)["answers"]
TINY = {
    "config_max_batch_size": 4,
    "config_queue_delay_ms": 50,
    "config_dynamic_batching": 1,
    "config_instance_count": 2,
    "config_queue_size": 8,
    "instances_ready": 2,
    "requests_waiting": 0,
}


def say(asked: Asked, told: dict[str, Any]) -> None:
    """An answer as it was recorded."""
    asked.reply(told["body"].encode(), f"{told['status']} As recorded", told["content_type"])


def replay(describe: str, listing: str = "one_model", *, token: str = "") -> Answer:
    """A server on which the recorded situation holds; it wants to see `token` if there is one."""

    def answer(asked: Asked) -> None:
        if token and asked.header("authorization") != f"Bearer {token}":
            say(asked, RECORDED["no_token"])
        else:
            known = {"/models": RECORDED[listing], "/models/tiny": RECORDED[describe]}
            say(asked, known.get(asked.path, RECORDED["absent"]))

    return answer


def values(readings: Readings) -> dict[str, float]:
    return {fact.signal: fact.value for fact in readings.facts}


def proof(readings: Readings, signal: str) -> str:
    return next(fact.proof.query for fact in readings.facts if fact.signal == signal)


def only_gaps(readings: Readings) -> tuple[GapReason, str, str]:
    """The reason, detail and need that all signals share; there are no facts."""
    assert readings.facts == ()
    assert {gap.signal for gap in readings.gaps} == set(SIGNALS)
    ((reason, detail, needs),) = {(gap.reason, gap.detail, gap.needs) for gap in readings.gaps}
    assert {record.outcome for record in readings.queries} == {reason.value}
    return reason, detail, needs
