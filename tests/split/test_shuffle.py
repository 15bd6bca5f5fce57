from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.split import Shuffle


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 7))
def test_tuples_are_dealt_in_turn_from_call_to_call(lengths: list[int], workers: int) -> None:
    splitter = Shuffle(workers)
    dealt = [worker for n in lengths for worker in splitter.route(np.full(n, 7, dtype=np.int64)).tolist()]
    assert dealt == [i % workers for i in range(sum(lengths))]


def test_a_plan_sends_every_tuple_anywhere() -> None:
    policy = Shuffle(5).plan(Counts(np.array([5]), np.array([900]), total=1_000))
    assert (policy.tail, len(policy)) == ("shuffle", 0)
    counts = np.bincount(policy.route(np.full(10_000, 5)), minlength=5)
    assert np.abs(counts / 10_000 - 0.2).max() < 0.02


def test_a_plan_does_not_disturb_the_dealing() -> None:
    splitter = Shuffle(3)
    splitter.route(np.zeros(4, dtype=np.int64))
    splitter.plan(Counts.of(np.zeros(4, dtype=np.int64)))
    assert splitter.route(np.zeros(3, dtype=np.int64)).tolist() == [1, 2, 0]
