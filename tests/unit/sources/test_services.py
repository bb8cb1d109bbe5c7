"""Which services there are."""

from __future__ import annotations

from latencydoctor.model.readings import Candidate
from latencydoctor.sources.answers import Labelled
from latencydoctor.sources.services import candidates_of, fullest_copy


def one(**labels: str) -> Labelled:
    return Labelled(labels, ((0.0, 1.0),))


def services(*elements: Labelled) -> tuple[Candidate, ...]:
    return candidates_of(["model"], [elements], [])


def test_one_service_needs_no_selector() -> None:
    assert services(one(model="bert", job="triton", namespace="prod")) == (Candidate("bert", ""),)
    assert services() == ()


def test_models_are_told_apart_by_their_name() -> None:
    assert services(one(model="b", job="t"), one(model="a", job="t")) == (Candidate("a", ""), Candidate("b", ""))


def test_the_label_that_alone_tells_all_apart_is_enough() -> None:
    found = services(
        one(model="m", job="t", namespace="prod", cluster="eu"), one(model="m", job="u", namespace="test", cluster="eu")
    )
    assert found == (Candidate("m", 'namespace="prod"'), Candidate("m", 'namespace="test"'))


def test_several_labels_are_named_when_none_is_enough() -> None:
    found = services(
        one(model="m", cluster="eu", namespace="a"),
        one(model="m", cluster="us", namespace="a"),
        one(model="m", cluster="us", namespace="b"),
    )
    assert found[0] == Candidate("m", 'cluster="eu",namespace="a"')
    assert len(found) == 3


def test_an_absent_label_is_matched_as_empty_and_values_are_quoted() -> None:
    found = services(one(model="m"), one(model="m", team='a"b\\'))
    assert found == (Candidate("m", 'team=""'), Candidate("m", 'team="a\\"b\\\\"'))


def test_two_front_ends_of_one_model_are_two_services() -> None:
    fronts = (one(job="gateway-a"), one(job="gateway-b"))
    assert candidates_of(["model"], [(one(model="m", job="t"),)], [fronts]) == (
        Candidate("m", 'job="gateway-a"'),
        Candidate("m", 'job="gateway-b"'),
    )
    assert candidates_of([], [], [fronts])[0] == Candidate("", 'job="gateway-a"')
    assert candidates_of(["model"], [(one(model="m"),)], [fronts[:1]]) == (Candidate("m", ""),)


def test_the_label_that_names_models_is_kept_with_the_candidate() -> None:
    spoken = [(one(model="a"),), (one(model_name="b"),)]
    found = candidates_of(["model", "model_name"], spoken, [])
    assert [(item.model, item.model_label) for item in found] == [("a", "model"), ("b", "model_name")]


def test_one_copy_alone_needs_no_matcher() -> None:
    assert fullest_copy("replica", [one(replica="a")]) == ""
    assert fullest_copy("replica", [one(replica="b"), one(replica="a")]) == 'replica="a"'


def test_a_server_that_speaks_two_dialects_is_one_service() -> None:
    triton, vllm = one(model="m", model_name="m", job="t"), one(model_name="m", job="t")
    assert candidates_of(["model", "model_name"], [(triton,), (vllm,)], []) == (Candidate("m", ""),)
