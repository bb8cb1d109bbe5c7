"""Runs questions to a source side by side and stops waiting when their deadline has passed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from latencydoctor.sources.transport import Deadline

GRACE_S = 0.2

Question = TypeVar("Question")
Answer = TypeVar("Answer")


def run_side_by_side(
    ask: Callable[[Question], Answer], questions: Sequence[Question], deadline: Deadline, late: Answer, workers: int = 6
) -> list[Answer]:
    """The answers in the questions' order; `late` for those that had none when the deadline passed.

    `ask` must return failures; what it raises is a defect, and raised here as well. The threads are daemons: one that
    hangs in a name lookup, which nothing can interrupt, must not keep the program from ending, as a thread pool would.
    """
    broken: list[BaseException] = []
    answers = dict.fromkeys(range(len(questions)), late)
    waiting: SimpleQueue[int] = SimpleQueue()
    for index in answers:
        waiting.put(index)
    given_up = threading.Event()

    def work() -> None:
        while not given_up.is_set():
            try:
                index = waiting.get_nowait()
            except Empty:
                return
            try:
                answer = ask(questions[index])
            except BaseException as error:  # noqa: BLE001  # whatever it is: nobody hears what a thread raises
                broken.append(error)
                return
            if not given_up.is_set():
                answers[index] = answer

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(questions)))]
    for thread in threads:
        thread.start()
    # A request that notices the deadline itself has a little more time to hand over its own words.
    patience = Deadline(deadline.ends_s + GRACE_S)
    for thread in threads:
        thread.join(patience.left_s)
    given_up.set()
    if broken:
        # Else the question would seem to be late, and its source to be slow.
        raise broken[0]
    return [answers[index] for index in range(len(questions))]
