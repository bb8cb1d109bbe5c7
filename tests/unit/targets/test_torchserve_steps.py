"""Which request comes next on a TorchServe, from whatever state it is found in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.errors import KnownError, Refused
from latencydoctor.targets.torchserve_state import Registration, Served, Version
from latencydoctor.targets.torchserve_steps import Act, Step, Way, next_step, requests

OLD = Registration("tiny", "1.0", "tiny-1.0.mar", 1, 50, 2, 2, 120, 120)
NEW = replace(OLD, version="2.0", archive="tiny-2.0.mar", batch_size=16, delay_ms=100)
AGAIN = replace(OLD, batch_size=16, delay_ms=100)
OTHER = replace(OLD, version="9.0")


def seen(registration: Registration, ready: int = 2, waiting: int | None = 0) -> Version:
    return Version(registration, ready, waiting, "{}")


def now(default: str, *versions: Version) -> Served:
    return Served(default, versions)


OVER = Way(NEW, OLD)


@pytest.mark.parametrize(
    ("found", "step"),
    [
        (now("1.0", seen(OLD)), Step(Act.REGISTER, "2.0")),
        (now("1.0", seen(OLD), seen(replace(NEW, min_workers=1), 1)), Step(Act.SCALE, "2.0")),
        (now("1.0", seen(OLD), seen(NEW, 1)), Step(Act.WAIT, "2.0", "1 of 2 workers are ready")),
        (now("1.0", seen(OLD), seen(NEW)), Step(Act.SET_DEFAULT, "2.0")),
        (now("2.0", seen(OLD, waiting=3), seen(NEW)), Step(Act.DRAIN, "1.0", "3 requests wait for version 1.0")),
        (now("2.0", seen(OLD), seen(NEW)), Step(Act.UNREGISTER, "1.0")),
        (now("2.0", seen(NEW)), Step(Act.DONE, "2.0")),
        # Others' versions are none of its business.
        (now("2.0", seen(NEW), seen(OTHER)), Step(Act.DONE, "2.0")),
    ],
)
def test_the_old_version_serves_until_the_new_one_does(found: Served, step: Step) -> None:
    assert next_step(found, OVER) == step


@pytest.mark.parametrize(
    ("found", "act"),
    [
        (now("1.0", seen(OLD)), Act.UNREGISTER),
        (Served(), Act.REGISTER),
        (now("1.0", seen(AGAIN, 0)), Act.WAIT),
        (now("1.0", seen(AGAIN)), Act.DONE),
    ],
)
def test_one_archive_is_registered_again(found: Served, act: Act) -> None:
    assert next_step(found, Way(AGAIN, OLD)).act is act


def test_the_way_back_begins_wherever_the_way_there_ended() -> None:
    back = Way(OLD, NEW)
    assert next_step(now("1.0", seen(OLD)), back).act is Act.DONE
    assert next_step(now("1.0", seen(OLD), seen(NEW, 0)), back) == Step(Act.UNREGISTER, "2.0")
    assert next_step(now("2.0", seen(OLD), seen(NEW)), back) == Step(Act.SET_DEFAULT, "1.0")
    assert next_step(now("2.0", seen(NEW)), back) == Step(Act.REGISTER, "1.0")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (now("1.0", seen(replace(OLD, batch_size=3))), "version 1.0 was registered by someone else"),
        (now("1.0", seen(OLD), seen(replace(NEW, delay_ms=7))), "version 2.0 was registered by someone else"),
        (now("9.0", seen(OLD), seen(OTHER)), "version 9.0 was made the default by someone else"),
    ],
)
def test_what_the_run_cannot_have_done_stops_it(found: Served, says: str) -> None:
    with pytest.raises(KnownError, match=says) as caught:
        next_step(found, OVER)
    assert not isinstance(caught.value, Refused)


def test_the_requests_are_shown_in_their_order() -> None:
    shown = requests(now("1.0", seen(OLD)), OVER).splitlines()

    assert [line.split("?")[0] for line in shown] == [
        "# tried first: registered under another name, without workers, and taken away again",
        "POST /models",
        "PUT /models/tiny/2.0",
        "# wait until 2 workers are ready",
        "PUT /models/tiny/2.0/set-default",
        "# wait until no request waits for version 1.0",
        "DELETE /models/tiny/1.0",
    ]
    assert "batch_size=16&max_batch_delay=100" in shown[1]


def test_an_outage_is_shown_where_it_begins() -> None:
    shown = requests(now("1.0", seen(OLD)), Way(AGAIN, OLD)).splitlines()

    assert shown[1] == "DELETE /models/tiny/1.0  # nobody is served from here on"
    assert shown[2].startswith("POST /models?url=tiny-1.0.mar&batch_size=16")


def test_workers_alone_take_one_request() -> None:
    shown = requests(now("1.0", seen(OLD)), Way(replace(OLD, min_workers=4, max_workers=4), OLD)).splitlines()
    assert shown == ["PUT /models/tiny/1.0?min_worker=4&max_worker=4", "# wait until 4 workers are ready"]


def test_nothing_to_do_is_nothing_to_show() -> None:
    assert requests(now("1.0", seen(OLD)), Way(OLD, OLD)) == ""


def test_a_version_that_is_taken_is_refused() -> None:
    with pytest.raises(Refused, match="is registered already"):
        requests(now("1.0", seen(OLD), seen(replace(NEW, batch_size=2))), OVER)


def test_a_default_among_several_cannot_be_registered_again() -> None:
    with pytest.raises(Refused, match="only when it is the only one"):
        requests(now("1.0", seen(OLD), seen(OTHER)), Way(AGAIN, OLD))
