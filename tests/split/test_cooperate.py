"""Algorithm 2 of the paper, step by step, with numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.split import CooperativeDalton, QTableReducer, Sync
from skewless.split.hot import THRESHOLD

PRINTED = {"slide": None, "hot_at": 1.0, "choices": 1, "max_split": None, "epsilon": 0.0}


def reward(load, loads, fragments, workers):
    average = sum(loads) / workers
    return -(0.5 * (load - average) / max(load, average) + 0.5 * fragments / workers)


def message(keys=(), values=(), until=(), counts=None, tuples=0, workers=2, **more):
    keys = np.array(keys, dtype=np.int64)
    counts = dict.fromkeys(keys.tolist(), 0) if counts is None else counts
    rest = {"round": 3, "double": False, "loads": np.zeros(workers, dtype=np.int64)} | more
    return Sync(
        keys=keys,
        values=np.array(values, dtype=np.float64).reshape(len(keys), workers),
        until=np.array(until, dtype=np.int64),
        counted=np.array(list(counts), dtype=np.int64),
        counts=np.array(list(counts.values()), dtype=np.int64),
        tuples=tuples,
        held=rest.pop("held", np.zeros((len(keys), workers), dtype=bool)),
        **rest,
    )


def merged(*messages, workers=2, **options):
    reducer = QTableReducer(len(messages), workers, interval=10.0, **options)
    assert [reducer.add(each) for each in messages] == [False] * (len(messages) - 1) + [True]
    return reducer.reduce(start=10.0, work=6.0)


def test_algorithm_2_step_by_step():
    first, second = (CooperativeDalton(2, **PRINTED) for _ in range(2))
    reducer = QTableReducer(2, 2, interval=10.0)
    home = int(homes(np.array([7]), 2)[0])

    # Nothing is known of the load, so all tuples go home.
    assert first.route(np.array([7, 7, 7, 7])).tolist() == [home] * 4
    assert second.route(np.array([7, 7])).tolist() == [home] * 2
    told = first.due()
    assert (told.tuples, told.counted.tolist(), told.counts.tolist(), told.double) == (4, [7], [4], False)
    reducer.add(told)
    reducer.add(second.due())
    common = reducer.reduce(start=10.0, work=6.0)
    # All six tuples are of key 7, and three are a fair share: it is hot for this round, 0, and the next.
    assert (common.load, common.keys.tolist(), common.until.tolist()) == (6, [7], [1])
    np.testing.assert_array_equal(common.values, [[-2.0, -2.0]])
    for partitioner in (first, second):
        assert partitioner.awaiting
        partitioner.receive(common)
        assert not partitioner.awaiting
        assert partitioner.hot.state.meta[THRESHOLD] == 3

    # PREPARE: equation 5 for one tuple each. The window has 4 and 2 tuples before, all on the home.
    first.route(np.array([7]))
    second.route(np.array([7]))
    q = [np.full(2, -2.0), np.full(2, -2.0)]
    for values, load in zip(q, (5, 3), strict=True):
        values[home] += 0.1 * (reward(load, [load], 1, 2) + 2)
    np.testing.assert_allclose(first.values(7), q[0], atol=1e-9)
    np.testing.assert_allclose(second.values(7), q[1], atol=1e-9)

    # AWAIT: rewards are kept back.
    for partitioner in (first, second):
        reducer.add(partitioner.due())
    first.route(np.array([7, 7]))
    np.testing.assert_allclose(first.values(7), q[0], atol=1e-9)
    common = reducer.reduce(start=20.0, work=6.0)
    np.testing.assert_allclose(common.values[0], (q[0] + q[1]) / 2, atol=1e-9)  # one tuple each in this round
    assert (common.load, common.until.tolist()) == (2, [2])

    # On receipt: the common table, and on top of it what was kept back, in its order.
    first.receive(common)
    expected = (q[0] + q[1]) / 2
    for load in (6, 7):
        expected[home] += 0.1 * (reward(load, [load], 1, 2) - expected[home])
    np.testing.assert_allclose(first.values(7), expected, atol=1e-9)
    second.receive(common)
    np.testing.assert_allclose(second.values(7), (q[0] + q[1]) / 2, atol=1e-9)


def test_the_rewards_kept_back_are_learned_as_if_they_had_come_then():
    keys = np.random.default_rng(3).integers(0, 4, 400)
    options = PRINTED | {"epsilon": 0.3}
    alone, waiting = (CooperativeDalton(8, **options) for _ in range(2))
    for partitioner in (alone, waiting):
        reducer = QTableReducer(1, 8, interval=1.0)
        for _ in range(2):
            partitioner.route(keys)
            reducer.add(partitioner.due())
            partitioner.receive(reducer.reduce(0.0, 0.0))
    reducer.add(waiting.due())
    alone.due()
    alone.receive(common := reducer.reduce(0.0, 0.0))
    one = np.array([2])
    for partitioner in (alone, waiting):  # one key, so that both choose and earn the same until the values differ
        partitioner.route(one)
    waiting.receive(common)
    np.testing.assert_allclose(alone.values(2), waiting.values(2), atol=1e-8)


def told_and_answered(workers: int = 2):
    """A partitioner that awaits, its reducer's broadcast, and the reducer."""
    partitioner = CooperativeDalton(workers, **PRINTED)
    reducer = QTableReducer(1, workers, interval=10.0)
    for _ in range(2):
        partitioner.route(np.array([7, 7, 7, 8]))
        reducer.add(partitioner.due())
        common = reducer.reduce(0.0, 0.0)
        if partitioner.awaiting and common.round == 0:
            partitioner.receive(common)
    return partitioner, common, reducer


