"""Bounded keeps its promise in every window, and its plan fills workers evenly with few fragments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import metrics
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.core.policy import MOST_LANES, Policy
from skewless.simulate.replay import replay
from skewless.sketch.open_addressing import HELD, KEY
from skewless.split import Bounded, Dalton
from skewless.split.fill import fill

KEYS = 100_000


def zipf(exponent: float, tuples: int, seed: int = 3, every: int | None = None) -> Int64Array:
    """Hashes of keys, other ones hot after so many tuples."""
    shares = 1 / np.arange(1, KEYS + 1) ** exponent
    ranks = np.random.default_rng(seed).choice(KEYS, tuples, p=shares / shares.sum())
    turn = 0 if every is None else np.arange(tuples) // every
    return xxhash64((ranks + turn * 7919) % KEYS)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 60)), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.05, 0.3]),
)
def test_no_worker_is_above_the_limit_whatever_comes(
    runs: list[tuple[int, int]], workers: int, slide: int, slides: int, epsilon: float
) -> None:
    keys = np.repeat([key for key, _ in runs], [times for _, times in runs])
    splitter = Bounded(workers, slide=slide, slides=slides, epsilon=epsilon)
    routed = np.concatenate([splitter.route(part) for part in np.array_split(keys, 3)])
    for stop in range(1, len(keys) + 1):
        start = max(0, ((stop - 1) // slide - slides + 1) * slide)
        fair = (stop - start) / workers
        most = np.bincount(routed[start:stop], minlength=workers).max()
        share = 0 if stop % slide == 0 else slide / workers  # of a slide that has not ended
        assert most <= max(np.ceil(fair + share), (1 + 2 * epsilon) * (fair + share) + 1e-9)


@given(st.lists(st.lists(st.integers(0, 9), max_size=60), min_size=1, max_size=12), st.integers(1, 6))
def test_slides_of_time_are_as_even_as_the_fullest_window_of_late(slides: list[list[int]], workers: int) -> None:
    splitter, ends, loads = Bounded(workers, slide=None, slides=3), [0, 0], []
    for slide in slides:
        routed = splitter.route(np.array(slide, dtype=np.int64))
        loads.append(np.bincount(routed, minlength=workers))
        ends.append(len(slide))
        longest = max(8 * workers, *ends[-4:])
        fullest = max(sum(ends[at - 3 : at]) for at in range(max(3, len(ends) - 3), len(ends) + 1))
        assert np.sum(loads[-3:], axis=0).tolist() == splitter.loads.tolist()
        assert splitter.loads.max() <= max(1, 1.1 * (fullest + longest + fullest / 32 + 8 * workers) / workers + 1)
        splitter.end_slide()


@pytest.mark.parametrize("workers", [16, 64])
@pytest.mark.parametrize(("exponent", "every"), [(0.6, None), (1.0, None), (1.5, None), (1.5, 50_000), (1.0, 20_000)])
def test_every_window_is_even_with_fewer_fragments_than_dalton(
    workers: int, exponent: float, every: int | None
) -> None:
    keys, window = zipf(exponent, 400_000, every=every), 100_000
    ours = replay(Bounded(workers, slide=10_000), [keys], workers, window, 10_000)
    theirs = replay(Dalton(workers, slide=10_000), [keys], workers, window, 10_000)
    assert ours.worst_window <= 1.1
    # Where no key is much more than a worker's share, Dalton splits few, and leaves workers above the limit.
    allowed = 0.01 if theirs.worst_window > 1.1 and exponent <= 1 else 0
    assert ours.fragments_per_key.mean() <= theirs.fragments_per_key.mean() + allowed


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_partitioners_that_know_nothing_of_each_other_add_up(exponent: float) -> None:
    keys, workers, window, fragments = zipf(exponent, 600_000), 16, 100_000, {}
    for partitioners in (1, 2, 4, 8):
        routed = np.empty(len(keys), np.int32)
        for each in range(partitioners):
            splitter = Bounded(workers, slide=10_000 // partitioners)
            routed[each::partitioners] = splitter.route(keys[each::partitioners])
        parts = [(keys[at : at + window], routed[at : at + window]) for at in range(0, len(keys), window)]
        assert max(metrics.max_over_avg(part, workers) for _, part in parts) <= 1.15
        fragments[partitioners] = np.mean([metrics.fragments_per_key(*part, workers) for part in parts])
    assert max(fragments.values()) <= 1.25 * fragments[1]


def test_memory_is_that_of_keys_that_left_home() -> None:
    splitter = Bounded(8, slide=10_000)
    splitter.route(xxhash64(np.arange(300_000)))
    assert len(splitter.state.keys) < 5_000
    splitter.route(xxhash64(np.arange(200_000) % 7 + 10**9))
    assert splitter.hot_keys <= 7
    assert len(splitter.state.keys) < 5_000


def test_slides_of_a_number_of_tuples_end_by_themselves() -> None:
    with pytest.raises(SkewlessError, match="slides end after 100000 tuples; give slide=None to end them yourself"):
        Bounded(4).end_slide()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, "epsilon is -0.1; give a number from 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"slide": 0}, "slide is 0; give at least 1"),
        ({"slides": 0}, "slides is 0; give at least 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        Bounded(4, **options)  # type: ignore[arg-type]


def shares_of(policy: Policy, counts: Counts) -> tuple[np.ndarray, int]:
    """The load of each worker if lanes get what they should, and the number of fragments."""
    loads = counts.tail_loads(policy.workers).astype(float)
    fragments = 0
    for key, count in zip(counts.keys.tolist(), counts.counts.tolist(), strict=True):
        lanes = policy.lanes_of(key)
        fragments += len(set(lanes.tolist()))
        np.add.at(loads, lanes, count / len(lanes))
    return loads, fragments


@given(
    st.lists(st.integers(1, 5_000), min_size=1, max_size=80),
    st.integers(1, 20),
    st.integers(0, 20_000),
    st.booleans(),
)
def test_a_plan_is_even_with_few_fragments(counts: list[int], workers: int, rest: int, again: bool) -> None:
    keys = xxhash64(np.arange(len(counts)))
    seen = Counts(keys, np.array(counts), sum(counts) + rest)
    splitter = Bounded(workers)
    if again:
        splitter.plan(Counts(keys, np.array(counts[::-1]), sum(counts) + rest))
    policy = splitter.plan(seen)
    loads, fragments = shares_of(policy, seen)
    rounding = sum(seen.counts[np.isin(seen.keys, policy.split)]) / MOST_LANES  # the workers of a split key share lanes
    assert loads.max() <= np.ceil(1.02 * loads.mean()) + rounding
    assert fragments <= len(counts) + 2 * workers


def test_the_tails_homes_count_as_load_also_where_they_are_too_full() -> None:
    seen = Counts(np.array([1]), np.array([600]), 1_600, np.array([900, 100, 0, 0]))
    loads, fragments = shares_of(fill(seen, 4, Policy.of(4), 1), seen)
    assert loads[0] == 900
    assert loads[1:].max() <= 408
    assert fragments <= 3


def test_a_plan_stays_where_it_can() -> None:
    keys = zipf(1.2, 200_000)
    splitter = Bounded(16)
    first = splitter.plan(Counts.of(keys, told=256))
    second = splitter.plan(Counts.of(zipf(1.2, 200_000, seed=4), told=256))
    moved = [key for key in first.keys.tolist() if not set(first.lanes_of(key)) & set(second.lanes_of(key))]
    assert len(moved) <= len(first) / 8
    fresh = Bounded(16).plan(Counts.of(keys, told=256))
    assert fresh.keys.tolist() == first.keys.tolist()


def test_keys_that_fit_at_home_have_no_lanes() -> None:
    keys = xxhash64(np.arange(100))
    seen = Counts(keys, np.full(100, 10), 100_000)
    policy = Bounded(8).plan(seen)
    assert policy.route(keys).tolist() == homes(keys, 8).tolist()


def test_a_key_that_left_home_is_remembered_once_when_the_table_grows() -> None:
    splitter = Bounded(64, slide=20_000)
    splitter.route(zipf(1.0, 400_000))
    table = splitter.state.keys
    keys = table[table[:, HELD] != 0, KEY]
    assert len(table) > 256
    assert len(keys) == len(np.unique(keys))
