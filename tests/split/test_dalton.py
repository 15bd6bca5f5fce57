"""Dalton, against Algorithm 1 written out in plain Python and against the published figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skewless import metrics
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.split import Dalton, Hash
from skewless.split.hot import LENGTH, WINDOW
from skewless.workload import Zipf, new_hot_keys
from tests.support.plain_dalton import PlainDalton


@settings(max_examples=60)
@given(
    keys=st.lists(st.integers(0, 12).map(lambda k: k // 4), max_size=300),
    workers=st.integers(1, 9),
    slide=st.integers(1, 40),
    slides=st.integers(1, 4),
    epsilon=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    hot_at=st.sampled_from([0.1, 0.5, 1.0]),
    choices=st.integers(1, 3),
    max_split=st.sampled_from(["share", 1, 2, None]),
    seed=st.integers(0, 5),
)
def test_routes_as_algorithm_1_does(keys, workers, slide, slides, epsilon, hot_at, choices, max_split, seed):
    options = {"slide": slide, "slides": slides, "epsilon": epsilon, "hot_at": hot_at}
    options |= {"choices": choices, "max_split": max_split, "seed": seed}
    keys = np.array(keys, dtype=np.int64)
    plain = PlainDalton(workers, **options)
    fast = Dalton(workers, statistics="exact", **options)
    assert fast.route(keys).tolist() == plain.route(keys)
    assert fast.loads.tolist() == plain.loads()
    assert sorted(fast.hot.keys.tolist()) == sorted(plain.q)
    for key, q in plain.q.items():
        np.testing.assert_allclose(fast.values(key), q, atol=1e-8)
        assert fast.fragments(key) == len(plain.holders[key])


@settings(max_examples=60)
@given(
    slides_of_time=st.lists(st.lists(st.integers(0, 12).map(lambda k: k // 4), max_size=60), max_size=8),
    workers=st.integers(1, 9),
    slides=st.integers(1, 4),
    stats=st.sampled_from([None, 1, 7, 25, 60]),
    hot_at=st.sampled_from([0.3, 1.0]),
    seed=st.integers(0, 5),
)
@example([[0] * 6 + [1] * 5 + [0], [1, 1, 0, 0, 1, 1, 0, 1]], 4, 1, 60, 0.3, 1)  # a key on all workers explores
def test_slides_of_time_and_statistics_windows_of_their_own(slides_of_time, workers, slides, stats, hot_at, seed):
    options = {"slide": None, "slides": slides, "epsilon": 0.3, "hot_at": hot_at}
    options |= {"choices": 2, "max_split": None, "seed": seed}
    plain = PlainDalton(workers, stats=stats, **options)
    fast = Dalton(workers, statistics="exact", stats_window=stats or "slide", **options)
    for part in slides_of_time:
        assert fast.route(np.array(part, dtype=np.int64)).tolist() == plain.route(part)
        assert fast.loads.tolist() == plain.loads()
        fast.end_slide()
        plain.end_slide()
        assert sorted(fast.hot.keys.tolist()) == sorted(plain.q)
    for key, q in plain.q.items():
        np.testing.assert_allclose(fast.values(key), q, atol=1e-8)
        assert fast.fragments(key) == len(plain.holders[key])


def test_a_statistics_window_shorter_or_longer_than_a_slide_finds_its_own_hot_keys():
    # Key 7 has 10 of the first 20 tuples and none of the next 80; the fair share of 4 workers is a quarter.
    keys = np.array([7] * 10 + list(range(100, 190)))
    short, long = (Dalton.as_printed(4, slide=100, stats_window=window) for window in (20, 100))
    for splitter in (short, long):
        splitter.take_hot()
        splitter.route(keys)
    assert short.take_hot().tolist() == [7]
    assert long.take_hot().tolist() == []


def test_the_papers_parameters_have_a_name():
    printed = Dalton.as_printed(8, slide=1000, seed=3)
    written_out = Dalton(
        8, slide=1000, seed=3, epsilon=0.1, gamma=0.1, p1=0.5, p2=0.5, hot_at=1.0, choices=1, max_split=None
    )
    keys = Zipf(1.2, keys=1000, seed=2).take(20_000)
    routed = printed.route(keys)
    np.testing.assert_array_equal(routed, written_out.route(keys))
    np.testing.assert_array_equal(routed, printed.again().route(keys))
    assert not np.array_equal(routed, Dalton(8, slide=1000, seed=3).route(keys))


def test_hot_keys_are_remembered_until_they_are_taken():
    splitter = Dalton.as_printed(4, slide=20)  # hot from 5 of 20
    splitter.take_hot()
    splitter.route(np.array([7] * 5 + list(range(100, 115))))
    splitter.route(np.arange(200, 240))  # two windows later the key is no longer hot
    splitter.route(np.arange(300, 301))
    assert splitter.hot_keys == 0
    assert splitter.take_hot().tolist() == [7]
    assert splitter.take_hot().tolist() == []


def test_a_load_far_above_the_last_windows_raises_the_threshold():
    splitter = Dalton.as_printed(4, slide=None)
    splitter.route(np.arange(4))
    splitter.end_slide()  # 4 tuples: a key is now hot from 2
    splitter.route(np.repeat(np.arange(10_000), 3))
    assert splitter.hot_keys < 200


def test_a_micro_batch_is_seen_before_it_is_routed():
    tail = np.arange(1000, 1075)
    splitter = Dalton.as_printed(4, slide=None, slides=2, epsilon=1.0)
    keys = np.concatenate([[7] * 25, tail])
    routed = splitter.route_batch(keys)
    assert splitter.hot.keys.tolist() == [7]
    assert splitter.fragments(7) == len(set(routed[:25].tolist())) == 4  # every tuple explored, from the first one on
    short_of_a_quarter = Dalton.as_printed(4, slide=None)
    short_of_a_quarter.route_batch(np.concatenate([[7] * 24, [999], tail]))
    assert short_of_a_quarter.hot_keys == 0


def test_the_fragments_of_a_micro_batch_are_its_own_and_the_loads_those_of_the_window():
    splitter = Dalton.as_printed(4, slide=None, slides=2, epsilon=1.0)
    batch = np.full(40, 7)
    first = splitter.route_batch(batch)
    assert splitter.fragments(7) == len(set(first.tolist()))
    second = splitter.route_batch(np.array([7]))
    assert splitter.fragments(7) == 1
    both = np.concatenate([first, second])
    np.testing.assert_array_equal(splitter.loads, np.bincount(both, minlength=4))
    third = splitter.route_batch(np.array([7, 7]))
    np.testing.assert_array_equal(splitter.loads, np.bincount(np.concatenate([second, third]), minlength=4))


def test_micro_batches_that_are_seen_first_are_balanced_from_the_first_one_on():
    keys = Zipf(1.5, seed=1).take(400_000)
    seen_first = Dalton(16, slide=None, slides=1)
    balance = [metrics.max_over_avg(seen_first.route_batch(batch), 16) for batch in np.split(keys, 4)]
    assert max(balance) < 1.1


def test_windows_that_end_by_themselves_are_not_ended_by_calls():
    with pytest.raises(SkewlessError, match="slides end after 10 tuples; give slide=None"):
        Dalton(4, slide=10).end_slide()
    with pytest.raises(SkewlessError, match="stats_window is 'slide'; give stats_window=None"):
        Dalton(4, slide=10).end_stats_window()
    with pytest.raises(SkewlessError, match="slide=None"):
        Dalton(4, slide=10).route_batch(np.array([1]))
    splitter = Dalton.as_printed(4, slide=None, stats_window=None)
    splitter.route(np.full(8, 3))
    splitter.end_slide()
    splitter.route(np.full(8, 3))
    assert splitter.hot_keys == 0  # nothing is known of the load before the first statistics window has ended
    splitter.end_stats_window()
    splitter.route(np.full(4, 3))  # a quarter of 16
    assert splitter.hot_keys == 1


def test_the_first_reward_is_the_papers_formula():
    splitter = Dalton(4, slide=8, slides=2, epsilon=0.0, hot_at=1.0)  # hot from 2 tuples
    splitter.route(np.array([5, 5]))
    home = homes(np.array([5]), 4)[0]
    # After both tuples: load 2 on the home, average 0.5, one fragment on four workers.
    reward = -(0.5 * (2 - 0.5) / 2 + 0.5 / 4)
    expected = np.full(4, -2.0)
    expected[home] = -2 + 0.1 * (reward + 2)
    np.testing.assert_allclose(splitter.values(5), expected, atol=1e-9)


def test_an_expired_fragment_no_longer_costs():
    splitter = Dalton(16, slide=200, slides=2, epsilon=1.0, choices=1, max_split=None, hot_at=0.1)
    splitter.route(np.zeros(200, dtype=np.int64))
    assert splitter.fragments(0) == 16
    splitter.route(np.concatenate([[0, 0, 0], np.arange(1000, 1197)]))  # the first slide is still in the window
    assert splitter.fragments(0) == 16
    splitter.route(np.array([0]))  # now it has left: three tuples of the second slide, and this one
    assert 1 <= splitter.fragments(0) <= 4


def test_with_a_window_of_one_slide_only_this_slide_counts():
    splitter = Dalton(4, slide=10, slides=1, epsilon=1.0, choices=1, max_split=None, hot_at=0.1)
    splitter.route(np.zeros(10, dtype=np.int64))
    assert splitter.fragments(0) > 1
    splitter.route(np.zeros(1, dtype=np.int64))
    assert splitter.fragments(0) == 1
    assert splitter.loads.sum() == 1


def test_loads_are_those_of_the_window():
    keys = Zipf(1.2, keys=50, seed=3).take(1000)
    splitter = Dalton(5, slide=30, slides=4, hot_at=0.5)
    routed = splitter.route(keys)
    # 33 full slides and 10 tuples: three whole slides and the current one.
    np.testing.assert_array_equal(splitter.loads, np.bincount(routed[30 * 30 :], minlength=5))


def test_a_key_stays_hot_for_the_current_and_the_next_window_then_its_values_go():
    splitter = Dalton(4, slide=20, slides=2, hot_at=1.0)  # hot from 5 of 20
    others = iter(range(100, 100_000))

    def slide(hot: int) -> None:
        splitter.route(np.array([7] * hot + [next(others) for _ in range(20 - hot)]))

    slide(4)
    assert len(splitter.values(7)) == 0
    slide(5)
    learned = splitter.values(7)
    assert len(learned) == 4
    slide(0)
    np.testing.assert_array_equal(splitter.values(7), learned)
    slide(1)  # not frequent in the window after: expired when this one began
    assert len(splitter.values(7)) == 0
    slide(5)
    assert splitter.values(7).min() == -2.0


def test_a_key_frequent_again_keeps_what_it_learned():
    splitter = Dalton(4, slide=20, slides=2, hot_at=1.0, epsilon=0.0)
    for _ in range(5):
        splitter.route(np.array([7] * 10 + list(range(100, 110))))
    assert splitter.values(7).max() > -1.0


def test_without_exploration_a_hot_key_stays_home():
    splitter = Dalton(8, slide=100, epsilon=0.0)
    assert set(splitter.route(np.full(1000, 3)).tolist()) == set(homes(np.array([3]), 8).tolist())


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_max_split_bounds_how_far_a_key_is_explored(limit):
    splitter = Dalton(16, slide=1000, slides=3, max_split=limit)
    splitter.route(np.zeros(20_000, dtype=np.int64))
    assert splitter.fragments(0) == limit


def test_by_share_a_key_is_on_no_more_than_four_times_the_workers_it_fills_and_two():
    rng = np.random.default_rng(1)
    keys = np.where(rng.random(200_000) < 0.1, 0, rng.integers(1, 100_000, 200_000))  # 10 % of 64: 6.4 workers
    splitter = Dalton(64, slide=10_000)
    splitter.route(keys)
    assert 6 < splitter.fragments(0) <= 4 * 7 + 2


@pytest.mark.parametrize("statistics", ["exact", "countmin", "switch"])
def test_uniform_keys_go_where_hashing_sends_them(statistics):
    keys = Zipf(0.0, seed=1).take(1_000_000)
    splitter = Dalton(8, statistics=statistics)
    np.testing.assert_array_equal(splitter.route(keys), Hash(8).route(keys))
    assert splitter.hot_keys == 0


@pytest.mark.parametrize(
    ("s", "workers", "balance", "fragments"), [(1.5, 8, 1.03, 1.01), (1.5, 64, 1.12, 1.05), (1.0, 64, 1.25, 1.10)]
)
def test_balances_the_published_streams(s, workers, balance, fragments):
    # numpy's default_rng(1).choice over 100,000 keys, 5 M tuples, slide 100 k, window 1 M: the last window.
    keys = Zipf(s, keys=100_000, seed=1).take(5_000_000)
    routed = Dalton(workers).route(keys)
    assert metrics.max_over_avg(routed[-1_000_000:], workers) <= balance
    assert metrics.fragments_per_key(keys[-1_000_000:], routed[-1_000_000:], workers) <= fragments


@pytest.mark.parametrize(("s", "workers"), [(1.5, 8), (1.5, 16), (1.5, 64), (1.0, 64), (1.2, 128)])
def test_is_balanced_again_two_statistics_windows_after_the_hot_keys_were_replaced(s, workers):
    slide, shift = 100_000, 1_000_000
    keys = new_hot_keys(s, every=shift, seed=5).take(shift + 2 * slide)
    routed = Dalton(workers, slide=slide).route(keys)
    assert metrics.max_over_avg(routed[-10 * slide :], workers) < 1.3


@pytest.mark.parametrize(("s", "workers"), [(1.5, 8), (1.5, 16), (1.5, 64)])
def test_after_a_shift_even_the_third_statistics_window_by_itself_is_balanced(s, workers):
    slide, shift = 100_000, 1_000_000
    keys = new_hot_keys(s, every=shift, seed=5).take(shift + 3 * slide)
    routed = Dalton(workers, slide=slide).route(keys)
    assert metrics.max_over_avg(routed[-slide:], workers) < 1.3


def test_memory_does_not_grow_with_the_stream():
    def size(state: tuple) -> int:
        return sum(size(part) if isinstance(part, tuple) else np.asarray(part).nbytes for part in state)

    splitter = Dalton(16, slide=10_000)
    stream = new_hot_keys(1.2, every=50_000, seed=2).blocks(2_000_000, block=100_000)
    sizes = []
    for block in stream:
        splitter.route(block)
        sizes.append(size((splitter.bandit, splitter.hot.state, splitter.window)))
    assert sizes[-1] == sizes[len(sizes) // 2]


def test_a_plan_balances_hot_keys_around_the_tail():
    tail = np.array([3000, 1000, 1000, 1000])
    seen = Counts(np.array([1, 2]), np.array([5000, 1000]), total=12_000, tail=tail)
    splitter = Dalton(4)
    policy = splitter.plan(seen)
    loads = tail.astype(float)
    for key, count in zip(seen.keys, seen.counts, strict=True):
        for lane in policy.lanes_of(int(key)):
            loads[lane] += count / len(policy.lanes_of(int(key)))
    assert loads.max() / loads.mean() < 1.1
    assert policy.version == 1


def test_a_plan_leaves_a_balanced_batch_alone():
    keys = np.arange(10_000)
    assert len(Dalton(8).plan(Counts.of(keys))) == 0


def test_plans_follow_a_change_of_hot_keys():
    splitter = Dalton(16)
    before = splitter.plan(Counts.of(Zipf(1.5, seed=1).take(100_000)))
    changed = Zipf(1.5, seed=2, hottest=500).take(100_000)
    after = splitter.plan(Counts.of(changed))
    assert len(before.lanes_of(0)) > 1
    assert len(after.lanes_of(500)) > 1
    assert metrics.max_over_avg(after.route(changed), 16) < 1.15


def test_planning_between_routing_does_not_disturb_the_slides():
    keys = Zipf(1.5, keys=100, seed=1).take(3000)
    splitter = Dalton(4, slide=100)
    for part in np.split(keys, 10):
        splitter.route(part)
        splitter.plan(Counts.of(part))
    assert splitter.hot.state.meta[LENGTH] == 100
    window = splitter.hot.state.meta[WINDOW]
    splitter.route(keys[:101])  # a whole slide and one tuple: the next statistics window has begun
    assert splitter.hot.state.meta[WINDOW] == window + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, ["workers is 0", "1"]),
        ({"workers": 8, "slide": 0}, ["slide is 0", "whole number from 1", "None"]),
        ({"workers": 8, "slides": 0}, ["slides is 0", "whole number from 1"]),
        ({"workers": 8, "epsilon": 1.5}, ["epsilon is 1.5", "0 to 1"]),
        ({"workers": 8, "gamma": -0.1}, ["gamma is -0.1", "0 to 1"]),
        ({"workers": 8, "hot_at": 0}, ["hot_at is 0", "from 1e-06"]),
        ({"workers": 8, "choices": 0}, ["choices is 0", "whole number from 1"]),
        ({"workers": 8, "choices": 1.5}, ["choices is 1.5", "whole number from 1"]),
        ({"workers": 8, "slide": "1 second"}, ["slide is '1 second'", "whole number from 1"]),
        ({"workers": 8, "slides": 2.5}, ["slides is 2.5", "whole number from 1"]),
        ({"workers": 8, "stats_window": True}, ["stats_window is True", "at least 1"]),
        ({"workers": 8, "seed": 1 << 70}, [f"seed is {1 << 70}", "whole number from 0"]),
        ({"workers": 8, "hot_at": 1e-12}, ["hot_at is 1e-12", "from 1e-06"]),
        ({"workers": 8, "max_split": 0}, ["max_split is 0", "'share'"]),
        ({"workers": 8, "max_split": "all"}, ["'all'", "None"]),
        ({"workers": 8, "stats_window": 0}, ["stats_window is 0", "at least 1"]),
        ({"workers": 8, "stats_window": "minute"}, ["'minute'", "'slide'"]),
        ({"workers": 8, "statistics": "guess"}, ["guess", "exact, countmin, switch"]),
    ],
)
def test_bad_options_are_refused_with_a_remedy(options, words):
    with pytest.raises(SkewlessError) as refused:
        Dalton(**options)
    assert all(word in str(refused.value) for word in words)
