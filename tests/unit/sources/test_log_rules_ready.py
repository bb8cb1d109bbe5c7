"""Log rules are made ready beside other work."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from latencydoctor.errors import ContentError
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import LogRule
from latencydoctor.sources import log_rules_ready
from latencydoctor.sources.log_rules_ready import RulesReady


def rule(pattern: str) -> LogRule:
    return LogRule("dead", "t", "stable", Severity.CRITICAL, (pattern,), (), (), None, "", (), "", ())


def test_the_scanner_is_there_when_it_is_needed() -> None:
    scanner = RulesReady([rule("died")]).scanner(time.monotonic() + 60)
    assert scanner is not None
    assert scanner.which("it died") == {0}


def test_a_pattern_that_is_refused_is_told_to_whoever_asks() -> None:
    ready = RulesReady([rule("(died")])
    with pytest.raises(ContentError, match="log rule dead"):
        ready.scanner(time.monotonic() + 60)


def test_it_is_not_waited_for_any_longer_than_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = threading.Event()

    def slow(rules: Sequence[LogRule]) -> Scanner:
        busy.wait(10)
        return Scanner([])

    monkeypatch.setattr(log_rules_ready, "log_scanner", slow)
    began_s = time.monotonic()
    assert RulesReady([]).scanner(began_s + 0.1) is None
    assert time.monotonic() - began_s < 2
    busy.set()


def test_whatever_breaks_is_told_to_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the rules would seem to be late, and a longer deadline be asked for."""

    def broken(rules: Sequence[LogRule]) -> Scanner:
        raise MemoryError("no room for the patterns")

    monkeypatch.setattr(log_rules_ready, "log_scanner", broken)
    with pytest.raises(MemoryError, match="no room"):
        RulesReady([]).scanner(time.monotonic() + 60)
