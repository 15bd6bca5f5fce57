"""Fading counts against exact ones: the bounds that the docstring derives."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.place import FadingCounts

Batch = dict[int, int]
BATCHES = st.lists(st.dictionaries(st.integers(0, 30), st.integers(1, 100), max_size=12), min_size=1, max_size=25)


def told(recent: FadingCounts, rows: Batch, slots: int = 4) -> None:
    keys = np.array(list(rows), np.int64)
    recent.add(keys, np.array(list(rows.values()), np.int64), sum(rows.values()), np.zeros(slots, np.int64))


@given(BATCHES, st.sampled_from([0.0, 0.25, 0.9, 0.99]), st.sampled_from([0.01, 0.1, 0.3]))
def test_a_count_is_too_low_by_at_most_epsilon_of_the_rows(batches: list[Batch], memory: float, epsilon: float) -> None:
    recent, exact, total = FadingCounts(4, memory, epsilon), dict[int, float](), 0.0
    for rows in batches:
        told(recent, rows)
        total = memory * total + sum(rows.values())
        exact = {key: memory * exact.get(key, 0.0) + rows.get(key, 0) for key in exact.keys() | rows.keys()}
        seen = recent.counts()
        found = dict(zip(seen.keys.tolist(), seen.counts.tolist(), strict=True))
        for key, count in exact.items():
            assert found.get(key, 0.0) <= count * (1 + 1e-9)
            assert found.get(key, 0.0) >= count - epsilon * total - 1e-9
            assert key in found or count < epsilon * total + 1e-9
        assert seen.tail is not None
        assert seen.counts.sum() + seen.tail.sum() == pytest.approx(total)  # what is dropped goes to the slots
        newest = sum(rows.values())
        if newest:
            assert len(found) <= (1 + log(total / newest)) / epsilon + 1e-9


@pytest.mark.parametrize("memory", [0.0, 0.25, 0.9, 0.99])
def test_a_steady_key_is_found_at_once_however_long_the_memory(memory: float) -> None:
    recent = FadingCounts(4, memory, epsilon=1e-4)
    for _ in range(600):
        told(recent, {1: 500_000, 2: 500_000})
    steady = {1: 500_000, 2: 491_000, 3: 9000}  # 0.9 % of every micro-batch from now on
    told(recent, steady)
    assert 3 in recent.counts().keys
    for _ in range(600):
        told(recent, steady)
    seen = recent.counts()
    assert seen.shares[seen.keys == 3] == pytest.approx(0.009, rel=0.01)


def test_new_keys_that_do_not_stay_make_room_for_others() -> None:
    # Every micro-batch has new keys, each as rare as a key may be to be kept in it.
    memory, epsilon, fresh = 0.9, 0.01, 100
    recent = FadingCounts(4, memory, epsilon)
    for batch in range(200):
        told(recent, dict.fromkeys(range(batch * fresh, (batch + 1) * fresh), 10))
        assert len(recent.counts().keys) <= (1 + log(1 / (1 - memory))) / epsilon
    assert len(recent.counts().keys) == fresh  # those of the newest alone


def test_a_memory_that_never_fades_is_refused() -> None:
    with pytest.raises(SkewlessError, match="memory is 1; give a number from 0 to below 1"):
        FadingCounts(4, memory=1)
