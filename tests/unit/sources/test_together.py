"""Which requests it takes to find the expression that spoils a combined query."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.combine import MARK
from latencydoctor.sources.together import Elements, ask_together
from latencydoctor.sources.transport import FailureKind, TransportError


class Server:
    """Answers each expression with its own text as a label, refuses queries that hold a bad one."""

    def __init__(self, bad: set[str], kind: FailureKind = FailureKind.STATUS) -> None:
        self.bad, self.kind, self.asked = bad, kind, 0

    def __call__(self, query: str, count: int) -> object:
        self.asked += 1
        parts = query.split("label_replace(\n")[1:]
        texts = [part.split("\n,")[0] for part in parts] or [query]
        assert len(texts) == count
        if self.bad.intersection(texts):
            raise TransportError(self.kind, "bad", 422)
        marks: list[dict[str, str]] = [{MARK: str(index)} if parts else {} for index in range(len(texts))]
        labelled = [{**mark, "text": text} for mark, text in zip(marks, texts, strict=True)]
        return [{"metric": labels, "value": [1, "1"]} for labels in labelled]


def told(answer: Elements) -> str:
    if isinstance(answer, TransportError):
        return answer.detail
    (element,) = answer
    assert MARK not in element.labels
    return element.labels["text"]


TEXTS = [f"e{at}" for at in range(16)]


def test_all_are_answered_by_one_request() -> None:
    server = Server(set())
    assert [told(answer) for answer in ask_together(server, TEXTS)] == TEXTS
    assert server.asked == 1


@pytest.mark.parametrize("bad", TEXTS)
def test_one_bad_expression_is_found_in_few_requests(bad: str) -> None:
    server = Server({bad})
    found = [told(answer) for answer in ask_together(server, TEXTS)]
    assert found == ["bad" if text == bad else text for text in TEXTS]
    # Four halvings, of which each costs two requests at most.
    assert server.asked <= 9


def test_several_bad_ones_are_found() -> None:
    bad = {"e0", "e7", "e15"}
    found = [told(answer) for answer in ask_together(Server(bad), TEXTS)]
    assert found == ["bad" if text in bad else text for text in TEXTS]


@pytest.mark.parametrize("kind", [FailureKind.DEADLINE, FailureKind.REFUSED, FailureKind.NOT_JSON, FailureKind.COST])
def test_what_no_expression_can_have_caused_is_not_asked_again(kind: FailureKind) -> None:
    server = Server({"e3"}, kind)
    assert [told(answer) for answer in ask_together(server, TEXTS)] == ["bad"] * 16
    assert server.asked == 1


def test_a_failure_half_way_leaves_what_was_found() -> None:
    server = Server({"e15"})

    def tiring(query: str, count: int) -> object:
        if server.asked == 3:
            raise TransportError(FailureKind.COST, "used up")
        return server(query, count)

    found = [told(answer) for answer in ask_together(tiring, TEXTS)]
    assert found == [*TEXTS[:12], *["used up"] * 4]
