"""Bounded keeps its promise in every window, and its plan fills workers evenly with few fragments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skewless import metrics
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.core.policy import Policy
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


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=60), min_size=1, max_size=12),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.01, 0.05, 0.5]),
)
def test_every_slide_of_time_is_even_by_itself(slides: list[list[int]], workers: int, epsilon: float) -> None:
    splitter = Bounded(workers, slide=None, slides=3, epsilon=epsilon)
    for slide in slides:
        loads = np.zeros(workers, dtype=np.int64)
        for done, key in enumerate(slide, start=1):
            loads[splitter.route(np.array([key]))[0]] += 1
            assert loads.max() <= max(np.ceil(done / workers + 2), (1 + 2 * epsilon) * (done / workers + 2))
        assert loads.tolist() == splitter.loads.tolist()
        splitter.end_slide()


def test_windows_stay_even_when_the_rate_falls() -> None:
    splitter, loads, at = Bounded(64, slide=None), [], 0
    keys = zipf(1.5, 165_000)
    for length in [10_000] * 15 + [1_000] * 15:
        loads.append(np.bincount(splitter.route(keys[at : at + length]), minlength=64))
        at += length
        splitter.end_slide()
        window = np.sum(loads[-10:], axis=0)
        assert window.max() <= 1.1 * window.mean()


def sharing_a_home(tuples: int, workers: int, share: float) -> Int64Array:
    """Tuples of many keys, so many of which have the same home."""
    keys, chance = xxhash64(np.arange(200_000)), np.random.default_rng(1)
    same = keys[homes(keys, workers) == 3]
    return np.where(chance.random(tuples) < share, chance.choice(same, tuples), chance.choice(keys, tuples))


@pytest.mark.parametrize(
    ("workers", "tasks", "rows"), [(64, 1, 100_000), (16, 8, 10_000), (64, 8, 2_000), (200, 64, 1_000)]
)
@pytest.mark.parametrize("shared", [False, True])
def test_tasks_together_are_even_to_two_rows_of_each(workers: int, tasks: int, rows: int, shared: bool) -> None:
    keys = sharing_a_home(tasks * rows, workers, 0.2) if shared else zipf(1.5, tasks * rows)
    splitter = Bounded(workers)
    routed = [splitter.for_task().route(part) for part in keys.reshape(tasks, rows)]
    loads = np.bincount(np.concatenate(routed), minlength=workers)
    short = 2 * tasks if rows < 64 * workers else 0
    assert loads.max() <= 1.1 * (loads.mean() + short) + tasks


def test_of_workers_with_room_one_that_holds_the_key_comes_first() -> None:
    workers, hot = 5, np.zeros(3_000, np.int64)
    order = list(dict.fromkeys(Bounded(workers, slide=3_000).route(hot).tolist()))  # the key's own
    others = xxhash64(np.arange(100_000))
    at = {worker: iter(others[homes(others, workers) == worker].tolist()) for worker in order}

    def fill_up(worker: int, tuples: int) -> None:
        """Other keys, each once, bring a worker to so many tuples."""
        keys = [next(at[worker]) for _ in range(tuples - int(splitter.loads[worker]))]
        assert set(splitter.route(np.array(keys)).tolist()) == {worker}

    splitter = Bounded(workers, slide=20_000)
    second = order[1]
    fill_up(second, 3_000)
    routed = splitter.route(hot).tolist()
    assert second not in routed  # it had no room then
    holder = next(worker for worker in order[2:] if worker in routed and worker != routed[-1])
    for worker in set(order) - {second, holder}:
        fill_up(worker, 4_000)
    limit = 1.05 * splitter.loads.mean()
    assert splitter.loads[second] < limit  # now it has, as has the holder, which comes later in the order
    assert splitter.route(hot[:20]).tolist() == [holder] * 20


def test_a_key_goes_home_when_it_has_not_left_for_a_window() -> None:
    splitter = Bounded(8, slide=1_000, slides=3)
    splitter.route(np.zeros(1_000, np.int64))
    assert splitter.hot_keys == 1
    tail = xxhash64(np.arange(1, 4_001))
    splitter.route(tail)
    assert splitter.hot_keys <= 20
    routed = splitter.route(np.zeros(10, np.int64))
    assert routed.tolist() == [homes(np.zeros(1, np.int64), 8)[0]] * 10


@pytest.mark.slow
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


@pytest.mark.parametrize("workers", [16, 64])
@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.5])
def test_partitioners_that_know_nothing_of_each_other_add_up(exponent: float, workers: int) -> None:
    keys, window, fragments = zipf(exponent, 400_000), 100_000, {}
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
    splitter = Bounded(8, slide=2_000)
    splitter.route(xxhash64(np.arange(100_000)))
    assert len(splitter.state.keys) < 1_000
    keys = xxhash64(np.arange(200_000))
    same = keys[homes(keys, 8) == 5]  # all of them are driven from their home
    sizes = []
    for at in range(0, len(same), 5_000):
        splitter.route(same[at : at + 5_000])
        sizes.append(len(splitter.state.keys))
    assert splitter.hot_keys > 5_000
    assert sizes[-1] == sizes[len(sizes) // 2]  # those of earlier windows make room


def test_slides_of_a_number_of_tuples_end_by_themselves() -> None:
    with pytest.raises(SkewlessError, match="slides end after 100000 tuples; give slide=None to end them yourself"):
        Bounded(4).end_slide()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, "epsilon is -0.1; give a number from 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": float("inf")}, "epsilon is inf; give a number from 0 to 1000"),
        ({"epsilon": "a"}, "epsilon is 'a'; give a number"),
        ({"slide": 0}, "slide is 0; give a whole number from 1"),
        ({"slide": 2.5}, "slide is 2.5; give a whole number from 1"),
        ({"slide": True}, "slide is True; give a whole number from 1"),
        ({"slides": None}, "slides is None; give a whole number from 1"),
        ({"slides": 0}, "slides is 0; give a whole number from 1"),
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
@example(counts=[1, 1, 1, 1, 2590, 3310], workers=20, rest=8, again=False)
def test_a_plan_is_even_with_few_fragments(counts: list[int], workers: int, rest: int, again: bool) -> None:
    keys = xxhash64(np.arange(len(counts)))
    seen = Counts(keys, np.array(counts), sum(counts) + rest)
    splitter = Bounded(workers)
    if again:
        splitter.plan(Counts(keys, np.array(counts[::-1]), sum(counts) + rest))
    policy = splitter.plan(seen)
    loads, fragments = shares_of(policy, seen)
    # A hundredth above the average, in whole rows, and another for a lane too many.
    assert loads.max() <= max(1.02 * loads.mean() + 1, seen.tail_loads(workers).max())
    assert fragments <= len(counts) + 2 * workers


@pytest.mark.parametrize("workers", [16, 64, 512])
@pytest.mark.parametrize("exponent", [1.0, 1.5, 3.0])
def test_a_plan_is_even_however_many_workers_a_key_has(exponent: float, workers: int) -> None:
    shares, keys = 1 / np.arange(1, KEYS + 1) ** exponent, xxhash64(np.arange(KEYS))
    counts = np.maximum(1, shares / shares.sum() * 16_000_000).astype(np.int64)
    tail = np.bincount(homes(keys[1_024:], workers), counts[1_024:], workers).astype(np.int64)
    seen = Counts(keys[:1_024], counts[:1_024], int(counts.sum()), tail)
    policy = Bounded(workers).plan(seen)
    loads, fragments = shares_of(policy, seen)
    assert loads.max() <= 1.02 * loads.mean()
    assert fragments <= len(seen.keys) + 2 * workers
    if workers <= 64:
        assert len(policy) <= 200  # so few that Spark finds a key by some bits of its hash


def test_the_tails_homes_count_as_load_also_where_they_are_too_full() -> None:
    seen = Counts(np.array([1]), np.array([600]), 1_600, np.array([900, 100, 0, 0]))
    loads, fragments = shares_of(fill(seen, 4, Policy.of(4), 1), seen)
    assert loads[0] == 900
    assert loads[1:].max() <= 408
    assert fragments <= 3


def test_a_plan_stays_where_it_can() -> None:
    before, now = (Counts.of(zipf(1.2, 200_000, seed=seed), told=256) for seed in (3, 4))
    splitter = Bounded(16)
    first = splitter.plan(before)

    def moved(second: Policy) -> float:
        """The rows of keys that are on none of the workers they were on."""
        pairs = zip(now.keys.tolist(), now.counts.tolist(), strict=True)
        return sum(rows for key, rows in pairs if not set(first.lanes_of(key)) & set(second.lanes_of(key)))

    staying, fresh = moved(splitter.plan(now)), moved(Bounded(16).plan(now))
    assert staying <= 0.1 * now.total
    assert staying < 0.5 * fresh
    assert Bounded(16).plan(before) == first


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
