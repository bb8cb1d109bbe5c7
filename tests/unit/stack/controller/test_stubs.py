from __future__ import annotations

from latencydoctor.stack.controller.stubs import LOOK_S, StubWatch


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

    def later(self, watch: StubWatch) -> bool:
        self.now_s += LOOK_S
        return watch.lost()


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
    assert not watch.lost()
