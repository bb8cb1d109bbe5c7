from __future__ import annotations

from latencydoctor.stack.controller.stubs import LOOK_S, SHORT_LOOKS, StubWatch


class Machine:
    """Processes that live and die on command, and a clock."""

    def __init__(self) -> None:
        self.living: set[int] = set()
        self.now_s = 0.0
        self.searches = 0

    def find(self) -> tuple[int, ...]:
        self.searches += 1
        return tuple(sorted(self.living))

    def alive(self, pid: int) -> bool:
        return pid in self.living

    def watch(self) -> StubWatch:
        return StubWatch(self.find, self.alive, lambda: self.now_s)

    def later(self, watch: StubWatch, expected: int = 1) -> bool:
        self.now_s += LOOK_S
        return watch.lost(expected)


def test_a_process_that_was_never_there_is_not_missed() -> None:
    machine = Machine()
    assert not machine.later(machine.watch())


def test_a_process_that_dies_is_missed_until_another_is_found() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.living = {1}
    assert not machine.later(watch)
    machine.living = set()
    assert machine.later(watch)
    assert machine.later(watch)
    machine.living = {2}
    assert not machine.later(watch)


def test_a_reload_replaces_the_process_without_a_loss() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.living = {1}
    machine.later(watch)
    machine.living = {2}
    assert not machine.later(watch)


def test_a_known_process_is_not_searched_for_again() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.living = {1}
    machine.later(watch)
    machine.later(watch)
    assert machine.searches == 1
    assert not watch.lost(1)


def test_one_of_two_versions_that_dies_is_missed_too() -> None:
    """Triton goes on with the other, and fails every question to the dead one."""
    machine = Machine()
    watch = machine.watch()
    machine.living = {1, 2}
    assert not machine.later(watch, 2)
    machine.living = {1}
    looks = [machine.later(watch, 2) for _ in range(SHORT_LOOKS)]
    assert looks == [False] * (SHORT_LOOKS - 1) + [True]
    assert machine.later(watch, 2)
    machine.living = {1, 3}
    assert not machine.later(watch, 2)
    machine.living = {3}
    assert not machine.later(watch, 1), "a version that has been taken out is not missed"


def test_a_version_that_is_being_exchanged_is_not_missed() -> None:
    machine = Machine()
    watch = machine.watch()
    for living in ({1, 2}, {1}, {1, 3}, {3}, {3, 4}):
        machine.living = living
        assert not machine.later(watch, 2)
