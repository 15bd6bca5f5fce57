from __future__ import annotations

from math import log, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.place.penalty import NOBODY, RANKS, UTILITIES, Balance, rank, rho, rho_now, utility


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]], int, int, int]:
    """Loads on each resource, weights of two items, who gives, who takes, and whether it is a swap."""
    resources, channels = draw(st.integers(1, 3)), draw(st.integers(2, 6))
    row = st.lists(st.floats(0, 1), min_size=channels, max_size=channels)
    loads = draw(st.lists(row, min_size=resources, max_size=resources))
    pair = st.lists(st.floats(0.01, 1), min_size=2, max_size=2)
    weights = draw(st.lists(pair, min_size=resources, max_size=resources))
    taker = draw(st.integers(0, channels - 1))
    giver = draw(st.integers(-1, channels - 1).filter(lambda channel: channel != taker))
    other = draw(st.sampled_from([NOBODY, 1])) if giver != NOBODY else NOBODY
    return loads, weights, giver, taker, other


@pytest.mark.slow
@given(changes())
def test_the_penalty_of_a_change_is_that_of_the_changed_loads(
    change: tuple[list[list[float]], list[list[float]], int, int, int],
) -> None:
    loads, weights = np.array(change[0]), np.array(change[1])
    giver, taker, other = change[2:]
    resources = len(loads)
    highest, lowest = np.empty((resources, RANKS), np.int64), np.empty((resources, RANKS), np.int64)
    allowed, exponents = np.linspace(0.5, 1.5, resources), np.full(resources, 1 / resources)
    balance = Balance(loads, weights, exponents, allowed, np.empty(resources), highest, lowest)
    rank(balance)
    found = rho(balance, giver, taker, 0, other)

    after = loads.copy()
    moved = weights[:, 0] - (weights[:, 1] if other != NOBODY else 0)
    after[:, taker] += moved
    if giver != NOBODY:
        after[:, giver] -= moved
    expected = np.prod((after.max(axis=1) - after.min(axis=1)) / allowed) ** (1 / resources)
    assert found == pytest.approx(expected, abs=1e-6)

    balance = balance._replace(loads=after)
    rank(balance)
    assert rho_now(balance) == pytest.approx(expected, abs=1e-6)


@given(st.floats(0, 10), st.floats(0, 10))
def test_utilities_are_those_of_the_equations(balance: float, migration: float) -> None:
    expected = {
        "A": balance,
        "APM": balance + migration,
        "APLM": balance + log1p(migration),
        "ATM": balance * (1 + migration),
        "ATLM": balance * (1 + log1p(migration)),
    }
    found = {name: utility(code, balance, migration) for code, name in enumerate(UTILITIES)}
    assert found == pytest.approx(expected)


def test_utilities_weigh_balance_and_migration() -> None:
    values = {name: utility(UTILITIES.index(name), 3.0, 0.5) for name in ("A", "APM", "APLM", "ATM", "ATLM")}
    expected = {"A": 3.0, "APM": 3.5, "APLM": 3 + log(1.5), "ATM": 4.5, "ATLM": 3 * (1 + log(1.5))}
    assert values == pytest.approx(expected)
