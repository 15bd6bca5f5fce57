"""When curves of imbalance count as converged, and how they are compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.dalton.figure_15 import SETTLED, Curve, common_target, over

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


def test_noise_of_nearly_perfect_balance_does_not_decide() -> None:
    assert over(_curve(0.0006), _curve(0.0002)) < 1.1
