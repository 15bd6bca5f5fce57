from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, xxhash64
from skewless.split import CAM


def candidates_of(key: int, workers: int, d: int) -> list[int]:
    return [int(xxhash64(np.array([key]), seed=SEED + j)[0]) % workers for j in range(d)]


def shifting(seed: int) -> list[int]:
    """A skewed stream long enough for slides to leave, whose hot keys change half way."""
    return [int(key) % 40 + 3 * (i > 80) for i, key in enumerate(np.random.default_rng(seed).zipf(1.4, 160))]


def reference(keys: list[int], workers: int, slide: int, slides: int, d: int) -> tuple[list[int], list[int]]:
    """Where each tuple goes, and the loads of the last window."""
    window: deque[list[tuple[int, int]]] = deque([[]], maxlen=slides)
    out = []
    for i, key in enumerate(keys):
        if i and i % slide == 0:
            window.append([])
        sent = [pair for each in window for pair in each]
        loads = [sum(worker == w for _, worker in sent) for w in range(workers)]
        among = candidates_of(key, workers, d)
        seen = [worker for worker in among if (key, worker) in sent]
        worker = seen[0] if seen else min(among, key=lambda w: loads[w])
        window[-1].append((key, worker))
        out.append(worker)
    return out, [sum(worker == w for each in window for _, worker in each) for w in range(workers)]


def key_with_two_workers(workers: int) -> int:
    return next(key for key in range(100) if len(set(candidates_of(key, workers, 2))) == 2)


@given(
    st.one_of(st.lists(st.integers(-6, 6), max_size=60), st.integers(0, 10**6).map(shifting)),
    st.integers(1, 9),
    st.integers(1, 25),
    st.integers(1, 4),
    st.integers(1, 5),
)
@settings(max_examples=60)
def test_the_first_candidate_that_has_the_key_else_the_least_loaded(
    keys: list[int], workers: int, slide: int, slides: int, d: int
) -> None:
    splitter = CAM(workers, slide=slide, slides=slides, candidates=d)
    routed, loads = reference(keys, workers, slide, slides, d)
    assert splitter.route(np.array(keys, dtype=np.int64)).tolist() == routed
    assert splitter.loads.tolist() == loads


def test_with_a_tiny_table_keys_that_left_the_window_make_room() -> None:
    splitter = CAM(5, slide=40, slides=2)
    splitter.seen = splitter.seen._replace(table=splitter.seen.table[:4].copy())
    keys = np.random.default_rng(4).integers(0, 10**6, 1_000).tolist()
    assert splitter.route(np.array(keys)).tolist() == reference(keys, 5, 40, 2, 2)[0]
    # At most 80 keys are in the window and a slide may be waiting to leave: nothing near 1,000 is kept.
    assert len(splitter.seen.table) <= 512


def test_no_key_is_split_within_the_window() -> None:
    keys = np.random.default_rng(1).zipf(1.5, 5_000)
    routed = CAM(8, slide=5_000).route(keys)
    assert len(set(zip(keys.tolist(), routed.tolist(), strict=True))) == len(set(keys.tolist()))


def test_a_key_seen_in_an_expired_slide_is_as_new() -> None:
    key = key_with_two_workers(8)
    home, other = candidates_of(key, 8, 2)
    # Other keys that can go nowhere but home: they keep it loaded while the key is away.
    ballast = next(k for k in range(100, 10_000) if set(candidates_of(k, 8, 2)) == {home})
    splitter = CAM(8, slide=2, slides=2)
    assert splitter.route(np.array([key, key])).tolist() == [home, home]
    assert splitter.route(np.array([ballast, key])).tolist() == [home, home]  # seen in the slide before
    assert splitter.route(np.array([ballast, ballast])).tolist() == [home, home]
    assert splitter.route(np.array([ballast, ballast])).tolist() == [home, home]
    assert splitter.route(np.array([key])).tolist() == [other]


def test_loads_of_expired_slides_are_taken_back() -> None:
    splitter = CAM(4, slide=5, slides=3)
    splitter.route(np.arange(1_000))
    assert splitter.loads.sum() == 15


@pytest.mark.parametrize("slide", [1, 5, 40])
def test_a_window_after_a_plan_holds_no_more_than_its_slides(slide: int) -> None:
    splitter = CAM(4, slide=slide, slides=2)
    splitter.plan(Counts(np.arange(20), np.ones(20, dtype=np.int64), total=30, tail=np.array([10, 0, 0, 0])))
    assert splitter.loads.sum() == 30
    splitter.route(np.arange(slide))
    assert splitter.loads.sum() == 30 + slide
    splitter.route(np.arange(10 * slide))
    assert splitter.loads.sum() == 2 * slide


def test_a_plan_leaves_each_key_whole_on_one_of_its_candidates() -> None:
    policy = CAM(8).plan(Counts.of(np.repeat(np.arange(20), 50)))
    for key in range(20):
        (lane,) = policy.lanes_of(key)
        assert lane in candidates_of(key, 8, 2)


@pytest.mark.parametrize("option", ["slide", "slides", "candidates"])
@pytest.mark.parametrize("value", [0, -2])
def test_options_below_one_are_refused(option: str, value: int) -> None:
    with pytest.raises(SkewlessError, match=f"{option} is {value}; give at least 1"):
        CAM(4, **{option: value})
