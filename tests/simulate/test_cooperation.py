"""Partitioners that learn together on a virtual clock, and keys that skip the reducers."""

from __future__ import annotations

import numpy as np
import pytest

from skewless import metrics, split
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows
from skewless.simulate import (
    Cluster,
    Cooperation,
    Costs,
    MicroBatches,
    Partitioners,
    Recorded,
    Source,
    run,
    sustainable,
)
from skewless.split import CooperativeDalton, Dalton, QTableReducer
from skewless.split.hot import STATS_SEEN
from skewless.workload import Zipf


def team(partitioners, workers=4, **options):
    options = {"slide": None, "hot_at": 1.0} | options
    return [CooperativeDalton(workers, seed=seed, **options) for seed in range(partitioners)]


def cooperation(partitioners=2, workers=4, interval=10.0, work=0.0, merge="normalised", shortest=None, **options):
    hot_at = options.get("hot_at", 1.0)
    reducer = QTableReducer(partitioners, workers, interval=interval, merge=merge, hot_at=hot_at, shortest=shortest)
    return Cooperation(reducer, team(partitioners, workers, **options), work=work)


@pytest.mark.slow
@pytest.mark.parametrize("base", [5.5, 7.0, 9.5])
def test_the_interval_doubles_twice_as_merging_takes_longer_and_comes_back(base):
    def work(at):
        return base * (1 if at < 5000 or at >= 15_000 else 2 if at < 10_000 else 4)

    both = cooperation(interval=20.0, work=work)
    both.advance(20_000.0)
    settled = [
        {interval for at, _, interval in both.intervals if start < at <= end}
        for start, end in ((1000, 5000), (6000, 10_000), (11_000, 15_000), (16_000, 20_000))
    ]
    assert settled == [{10.0}, {20.0}, {40.0}, {10.0}]


def test_a_message_is_sent_when_due_and_the_broadcast_comes_after_the_work():
    both = cooperation(interval=10.0, work=6.0)
    seen = []
    for now in (9.9, 10.0, 15.9, 16.0, 19.9, 20.0):
        both.advance(now)
        seen.append([partitioner.awaiting for partitioner in both.routers])
    assert seen == [[False] * 2, [True] * 2, [True] * 2, [False] * 2, [False] * 2, [True] * 2]


def test_late_partitioners_ask_for_twice_the_interval_in_their_next_message():
    both = cooperation(interval=10.0, work=15.0)
    both.advance(60.0)
    # Sent at 10, late at 20, received at 25; sent at 30 with the request, received at 45; next due at 50.
    assert both.intervals == [(25.0, 0, 10.0), (45.0, 0, 20.0)]


def test_two_queries_over_one_stream_share_one_reducer():
    teams = [team(2), team(2, epsilon=0.5)]
    both = Cooperation(QTableReducer(2, 4, interval=10.0), *teams, work=6.0)
    both.advance(30.0)
    # The second query waits for the first: together they keep the reducer busy for 12 of 10 seconds.
    assert both.intervals[:2] == [(16.0, 0, 10.0), (22.0, 1, 10.0)]
    both.advance(500.0)
    settled = [{interval for at, of, interval in both.intervals if of == query and at > 200} for query in (0, 1)]
    assert settled == [{10.0}, {20.0}]  # 9 of 10 seconds

    keys = Zipf(1.5, keys=100, seed=1).take(2000)
    times, at = np.linspace(500, 600, 2000, endpoint=False), np.arange(2000) % 2
    first, second = both.route_all(keys, times, at)
    assert not np.array_equal(first, second)  # each learns for itself
    assert first[-500:].max() < 4


def test_tuples_before_a_message_are_in_it_and_those_after_it_are_not():
    both = cooperation(interval=1.0, work=0.25)
    keys, times = np.full(8, 7), np.arange(8) / 4
    both.route(keys, times, np.arange(8) % 2)
    hot = [partitioner.hot.state for partitioner in both.routers]
    assert [int(state.meta[STATS_SEEN]) for state in hot] == [2, 2]  # those from second 1 on
    assert all(len(partitioner.values(7)) == 4 for partitioner in both.routers)


def eight(merge, keys, workers=64, sync=50_000):
    """Eight partitioners with windows of a million tuples of their own; messages after so many tuples of all."""
    at = np.arange(len(keys)) % 8
    options = {"slide": 100_000, "slides": 10}
    if merge in ("none", "bounded"):
        like = Dalton(workers, **options) if merge == "none" else split.Bounded(workers, **options)
        return Partitioners.like(like, 8).route(keys, np.arange(len(keys)) / sync, at)
    together = cooperation(8, workers, interval=1.0, merge=merge, shortest=1.0, hot_at=0.1, **options)
    return together.route(keys, np.arange(len(keys)) / sync, at)


