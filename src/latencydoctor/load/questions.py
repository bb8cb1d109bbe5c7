"""Who asks what: a small popular head that a cache can answer, and a long tail in which no question repeats."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from latencydoctor.errors import UsageError
from latencydoctor.model.load import Mix


@dataclass(frozen=True, slots=True)
class Ask:
    """One request's content, as the service's `POST /v1/answer` takes it."""

    question: str
    session: str
    priority: str


def with_order(question: str, number: int) -> str:
    """The question as one customer asks it. The service masks digits before it tokenises, so the answer stays the same,
    but it keeps them in the cache's key: such a question is never a hit.
    """
    return f"{question} (order {number})"


def first_order_number(now_s: float) -> int:
    """Where a run starts its order numbers: the clock in milliseconds.

    Fewer than a thousand requests a second are sent, so a later run starts above every number an earlier one used and
    does not find that run's answers in the cache.
    """
    return int(now_s * 1000)


class Asker:
    """An endless, seeded stream of asks.

    `mix.hot_share_ratio` of them take one of the `hot_count` most popular questions as it stands; the others take any
    question with an order number of its own. Popularity falls with rank to the power of `zipf_exponent`.
    """

    def __init__(self, questions: Sequence[str], mix: Mix, seed: int, first_order: int) -> None:
        self._draw = random.Random(f"{seed}:questions")
        self._texts = sorted({question.strip() for question in questions} - {""})
        if not self._texts:
            raise UsageError("there are no questions to ask", hint="Give the load at least one question.")
        # The given order goes by topic: shuffled, the popular questions come from many.
        self._draw.shuffle(self._texts)
        weights = [1 / rank**mix.zipf_exponent for rank in range(1, len(self._texts) + 1)]
        self._totals = list(accumulate(weights))
        self._hot = self._texts[: mix.hot_count]
        self._hot_totals = self._totals[: mix.hot_count]
        self._mix = mix
        self._order = first_order

    @property
    def hot(self) -> tuple[str, ...]:
        """The popular questions, most popular first."""
        return tuple(self._hot)

    def ask(self) -> Ask:
        """The next one."""
        draw = self._draw
        if draw.random() < self._mix.hot_share_ratio:
            question = draw.choices(self._hot, cum_weights=self._hot_totals)[0]
        else:
            question = with_order(draw.choices(self._texts, cum_weights=self._totals)[0], self._order)
            self._order += 1
        priority = "vip" if draw.random() < self._mix.vip_share_ratio else "standard"
        return Ask(question, f"session-{draw.randrange(self._mix.session_count):05d}", priority)
