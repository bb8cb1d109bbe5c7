from pathlib import Path

import pytest

from latencydoctor.errors import ContentError
from latencydoctor.stack.gateway.answers import load_answers


@pytest.fixture(scope="module")
def ids() -> list[str]:
    return [answer.answer_id for answer in load_answers()]


def test_the_faq_has_hundreds_of_answers_with_ids_of_their_own(ids: list[str]) -> None:
    assert len(ids) > 200
    assert len(set(ids)) == len(ids)


def test_a_damaged_faq_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "faq.yaml"
    for text in ("topics: 7", "a: [", "topics: [{entries: [{id: x}]}]"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ContentError, match=r"faq\.yaml"):
            load_answers(path)
