"""When curves of imbalance count as converged, and how they are compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.dalton.figure_15 import SETTLED, Curve, Curves, common_target, over, why_more

TIME = np.arange(20.0, 601.0, 20.0)


def _curve(excess: float, first: float = 5.0, learned: float = 100.0) -> Curve:
    """Down from a first level to a last one at some time."""
    return Curve(TIME, np.where(learned <= TIME, excess, first), np.ones(len(TIME)))


def test_who_never_learns_does_not_converge() -> None:
    target = common_target([_curve(0.02), _curve(0.1)])
    assert target == pytest.approx(0.13)
    assert _curve(0.02).reached(target) == 100.0
    assert _curve(0.1, learned=260.0).reached(target) == 260.0
    assert math.isinf(_curve(2.0, first=2.0).reached(target))


def test_imbalance_is_compared_by_what_is_above_the_average() -> None:
    assert SETTLED < 600.0
    assert over(_curve(0.08), _curve(0.026)) == pytest.approx(2.5)  # 1.053, if the average were in both


def test_several_seeds_are_compared_by_their_means_and_have_an_error() -> None:
    several = Curves((_curve(0.1, learned=100.0), _curve(0.2, learned=200.0)))
    assert several.levels == pytest.approx((0.15, 0.05))
    assert over(several, _curve(0.07)) == pytest.approx(2.0)
    assert several.reached(0.25) == 150.0
    assert math.isinf(several.reached(0.15))
    assert several.mean.level == pytest.approx(several.level)
    assert several.row(0.25)[0] == pytest.approx((1.15, 0.05))


def test_an_imbalance_that_still_rises_has_not_converged() -> None:
    rising = Curve(TIME, np.where(TIME > 450, 0.3, 0.1), np.ones(len(TIME)))
    assert Curves((rising,)).drift == pytest.approx(0.31 / 0.11)
    assert Curves((_curve(0.1),)).drift == pytest.approx(1.0)


@pytest.mark.parametrize(("valueless", "said"), [(0.4, "do not make it worse"), (0.05, "it is lower with 2, 4 and 8")])
def test_what_common_values_do_is_said_from_the_runs(valueless: float, said: str) -> None:
    ours, single = ({each: Curves((_curve(level),)) for each in (2, 4, 8)} for level in (0.1, valueless))
    silent = {each: _curve(0.1) for each in (2, 4, 8)}
    assert said in why_more(ours, single, silent, ours, ours)


def test_noise_of_nearly_perfect_balance_does_not_decide() -> None:
    assert over(_curve(0.0006), _curve(0.0002)) < 1.1
