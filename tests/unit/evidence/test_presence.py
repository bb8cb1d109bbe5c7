"""The questions about what is there; that they are valid PromQL is shown by the contract tests."""

from __future__ import annotations

from latencydoctor.evidence import presence


def test_the_users_selector_stands_in_every_question() -> None:
    selector = 'ns="p"'
    asked = [
        presence.service_query("m", selector),
        presence.place_query("m", selector),
        presence.one_series_query("m", selector),
        presence.newest_query("m", selector),
        presence.copies_query("m", selector, "replica"),
        presence.names_query(["b", "a", "a"], selector),
    ]
    assert all('ns="p"' in query for query in asked)


def test_names_are_asked_for_once_each_and_in_order() -> None:
    assert presence.names_query(["b", "a", "a"], "") == ('count by (__name__) (last_over_time({__name__=~"a|b"}[10m]))')


def test_only_the_plain_word_replica_must_be_on_up_as_well() -> None:
    assert "up{" in presence.copies_query("m", "", "replica")
    assert "up{" not in presence.copies_query("m", "", "prometheus_replica")


def test_one_series_is_named_by_all_its_plain_labels() -> None:
    labels = {"__name__": "m", "b": 'x"y', "a": "", "odd.name": "z"}
    assert presence.exactly(labels) == 'a="",b="x\\"y"'
