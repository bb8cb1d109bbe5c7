import pytest

from latencydoctor.stack.gateway.answers import load_answers


@pytest.fixture(scope="module")
def ids() -> list[str]:
    return [answer.answer_id for answer in load_answers()]


def test_the_faq_has_hundreds_of_answers_with_ids_of_their_own(ids: list[str]) -> None:
    assert len(ids) > 200
    assert len(set(ids)) == len(ids)
