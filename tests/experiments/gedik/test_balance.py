from __future__ import annotations

from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.gedik import balance
from skewless.core.arrays import FloatArray, Int32Array
from skewless.core.errors import SkewlessError
from skewless.place import Resources, Tolerance

# Figure 1: X Z V R U Y W L, and where they are.
TOY = np.array([5.0, 3, 2, 1, 4, 3, 3, 1])
FOR_ROWS = ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 2, 2, 1, 2, 1, 2])
FOR_COST = ([0, 0, 1, 0, 1, 1, 1, 0], [0, 2, 2, 2, 1, 2, 1, 2])
FOR_BOTH = ([0, 0, 1, 0, 1, 1, 1, 0], [0, 2, 2, 0, 1, 2, 1, 0])

Items = list[tuple[float, int, int]]
ITEMS = st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12)
LETTERS = st.text("CLQ", min_size=3, max_size=3)
POWER = {"C": 0, "L": 1, "Q": 2}


def arrays(items: Items) -> tuple[FloatArray, Int32Array, Int32Array]:
    frequencies, before, after = zip(*items, strict=True)
    return np.array(frequencies), np.array(before, np.int32), np.array(after, np.int32)


@pytest.mark.parametrize(
    ("setup", "rows", "cost", "moved"),
    [
        (FOR_ROWS, ("1.00", "1.14"), ("1.11", "2.27"), 7),  # the paper cuts 2.267 to 2.26, 1.11 to 1.1
        (FOR_COST, ("1.20", "2.00"), ("1.06", "1.04"), 10),
        (FOR_BOTH, ("1.20", "1.14"), ("1.06", "1.23"), 8),
    ],
)
def test_the_toy_scenario_has_the_balance_of_the_figure(
    setup: tuple[list[int], list[int]], rows: tuple[str, str], cost: tuple[str, str], moved: float
) -> None:
    before, after = (np.array(each, np.int32) for each in setup)
    for where, channels, row, quadratic in ((before, 2, rows[0], cost[0]), (after, 3, rows[1], cost[1])):
        assert f"{balance.ratio(balance.loads('L', TOY, where, channels)):.2f}" == row
        assert f"{balance.ratio(balance.loads('Q', TOY, where, channels)):.2f}" == quadratic
    assert balance.migrated(TOY, before, after) == moved


@given(ITEMS, LETTERS, st.floats(1.01, 4))
def test_the_equations_are_those_of_the_paper(items: Items, letters: str, alpha: float) -> None:
    f, before, after = arrays(items)
    resources, tolerance = Resources(letters), Tolerance.of(alpha)
    b = []
    for letter in letters:
        load = [sum(x ** POWER[letter] for x, _, now in items if now == i) for i in range(4)]
        assert np.allclose(balance.loads(letter, f, after, 4), load)
        b.append((max(load) / min(load) if min(load) > 0 else float("inf")) / alpha)
    assert np.allclose(balance.imbalances(resources, tolerance, f, after, 4), b)
    expected = (b[0] * b[1] * b[2]) ** (1 / 3)
    assert np.isclose(balance.relative_imbalance(resources, tolerance, f, after, 4), expected)

    state = [x ** POWER[letters[0]] for x, _, _ in items]
    moved = sum(s for s, (_, was, now) in zip(state, items, strict=True) if was != now)
    assert isclose(balance.migrated(np.array(state), before, after), moved, abs_tol=1e-12)
    assert isclose(balance.relative_migration(resources, f, before, after, 4), moved / (sum(state) / 4), abs_tol=1e-12)


@given(ITEMS, LETTERS, st.floats(1.01, 4))
def test_the_balance_penalty_is_the_mean_over_resources_that_vary(items: Items, letters: str, alpha: float) -> None:
    f, _, where = arrays(items)
    parts = []
    for letter in letters.replace("C", ""):
        load = [sum(x ** POWER[letter] for x, _, now in items if now == i) for i in range(4)]
        parts.append((max(load) - min(load)) / ((alpha - 1) / (1 + alpha / 3) * sum(load) / 4))
    expected = np.prod(parts) ** (1 / len(parts)) if parts else 0.0
    assert np.isclose(balance.balance_penalty(Resources(letters), Tolerance.of(alpha), f, where, 4), expected)


@given(ITEMS, ITEMS, st.floats(0, 1))
def test_the_migration_penalty_counts_dropped_items(items: Items, dropped: Items, unplaced: float) -> None:
    moved = sum(x for x, was, now in items + dropped if was != now)
    ideal = (sum(x for x, _, _ in items + dropped) + unplaced) / 4
    state, before, after = arrays(items)
    found = balance.migration_penalty(state, before, after, 4, *arrays(dropped), unplaced)
    assert isclose(found, moved / ideal, abs_tol=1e-12)


def test_an_idle_channel_is_infinitely_imbalanced() -> None:
    assert balance.ratio(np.array([1.0, 0.0])) == float("inf")


def test_items_beyond_the_channels_are_refused() -> None:
    with pytest.raises(SkewlessError, match="channels run from 0 to 1, but items lie on 0 to 2"):
        balance.loads("L", np.array([0.5, 0.5]), np.array([0, 2], np.int32), 2)