def test_a_broadcast_that_answers_no_message_is_refused_and_changes_nothing():
    partitioner, common, _reducer = told_and_answered()
    partitioner.receive(common)
    values = partitioner.values(7).copy()
    with pytest.raises(SkewlessError, match=r"awaits no broadcast: .* call due\(\)"):
        partitioner.receive(common)
    np.testing.assert_array_equal(partitioner.values(7), values)
    fresh = CooperativeDalton(2, **PRINTED)
    for merge in ("normalised", "shared"):
        with pytest.raises(SkewlessError, match="awaits no broadcast"):
            CooperativeDalton(2, merge=merge, **PRINTED).receive(common)
    assert fresh.due() is not None  # and now it awaits that of round 0
    with pytest.raises(SkewlessError, match="ends round 1, but this partitioner awaits that of round 0"):
        fresh.receive(common)


def test_tables_of_another_number_of_workers_are_refused():
    partitioner, common, _reducer = told_and_answered(4)
    narrow = CooperativeDalton(2, **PRINTED)
    with pytest.raises(SkewlessError, match="of 4 workers, but this partitioner routes to 2"):
        narrow.start(common)
    message = CooperativeDalton(2, **PRINTED).due()
    with pytest.raises(SkewlessError, match="of a partitioner of 2 workers, but the reducer has 4"):
        QTableReducer(1, 4, interval=1.0).add(message)
    assert partitioner.awaiting


def test_shared_loads_of_another_number_of_workers_are_refused_before_anything_is_taken_over():
    wide, narrow = CooperativeDalton(8, **PRINTED), CooperativeDalton(4, **PRINTED)
    reducer = QTableReducer(1, 8, interval=1.0, merge="shared")
    for partitioner in (wide, narrow):
        partitioner.route(np.full(50, 1))
    reducer.add(wide.due())
    narrow.due()
    common = reducer.reduce(0.0, 0.0)
    for take_over in (narrow.receive, narrow.start):
        with pytest.raises(SkewlessError, match="of 8 workers, but this partitioner routes to 4; give the reducer"):
            take_over(common)
    assert narrow.awaiting
    assert narrow.hot.keys.tolist() == []
    wide.receive(common)
    assert wide.hot.keys.tolist() == [1]


def test_late_partitioners_ask_once_until_they_are_answered():
    asked = CooperativeDalton(2, **PRINTED)
    reducer = QTableReducer(1, 2, interval=10.0)
    asks = []
    for _ in range(4):
        told = asked.due()
        asks.append(told.double)
        reducer.add(told)
        assert asked.due() is None
        asked.receive(reducer.reduce(0.0, 1.0))
    assert asks == [False, True, False, True]


def test_values_are_weighted_by_how_often_each_had_the_key():
    first = message([7], [[-0.4, -2.0]], [4], {7: 30}, tuples=60)
    second = message([7], [[-0.8, -1.0]], [4], {7: 10}, tuples=40)
    np.testing.assert_allclose(merged(first, second).values, [[-0.5, -1.75]])
    # As printed: (0.3 x -0.4 + 0.1 x -0.8) / 2 and (0.3 x -2 + 0.1 x -1) / 2, so that the untried worker looks better.
    np.testing.assert_allclose(merged(first, second, merge="printed").values, [[-0.1, -0.35]])


