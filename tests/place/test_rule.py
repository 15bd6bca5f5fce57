"""The rule: which imbalance counts, and what a move costs; against sums over keys in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place import Placement, Resources, Rule

POWERS = {"C": 0, "L": 1, "Q": 2}
SLOTS, WORKERS = 4, 3
OWNERS = st.lists(st.integers(0, WORKERS - 1), min_size=SLOTS, max_size=SLOTS)
ROWS = st.dictionaries(st.integers(0, 40), st.integers(1, 100), min_size=1, max_size=8)


def counted(rows: dict[int, int], tail: list[int]) -> Counts:
    """Hot keys, and tail slots with a single other key each."""
    total = sum(rows.values()) + sum(tail)
    return Counts(
        np.array(list(rows)), np.array(list(rows.values())), total, np.array(tail), distinct=len(rows) + SLOTS
    )  # fmt: skip


@given(ROWS, st.lists(st.integers(0, 50), min_size=SLOTS, max_size=SLOTS), OWNERS, OWNERS, st.sampled_from("LQ"))
def test_loads_and_moves_are_sums_over_keys(
    rows: dict[int, int], tail: list[int], here: list[int], there: list[int], letter: str
) -> None:
    seen, rule = counted(rows, tail), Rule(resources=f"C{letter}C")
    before, after = Placement.of(WORKERS, here), Placement.of(WORKERS, there)
    weights = [(key % SLOTS, count ** POWERS[letter]) for key, count in rows.items()]
    weights += [(slot, count ** POWERS[letter]) for slot, count in enumerate(tail)]
    total = sum(weight for _, weight in weights)
    loads = [sum(weight for slot, weight in weights if here[slot] == worker) / total for worker in range(WORKERS)]
    assert rule.loads(before, seen, WORKERS)[0] == pytest.approx(loads)
    moved = sum(weight for slot, weight in weights if here[slot] != there[slot]) / total
    assert rule.moved(before, after, seen, letter) == pytest.approx(moved)
    assert rule.asks(rule.loads(before, seen, WORKERS)) == (max(loads) * WORKERS > 1.2)


def test_each_resource_has_an_alpha_of_its_own() -> None:
    # One key of 40 rows against forty of one: even in rows, and far from it in their squares.
    seen = Counts(np.array([0]), np.array([40]), 80, np.array([0, 40]), distinct=81)
    placement = Placement.of(2, [0, 1])
    rows, both = Rule(resources="LCL"), Rule(resources="LQL")
    assert not rows.asks(rows.loads(placement, seen, 2))
    assert both.asks(both.loads(placement, seen, 2))
    lax = Rule(resources="LQL", alpha=(1.2, 3.0, 1.2))
    assert not lax.asks(lax.loads(placement, seen, 2))
    strict = Rule(resources="LCL", alpha=(0.9, 9.0, 9.0))
    assert strict.asks(strict.loads(placement, seen, 2))


def test_a_move_costs_rows_and_bytes() -> None:
    before, after = np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])  # 25 rows of 100 come down, 25 move
    free = Rule(horizon=2, cost=1.0, byte_cost=0.0)
    assert free.pays(before, after, 0.25, rows=100, moved_bytes=1e9)
    priced = Rule(horizon=2, cost=1.0, byte_cost=0.01)
    assert priced.pays(before, after, 0.25, rows=100, moved_bytes=2400)
    assert not priced.pays(before, after, 0.25, rows=100, moved_bytes=2600)  # 26 rows, and 25 are left to pay with
    assert not Rule(horizon=1, cost=1.0).pays(before, after, 0.25, rows=100)
    assert Rule(horizon=1, cost=0.9).pays(before, after, 0.25, rows=100)


def test_the_gains_of_resources_are_averaged() -> None:
    rule = Rule(resources="CQL", horizon=1, cost=1.0)
    before = np.array([[0.75, 0.25], [0.9, 0.1]])  # L, Q: 0.25 and 0.4 above the average
    after = np.array([[0.5, 0.5], [0.6, 0.4]])  # nothing and 0.1
    assert rule.pays(before, after, 0.27, rows=100)
    assert not rule.pays(before, after, 0.28, rows=100)  # (0.25 + 0.3) / 2


def test_state_of_a_fixed_size_goes_by_keys() -> None:
    seen = Counts(np.array([0]), np.array([70]), 100, np.array([10, 20]), distinct=3)
    before, after = Placement.of(2, [0, 1], {0: 0}), Placement.of(2, [0, 1], {0: 1})
    rule = Rule(resources="CCL")
    assert rule.moved(before, after, seen) == pytest.approx(0.7)
    assert rule.moved(before, after, seen, rule.state) == pytest.approx(1 / 3)


def test_without_rows_nothing_is_out_of_balance() -> None:
    rule, placement = Rule(), Placement.of(2, [0, 0])
    assert not rule.asks(rule.loads(placement, Counts.none(), 2))
    assert rule.moved(placement, Placement.of(2, [1, 1]), Counts.none()) == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alpha": 0}, "alpha is 0; give one number above 0"),
        ({"alpha": (1.2, 1.3)}, "give one number above 0, or one each for state, computation, communication"),
        ({"alpha": True}, "alpha is True; give one number above 0"),
        ({"horizon": False}, "horizon is False; give at least 0"),
        ({"alpha": "x"}, "alpha is 'x'; give one number above 0"),
        ({"alpha": [1, 2, 3]}, r"alpha is \[1, 2, 3\]; .* in a tuple"),
        ({"alpha": (1.2, float("nan"), 1.2)}, "alpha is .*nan.*; give one number above 0"),
        ({"byte_cost": -1}, "byte_cost is -1; give at least 0"),
        ({"byte_cost": float("nan")}, "byte_cost is nan; give at least 0"),
        ({"horizon": -1}, "horizon is -1; give at least 0"),
        ({"horizon": float("nan")}, "horizon is nan; give at least 0"),
        ({"cost": -5}, "cost is -5; give at least 0"),
        ({"cost": float("inf")}, r"cost is inf; give at least 0, and alpha=float\('inf'\) if state is never to move"),
        ({"rest": -1}, "rest is -1; give at least 0"),
        ({"memory": 1.5}, "memory is 1.5; give a number from 0 to below 1"),
        ({"resources": None}, "resources are None; give a letter each for"),
        ({"resources": "CCC"}, "balance by themselves"),
        ({"resources": "XYZ"}, "resources are 'XYZ'"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(SkewlessError, match=says):
        Rule(**options)  # type: ignore[arg-type]  # a dictionary of what is refused


def test_letters_are_resources() -> None:
    assert Rule(resources="LQL") == Rule(resources=Resources("LQL"))
