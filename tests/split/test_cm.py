from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.hashing import SEED, xxhash64
from skewless.split import CM


def candidates_of(key: int, workers: int, d: int) -> list[int]:
    return [int(xxhash64(np.array([key]), seed=SEED + j)[0]) % workers for j in range(d)]


def shifting(seed: int) -> list[int]:
    """A skewed stream long enough for slides to leave, whose hot keys change half way."""
    return [int(key) % 40 + 3 * (i > 80) for i, key in enumerate(np.random.default_rng(seed).zipf(1.4, 160))]


def cardinalities(window: deque[set[tuple[int, int]]], workers: int) -> list[int]:
    pairs = set().union(*window)
    return [sum(worker == w for _, worker in pairs) for w in range(workers)]


def reference(keys: list[int], workers: int, slide: int, slides: int, d: int) -> tuple[list[int], list[int]]:
    """Where each tuple goes, and the distinct keys of each worker in the last window."""
    window: deque[set[tuple[int, int]]] = deque([set()], maxlen=slides)
    out = []
    for i, key in enumerate(keys):
        if i and i % slide == 0:
            window.append(set())
        distinct = cardinalities(window, workers)
        worker = min(candidates_of(key, workers, d), key=lambda w: distinct[w])
        window[-1].add((key, worker))
        out.append(worker)
    return out, cardinalities(window, workers)


@given(
    st.one_of(st.lists(st.integers(-6, 6), max_size=60), st.integers(0, 10**6).map(shifting)),
    st.integers(1, 9),
    st.integers(1, 25),
    st.integers(1, 4),
    st.integers(1, 5),
)
@settings(max_examples=60)
def test_the_candidate_with_the_fewest_distinct_keys(
    keys: list[int], workers: int, slide: int, slides: int, d: int
) -> None:
    splitter = CM(workers, slide=slide, slides=slides, candidates=d)
    routed, distinct = reference(keys, workers, slide, slides, d)
    assert splitter.route(np.array(keys, dtype=np.int64)).tolist() == routed
    assert splitter.cardinalities.tolist() == distinct


def test_with_a_tiny_table_keys_that_left_the_window_make_room() -> None:
    splitter = CM(5, slide=40, slides=2)
    splitter.seen = splitter.seen._replace(table=splitter.seen.table[:4].copy())
    keys = np.random.default_rng(4).integers(0, 10**6, 1_000).tolist()
    routed, distinct = reference(keys, 5, 40, 2, 2)
    assert splitter.route(np.array(keys)).tolist() == routed
    assert splitter.cardinalities.tolist() == distinct
    assert len(splitter.seen.table) <= 512


def test_a_key_that_left_the_window_no_longer_counts() -> None:
    splitter = CM(4, slide=3, slides=2)
    splitter.route(np.array([1, 2, 3]))
    assert splitter.cardinalities.sum() == 3
    splitter.route(np.array([1, 4, 5]))
    before = splitter.cardinalities.sum()
    assert before >= 5
    # Ends the second slide: 2 and 3 have left, 4 and 5 and at least one copy of 1 are still there.
    splitter.route(np.array([4]))
    assert splitter.cardinalities.sum() < before
    splitter.route(np.repeat(np.array([9]), 20))
    assert splitter.cardinalities.sum() <= 2  # both candidates of 9 and nothing else


def test_a_repeated_key_counts_once_on_a_worker() -> None:
    key = next(key for key in range(100) if len(set(candidates_of(key, 8, 2))) == 2)
    splitter = CM(8, slide=100)
    splitter.route(np.full(50, key))
    assert sorted(splitter.cardinalities.tolist())[-2:] in ([0, 1], [1, 1])
    assert splitter.cardinalities.sum() <= 2


def test_keys_are_balanced_even_where_tuples_are_not() -> None:
    splitter = CM(8, slide=20_000)
    splitter.route(np.random.default_rng(1).zipf(1.3, 20_000))
    assert splitter.cardinalities.max() / splitter.cardinalities.mean() < 1.1


@pytest.mark.parametrize("slide", [1, 5, 40])
def test_a_window_after_a_plan_holds_no_more_than_its_slides(slide: int) -> None:
    splitter = CM(4, slide=slide, slides=2)
    splitter.plan(Counts.of(np.arange(30)))
    assert splitter.cardinalities.sum() == 30
    splitter.route(np.arange(100, 100 + 10 * slide))
    assert splitter.cardinalities.sum() == 2 * slide


def test_a_plan_starts_from_nothing() -> None:
    seen = Counts.of(np.random.default_rng(1).zipf(1.3, 5_000))
    used, fresh = CM(6, slide=100), CM(6, slide=100)
    used.route(np.arange(1_234))
    assert used.plan(seen) == fresh.plan(seen)
