"""The loss of a rebuilt model and its bound, against figures worked out by hand and simulated ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from latencydoctor.stack.quantise.accuracy import Z_ONE_SIDED_95, Loss, compare, refusal, upper_bound


def test_only_questions_that_the_models_disagree_on_count() -> None:
    before = np.array([True, True, True, False, False])
    after = np.array([True, False, False, True, False])
    assert compare(before, after) == Loss(questions=5, right_before=3, lost=2, won=1)


def test_a_loss_tells_shares_before_and_after() -> None:
    loss = Loss(questions=1000, right_before=900, lost=20, won=5)
    assert loss.drop_ratio == pytest.approx(0.015)
    assert loss.top1_before_ratio == pytest.approx(0.9)
    assert loss.top1_after_ratio == pytest.approx(0.885)


@pytest.mark.parametrize("questions", [100, 1000, 5000])
def test_agreement_on_everything_is_no_proof_of_no_loss(questions: int) -> None:
    """Without a disagreement the bound has a closed form: z squared over n plus z squared."""
    z2 = Z_ONE_SIDED_95**2
    assert upper_bound(0, 0, questions) == pytest.approx(z2 / (questions + z2), rel=1e-3)


def test_bound_grows_with_what_is_lost_and_falls_with_what_is_won() -> None:
    bounds = [upper_bound(lost, 3, 1000) for lost in range(12)]
    assert bounds == sorted(bounds)
    assert upper_bound(5, 8, 1000) < upper_bound(5, 3, 1000)
    assert upper_bound(5, 3, 1000) > 2 / 1000


def test_bound_comes_close_to_the_usual_one_where_there_is_much_to_count() -> None:
    lost, won, questions = 400, 300, 10_000
    spread = math.sqrt(lost + won - (lost - won) ** 2 / questions) / questions
    usual = (lost - won) / questions + Z_ONE_SIDED_95 * spread
    assert upper_bound(lost, won, questions) == pytest.approx(usual, rel=0.02)


def test_bound_covers_the_truth_19_times_of_20() -> None:
    """Simulated: a true drop of 1 % must be called below 1 % in one of twenty tries at most, give or take."""
    chance = np.random.default_rng(7)
    questions, tries, fooled = 1228, 2000, 0
    for _ in range(tries):
        lost, won, _ = chance.multinomial(questions, [0.014, 0.004, 0.982])
        fooled += upper_bound(int(lost), int(won), questions) < 0.01
    assert fooled / tries < 0.065


@pytest.mark.parametrize(
    ("loss", "refused"),
    [
        (Loss(1228, 1110, 9, 5), False),
        (Loss(1228, 1110, 11, 4), True),  # a drop of 0.57 %, which may be 1.1 %
        (Loss(1228, 1110, 34, 0), True),
        (Loss(999, 900, 0, 0), True),  # too few questions
        (Loss(1000, 900, 0, 0), False),
    ],
)
def test_what_may_be_one_percent_worse_is_refused(loss: Loss, refused: bool) -> None:
    assert bool(refusal(loss)) is refused


def test_the_limit_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Loss(1228, 1110, 9, 5)
    monkeypatch.setattr("latencydoctor.stack.quantise.accuracy.MAX_DROP_RATIO", loss.drop_upper_ratio)
    assert "refused" in refusal(loss)