def test_a_partitioner_without_the_key_has_no_say():
    common = merged(
        message([7], [[-0.4, -2.0]], [4], {7: 30}, tuples=60), message([], [], [], {7: 35, 9: 5}, tuples=40)
    )
    assert common.keys.tolist() == [7]
    np.testing.assert_allclose(common.values, [[-0.4, -2.0]])


def test_hot_keys_are_those_of_all_partitioners_together_and_new_ones_start_low():
    # A fair share of 100 tuples on 2 workers is 50: no partitioner has it of key 9, but both together do.
    common = merged(message(counts={9: 30}, tuples=50), message(counts={9: 20, 8: 30}, tuples=50))
    assert common.keys.tolist() == [9]
    assert common.until.tolist() == [4]
    np.testing.assert_array_equal(common.values, [[-2.0, -2.0]])
    assert common.load == 100


def test_no_heavy_hitter_is_missed_as_each_tells_as_many_keys_as_can_be_hot():
    # With half a fair share of 4 workers eight keys can be hot, and each of these has just that.
    keys = np.repeat(np.arange(20, 28), 3)
    team = [CooperativeDalton(4, **(PRINTED | {"hot_at": 0.5})) for _ in range(2)]
    reducer = QTableReducer(2, 4, interval=1.0, hot_at=0.5)
    for partitioner in team:
        partitioner.route(keys)
        told = partitioner.due()
        assert sorted(told.counted.tolist()) == list(range(20, 28))
        reducer.add(told)
    assert reducer.reduce(0.0, 0.0).keys.tolist() == list(range(20, 28))


def test_a_key_that_became_hot_since_the_message_stays_hot_though_the_common_table_has_it_not():
    partitioner, reducer = CooperativeDalton(2, **PRINTED), QTableReducer(1, 2, interval=1.0)
    partitioner.route(np.full(8, 7))
    reducer.add(partitioner.due())
    partitioner.receive(reducer.reduce(0.0, 0.0))  # from now on a key is hot from 4 tuples
    partitioner.route(np.full(8, 7))
    reducer.add(partitioner.due())
    common = reducer.reduce(0.0, 0.0)
    partitioner.route(np.full(6, 9))
    learned = partitioner.values(9).copy()
    assert sorted(partitioner.hot.keys.tolist()) == [7, 9]
    assert common.keys.tolist() == [7]
    partitioner.receive(common)
    assert sorted(partitioner.hot.keys.tolist()) == [7, 9]
    assert (partitioner.values(9) >= learned).all()
    assert (partitioner.values(9) > learned).any()  # and what was kept back of it is learned


def test_a_key_expires_with_the_latest_of_its_expiries():
    known = {"values": [[-1.0, -1.0]], "tuples": 50}
    kept = merged(message([7], until=[3], counts={7: 5}, **known), message([7], until=[4], counts={7: 1}, **known))
    assert (kept.keys.tolist(), kept.until.tolist()) == ([7], [4])
    other = merged(message([7], until=[4], counts={7: 5}, **known), message([7], until=[3], counts={7: 1}, **known))
    assert (other.keys.tolist(), other.until.tolist()) == ([7], [4])
    gone = merged(message([7], until=[3], counts={7: 5}, **known), message([7], until=[3], counts={7: 1}, **known))
    assert gone.keys.tolist() == []


def test_a_key_that_the_common_table_lost_is_no_longer_hot():
    partitioner = CooperativeDalton(2, **PRINTED)
    hot = []
    for keys in ([7] * 6, [7, 8, 9, 10], [11, 12, 13, 14], [15, 16, 17, 18]):
        partitioner.route(np.array(keys))
        reducer = QTableReducer(1, 2, interval=1.0)
        reducer.add(partitioner.due())
        partitioner.receive(reducer.reduce(0.0, 0.0))
        hot.append(partitioner.hot.keys.tolist())
    assert hot == [[7], [7], [], []]