@pytest.mark.slow
def test_what_partitioners_share_decides_about_balance_and_fragments():
    keys = Zipf(1.5, seed=1).take(3_000_000)
    last = keys[-1_000_000:]
    distinct, counts = np.unique(last, return_counts=True)
    hot = distinct[counts >= 0.1 * len(last) / 64]
    balance, fragments = {}, {}
    for merge in ("none", "normalised", "printed", "shared", "bounded"):
        routed = eight(merge, keys)[-1_000_000:]
        balance[merge] = metrics.max_over_avg(routed, 64)
        fragments[merge] = np.mean([len(np.unique(routed[last == key])) for key in hot])
    assert balance["none"] < 1.05
    assert balance["bounded"] <= 1.1
    assert fragments["bounded"] < 10  # they need no messages, as all of them probe in the same order
    assert 1.3 < balance["normalised"] < 2.2
    assert 1.1 < balance["shared"] < 1.45
    assert 24 < fragments["none"] < 33
    assert 12 < fragments["shared"] < fragments["none"] - 5
    assert fragments["printed"] > 60  # workers that were never tried look best


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize(
    "partitioners",
    [
        lambda: split.Hash(8),
        lambda: split.CAM(8, slide=None, slides=3),
        lambda: split.DAGreedy(8, slide=None, slides=3),
        lambda: split.DAGreedy(8, slide=700, slides=3, stats_window=150),
        lambda: Dalton.as_printed(8, slide=None, slides=3),
        lambda: Dalton(8, slide=None, slides=3, stats_window=130),
        lambda: split.Shuffle(8),
        lambda: Partitioners(split.Hash(8), split.Hash(8)),
        lambda: Partitioners.like(Dalton(8, slide=None, slides=3), 2),
        lambda: cooperation(2, 8, interval=0.5, work=0.1, slides=3, hot_at=0.3),
        lambda: cooperation(2, 8, interval=1.4, work=0.9, slides=3, hot_at=0.3, merge="shared"),
    ],
)
def test_every_key_of_a_window_has_exactly_one_result(partitioners, forward):
    zipf = Zipf(1.3, keys=300, seed=5)
    keys = np.concatenate([zipf.take(6000), 299 - zipf.take(6000)])  # other keys become hot
    cluster = Cluster(8, 2, Windows.of("3 seconds", "1 second"), Costs(), forward=forward)
    found = run(cluster, Source(Recorded(keys), 1000.0), partitioners(), seconds=12)
    for end in range(3, 13):
        assert found.results[end - 1] == found.keys[end - 1] == len(np.unique(keys[1000 * (end - 3) : 1000 * end]))
    if not forward:
        assert found.forwarded.sum() == 0


def test_forwarding_is_refused_where_keys_that_are_not_hot_are_split():
    cluster = Cluster(8, 2, Windows.of("3 seconds", "1 second"), Costs(), forward=True)
    forgetful = split.CAM(8, slide=None, slides=1)  # remembers a third of the window, and then sends keys elsewhere
    with pytest.raises(SkewlessError, match=r"a window of \d+ keys has \d+ results"):
        run(cluster, Source(Zipf(1.0, keys=300, seed=5), 300.0), forgetful, seconds=6)


def test_forwarding_by_what_one_partitioner_knows_would_give_two_results():
    # The first partitioner splits key 7. The second has it in one tuple of ten: its home holds tuples of both.
    keys, at = np.tile([7, 7, 7, 7, 7, 100, 101, 7], 50), np.tile([0] * 7 + [1], 50)
    keys[7::8] = np.where(np.arange(50) % 10 == 0, 7, 1000 + np.arange(50))
    both = Partitioners(*(split.DAGreedy(4, slide=None, slides=2, stats_window=100) for _ in range(2)))
    routed = both.route(keys, np.arange(400) / 400, at)
    hot = [router.take_hot().tolist() for router in both.routers]
    assert hot == [[7], []]
    assert len(np.unique(routed[(at == 0) & (keys == 7)])) > 1
    cold = np.unique(routed[(at == 1) & (keys == 7)])
    assert len(cold) == 1  # a combiner that believed the second one alone would emit key 7 itself
    assert not both.synced  # so the cluster forwards nothing


