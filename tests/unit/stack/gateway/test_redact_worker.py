import json

from latencydoctor.stack.gateway.redact_worker import redact


def test_each_line_comes_back_with_its_number_and_what_matches_masked() -> None:
    lines = [json.dumps([1, "mail me@example.org"]) + "\n", json.dumps([2, "nothing\nhere"]) + "\n"]
    answers = list(redact(r"\S+@\S+", lines))
    assert [json.loads(answer) for answer in answers] == [[1, "mail *"], [2, "nothing\nhere"]]
    assert all(answer.count("\n") == 1 and answer.endswith("\n") for answer in answers)