def test_shared_loads_and_fragments_are_those_of_the_others_until_they_tell_anew():
    first, second = (CooperativeDalton(16, **(PRINTED | {"epsilon": 1.0}), seed=seed) for seed in (1, 2))
    sent: list[list[int]] = [[], []]
    for _ in range(3):
        reducer = QTableReducer(2, 16, interval=1.0, merge="shared")
        for partitioner, own in zip((first, second), sent, strict=True):
            own += partitioner.route(np.full(2, 7)).tolist()
            reducer.add(partitioner.due())
        common = reducer.reduce(0.0, 0.0)
        for partitioner in (first, second):
            partitioner.receive(common)
        every = np.bincount(sent[0] + sent[1], minlength=16)
        assert first.loads.tolist() == second.loads.tolist() == every.tolist()
    # The first two tuples of each came before the key was hot, which no fragments are kept of.
    hot = [set(own[2:]) for own in sent]
    assert hot[0] - hot[1]
    assert hot[1] - hot[0]
    assert first.fragments(7) == second.fragments(7) == len(hot[0] | hot[1])
    first.route(np.full(1, 7))
    assert (first.loads.sum(), second.loads.sum()) == (13, 12)
    for _ in range(first.slides):
        first.end_slide()  # what is its own has left the window, and what others told is still there
    assert first.loads.tolist() == np.bincount(sent[1], minlength=16).tolist()
    assert first.fragments(7) == len(hot[1])


def test_one_like_another_has_its_options_and_a_seed_of_its_own():
    like = CooperativeDalton.as_printed(4, slide=None, slides=3).again(seed=5)
    assert (like.workers, like.slides, like.stats_window) == (4, 3, None)
    assert (like.hot.state.hot_at, like.bandit.random[0]) == (1.0, 5)


def test_messages_are_merged_once_all_are_there_and_of_one_round():
    reducer = QTableReducer(2, 2, interval=1.0)
    reducer.add(message(tuples=3))
    with pytest.raises(SkewlessError, match="1 of 2 messages are there"):
        reducer.reduce(0.0, 0.0)
    with pytest.raises(SkewlessError, match=r"of round 4, but those that are there are of round 3.*different rounds"):
        reducer.add(message(round=4))
    assert reducer.add(message(tuples=2))
    assert reducer.reduce(0.0, 0.0).load == 5  # what was refused neither lost nor added a message


def test_a_message_is_counted_once():
    reducer, first, second = QTableReducer(2, 2, interval=1.0), message(tuples=3), message(tuples=2)
    reducer.add(first)
    with pytest.raises(SkewlessError, match=r"message of round 3 was added already; add the message of each .* once"):
        reducer.add(first)
    assert reducer.add(second)
    with pytest.raises(SkewlessError, match="all 2 partitioners are there; reduce them before you add another"):
        reducer.add(message(tuples=9))
    assert reducer.reduce(0.0, 0.0).load == 5
    with pytest.raises(SkewlessError, match="of round 3, but round 3 was merged already"):
        reducer.add(second)
    assert reducer.add(message(round=4)) is False  # what came late does not stand in the way of the next round
    assert reducer.add(message(), query="another") is False


@pytest.mark.parametrize("seconds", [-3.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["start", "work"])
def test_a_round_takes_a_finite_time_or_is_not_merged(name, seconds):
    reducer = QTableReducer(1, 2, interval=1.0)
    reducer.add(message(tuples=3))
    with pytest.raises(SkewlessError, match=f"{name} is {seconds} seconds; give a finite number, at least 0"):
        reducer.reduce(**({"start": 0.0, "work": 0.0} | {name: seconds}))
    assert reducer.free == 0.0
    assert reducer.reduce(0.0, 0.0).load == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partitioners": 0}, "partitioners is 0; give a whole number from 1"),
        ({"partitioners": 2.5}, "partitioners is 2.5; give a whole number from 1"),
        ({"partitioners": True}, "partitioners is True; give a whole number from 1"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 4.5}, "workers is 4.5; give a whole number from 1"),
        ({"interval": 0.0}, "interval is 0.0 seconds"),
        ({"interval": np.inf}, "interval is inf seconds"),
        ({"shortest": 0.0}, "shortest is 0.0 seconds"),
        ({"shortest": -1.0}, "shortest is -1.0 seconds"),
        ({"shortest": 100.0}, "shortest is 100.0 seconds, but interval, .* is 1.0; give at most 1.0"),
        ({"hot_at": 0.0}, "hot_at is 0.0; give a share"),
        ({"hot_at": -1.0}, "hot_at is -1.0; give a share"),
        ({"merge": "mean"}, "normalised, printed, shared"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(SkewlessError, match=words):
        QTableReducer(**({"partitioners": 2, "workers": 4, "interval": 1.0} | options))


@pytest.mark.parametrize("option", [{"stats_window": 5}, {"statistics": "countmin"}])
def test_options_that_learning_together_fixes_are_refused_by_name(option):
    (name,) = option
    with pytest.raises(SkewlessError, match=f"{name} is always .*; omit {name}"):
        CooperativeDalton(4, **option)