def test_only_hot_keys_take_the_second_step():
    keys = np.concatenate([np.full(40, 7), np.arange(100, 160)] * 4)
    cluster = Cluster(4, 1, Windows.of("2 seconds", "1 second"), Costs(partial=1e-3, key=1e-4), forward=True)
    splitter = split.DAGreedy(4, slide=None, slides=2)
    found = run(cluster, Source(Recorded(keys), 100.0), splitter, seconds=4, watch=[7])
    # In the first second nothing is known of the load, so all 61 keys are forwarded.
    assert found.forwarded.tolist() == [61, 60, 60, 60]
    assert found.partials[1:].tolist() == found.watched[1:, 0].tolist()
    assert found.partials[0] == 0
    plain = run(Cluster(4, 1, cluster.windows, cluster.costs), Source(Recorded(keys), 100.0), splitter.again(), 4)
    assert (plain.partials >= 61).all()


def test_without_a_broadcast_before_its_end_a_window_is_reduced():
    cluster = Cluster(4, 1, Windows.of("1 second"), Costs(), forward=True)
    source = Source(Recorded(np.arange(100)), 100.0)
    found = run(cluster, source, cooperation(2, 4, interval=1.6, work=0.0), seconds=8)
    both = cooperation(2, 4, interval=1.6)
    both.advance(8.0)
    came = {int(at) for at, _, _ in both.intervals if at < 8}
    assert came != set(range(8))
    assert [step for step in range(8) if found.forwarded[step]] == sorted(came)
    assert found.partials[0] == 100


def test_messages_take_time_in_which_nothing_is_routed():
    cluster = Cluster(4, 1, Windows.of("20 seconds"), Costs(route=1 / 8, tuple=0.0, partial=0.0))
    reducer = QTableReducer(2, 4, interval=10.0)
    costly = Cooperation(reducer, team(2), work=6.0, tell=2.0)
    found = run(cluster, Source(Recorded(np.arange(100)), 8.0), costly, seconds=40)
    # Each routes 80 tuples a slide, in 10 seconds. One broadcast comes in the first slide, at 16, and two in the next.
    assert found.work[:, :2].tolist() == [[12.0, 12.0], [14.0, 14.0]]
    assert found.backlog.tolist() == [2.0, 4.0]
    assert found.longest[0] < 1 < found.longest[1]


def test_what_cannot_cooperate_is_refused():
    with pytest.raises(SkewlessError, match=r"the teams have \[1\] partitioners, but the reducer waits for 2"):
        Cooperation(QTableReducer(2, 4, interval=1.0), team(1))
    with pytest.raises(SkewlessError, match=r"hot_at is 0\.5 for a partitioner and 1\.0 for the reducer"):
        Cooperation(QTableReducer(2, 4, interval=1.0), team(2, hot_at=0.5))
    with pytest.raises(SkewlessError, match="routes to 4 workers, but the reducer has 8; give both the same"):
        Cooperation(QTableReducer(2, 8, interval=1.0), team(2))
    cluster = Cluster(4, 1, Windows.of("1 second"), Costs(), engine=MicroBatches(1.0))
    with pytest.raises(SkewlessError, match="route tuples as they come"):
        run(cluster, Source(Recorded(np.array([1])), 1.0), cooperation(), seconds=1)


@pytest.mark.parametrize("partitioners", ["dalton", Dalton, None, [split.Hash(4)]])
def test_what_routes_nothing_is_refused_as_a_partitioner(partitioners):
    source = Source(Recorded(np.array([1])), 1.0)
    with pytest.raises(SkewlessError, match=r"routes nothing; give a splitter, such as skewless.split.make"):
        run(Cluster(4, 1, Windows.of("1 second")), source, partitioners, seconds=1)


@pytest.mark.parametrize("tolerance", [0, -0.1, 1.0, np.nan])
def test_a_search_that_would_not_end_or_not_search_is_refused(tolerance):
    with pytest.raises(SkewlessError, match=f"the tolerance is {tolerance}; give a share of the rate between 0 and 1"):
        sustainable(lambda rate: None, start=1.0, tolerance=tolerance)


@pytest.mark.parametrize("seconds", [-1.0, np.inf, np.nan])
def test_work_and_messages_take_a_finite_time_that_is_not_negative(seconds):
    for name in ("work", "tell"):
        with pytest.raises(SkewlessError, match=f"{name} is {seconds} seconds; give a finite number, at least 0"):
            Cooperation(QTableReducer(2, 4, interval=1.0), team(2), **{name: seconds})
    with pytest.raises(SkewlessError, match=rf"work at 1\.0 s is {seconds} seconds"):
        cooperation(interval=1.0, work=lambda at: seconds).advance(3.0)


def test_an_interval_that_the_clock_cannot_resolve_is_refused():
    with pytest.raises(SkewlessError, match=r"an interval of .* s is lost in rounding"):
        cooperation(interval=1.0, work=0.0, shortest=1e-300).advance(1500.0)
