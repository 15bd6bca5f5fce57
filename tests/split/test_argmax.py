from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.split.argmax import leaves_for, new_tree, tree_best, tree_fill, tree_get, tree_set

ARMS = st.integers(1, 20)
COARSE = st.integers(-200, 200).map(lambda i: i / 64)  # held without rounding, and often equal
FINE = st.floats(-3.999, 3.999)


def filled(rows: int, arms: int, value: float) -> np.ndarray:
    tree = new_tree(rows, arms)
    for row in range(rows):
        tree_fill(tree, row, arms, value)
    return tree


@given(ARMS, COARSE, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 19), COARSE), max_size=40))
def test_the_best_arm_of_each_row_is_known_after_every_change(
    arms: int, start: float, changes: list[tuple[int, int, float]]
) -> None:
    tree, plain = filled(3, arms, start), np.full((3, arms), start)
    for row, arm, value in changes:
        tree_set(tree, row, arm % arms, value)
        plain[row, arm % arms] = value
        assert [tree_best(tree, each) for each in range(3)] == np.argmax(plain, axis=1).tolist()  # the first of equals
    assert [[tree_get(tree, row, arm) for arm in range(arms)] for row in range(3)] == plain.tolist()


@given(ARMS, st.lists(st.tuples(st.integers(0, 19), FINE), min_size=1, max_size=40))
def test_values_are_held_to_a_billionth(arms: int, changes: list[tuple[int, float]]) -> None:
    tree, plain = filled(1, arms, -2.0), np.full(arms, -2.0)
    for arm, value in changes:
        tree_set(tree, 0, arm % arms, value)
        plain[arm % arms] = value
        held = [tree_get(tree, 0, each) for each in range(arms)]
        assert np.abs(np.array(held) - plain).max() < 1e-9
        assert tree_best(tree, 0) == np.argmax(held)
        assert plain[tree_best(tree, 0)] > plain.max() - 1e-9


def test_filling_a_row_leaves_the_others_alone() -> None:
    tree = filled(3, 5, 0.5)
    tree_set(tree, 0, 3, 0.75)
    tree_set(tree, 2, 4, 0.75)
    tree_fill(tree, 1, 5, -1.0)
    assert [tree_best(tree, row) for row in range(3)] == [3, 0, 4]
    tree_fill(tree, 0, 5, -2.0)
    assert [tree_get(tree, 0, arm) for arm in range(5)] == [-2.0] * 5
    assert tree_best(tree, 0) == 0


@pytest.mark.parametrize(("arms", "leaves"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (65_536, 65_536)])
def test_leaves_are_a_power_of_two(arms: int, leaves: int) -> None:
    assert leaves_for(arms) == leaves
    tree = filled(1, arms, -3.0)
    tree_set(tree, 0, arms - 1, -2.5)
    assert tree_best(tree, 0) == arms - 1
