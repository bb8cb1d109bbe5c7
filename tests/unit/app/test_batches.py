"""Executions by batch size over all servers of a target, from what their statistics say."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.app.batches import executed
from latencydoctor.model.evidence import Fact, Gap, GapReason, Proof, Selection
from latencydoctor.model.reached import Executions
from latencydoctor.model.readings import Readings

HERE = Selection("faq-encoder")
PROOF = Proof("triton", "ModelStatistics(faq-encoder)")


@dataclass(frozen=True)
class Server:
    sizes: dict[int, int]
    preferred: float | None = 16.0

    def read(self, selection: Selection) -> Readings:
        assert selection == HERE
        facts = [
            Fact(f"batch_{size}_{name}", unit, value, PROOF)
            for size, count in self.sizes.items()
            for name, unit, value in (("executions", "executions", float(count)), ("time_ms", "ms", 30.0))
        ]
        if self.preferred is not None:
            facts.append(Fact("config_preferred_batch_size", "items", self.preferred, PROOF))
        return Readings(facts=tuple(facts))


class Away:
    def read(self, selection: Selection) -> Readings:
        return Readings(gaps=(Gap("batch_size", GapReason.UNREACHABLE, "Triton cannot be reached"),))


def test_servers_are_added_up() -> None:
    found = executed([Server({8: 3, 16: 4}), Server({16: 1, 20: 2})], HERE)
    assert found == Executions(((8, 3), (16, 5), (20, 2)), 16)


def test_a_preferred_size_of_nothing_is_no_floor() -> None:
    assert executed([Server({8: 3}, 0.0)], HERE) == Executions(((8, 3),), None)
    assert executed([Server({8: 3}, 1.0)], HERE) == Executions(((8, 3),), None)
    # Of servers that differ, as during a canary, the smaller wish is what all must meet.
    assert executed([Server({8: 3}, 8.0), Server({8: 1}, 16.0)], HERE) == Executions(((8, 4),), 8)


def test_a_part_does_not_pass_for_the_whole() -> None:
    assert executed([Server({8: 3}), Away()], HERE) is None
    assert executed([Server({8: 3}, None)], HERE) is None
    assert executed([Server({})], HERE) is None
    assert executed([], HERE) is None
