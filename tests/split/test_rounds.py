"""Partitioners that live for one round: what they tell is what they learned, and any table can learn it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import metrics
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.split import Bounded, Broadcast, Changes, CooperativeDalton
from skewless.split.hot import THRESHOLD
from skewless.split.q_table import learned
from skewless.workload import Zipf

WORKERS, HOT_AT = 8, 0.1


def table(keys=(), values=None, until=None, load=0, counts=None, partitioners=1, workers=WORKERS, **more):
    keys = np.array(keys, dtype=np.int64)
    values = np.full((len(keys), workers), -2.0) if values is None else np.array(values, dtype=np.float64)
    until = np.ones(len(keys), dtype=np.int64) if until is None else np.array(until)
    counts = np.zeros(len(keys), dtype=np.int64) if counts is None else np.array(counts)
    return Broadcast(keys, values, until, load, 0.0, counts=counts, partitioners=partitioners, **more)


def told(keys=(), kept=(), earned=(), counts=None, tuples=0, workers=2, loads=None):
    keys = np.array(keys, dtype=np.int64)
    counts = dict.fromkeys(keys.tolist(), 0) if counts is None else counts
    shape = len(keys), workers
    return Changes(
        keys,
        np.array(kept, dtype=np.float64).reshape(shape),
        np.array(earned, dtype=np.float64).reshape(shape),
        np.array(list(counts), dtype=np.int64),
        np.array(list(counts.values()), dtype=np.int64),
        tuples,
        np.zeros(workers, dtype=np.int64) if loads is None else np.array(loads),
    )


def started(common, seed=0, **options):
    own = CooperativeDalton(WORKERS, seed=seed, **options)
    own.start(common)
    return own


@given(st.integers(0, 2**32), st.integers(0, 400), st.booleans())
def test_what_is_told_makes_of_the_table_what_the_partitioner_has(seed, length, cut):
    chance = np.random.default_rng(seed)
    keys = chance.zipf(1.5, length) % 50
    known = np.arange(4)
    common = table(known, chance.uniform(-2, 0, (4, WORKERS)), load=300, counts=np.full(4, 20))
    own = started(common, seed)
    half = length // 2 if cut else 0
    routed = np.concatenate([own.route(keys[:half]), own.route(keys[half:])])
    changes = own.changes()
    assert changes.tuples == length
    assert changes.loads.tolist() == np.bincount(routed, minlength=WORKERS).tolist()
    assert set(known.tolist()) <= set(changes.keys.tolist())
    for key, kept, earned in zip(changes.keys.tolist(), changes.kept, changes.earned, strict=True):
        before = common.values[key] if key < 4 else np.full(WORKERS, -2.0)
        np.testing.assert_allclose(kept * before + earned, own.values(key), atol=1e-7)
        if key < 4:  # hot from the first tuple on, each of which is a step of gamma
            np.testing.assert_allclose(kept, 0.9 ** np.bincount(routed[keys == key], minlength=WORKERS), rtol=1e-9)
    assert (
        dict(zip(changes.counted.tolist(), changes.counts.tolist(), strict=True)).items()
        <= {key: int((keys == key).sum()) for key in range(50)}.items()
    )


def test_telling_changes_nothing_of_what_is_learned():
    keys = Zipf(1.5, seed=3).take(20_000)
    common = table([0, 1], load=20_000, counts=[7000, 3000])
    telling, silent = started(common), started(common)
    silent.bandit = silent.bandit._replace(buffered=np.zeros((0, WORKERS, 2)))
    assert telling.route(keys).tolist() == silent.route(keys).tolist()


def test_a_task_finds_a_hot_key_by_its_share_of_the_load():
    assert started(table(load=8000, partitioners=4)).hot.state.meta[THRESHOLD] == 25  # a tenth of 2000 / 8
    assert started(table(), slide=8000).hot.state.meta[THRESHOLD] == 100  # nothing is known but the slide
    nothing = started(table(), slide=None)
    routed = nothing.route(np.zeros(10_000, dtype=np.int64))
    assert set(routed.tolist()) == set(homes(np.zeros(1, dtype=np.int64), WORKERS).tolist())


def test_a_key_may_use_as_many_workers_as_its_share_of_all_needs():
    """Its own tuples of a task are few at first; what all tasks counted says how far it may be split."""
    tuples = np.full(2000, 7)
    new = started(table([7], load=16_000, counts=[0], partitioners=8), epsilon=1.0)
    known = started(table([7], load=16_000, counts=[16_000], partitioners=8), epsilon=1.0)
    assert len(set(known.route(tuples[:40]).tolist())) > len(set(new.route(tuples[:40]).tolist()))


def test_rewards_are_learned_by_the_table_of_now_though_they_came_from_an_older_one():
    now = table([7, 8], [[-1.0, -0.4], [-0.2, -0.3]], until=[5, 5], workers=2)
    # Three of four tuples of key 7 were with the first task, which started from some other values.
    first = told([7], [[0.9, 1.0]], [[-0.05, 0.0]], {7: 3}, tuples=4)
    second = told([7], [[1.0, 0.81]], [[0.0, -0.1]], {7: 1}, tuples=4)
    common = learned(now, 4, [first, second], 2, 1.0, "normalised")
    q7 = [0.75 * (0.9 * -1.0 - 0.05) + 0.25 * -1.0, 0.75 * -0.4 + 0.25 * (0.81 * -0.4 - 0.1)]
    # Nobody had key 8, which is hot until the next round: it stays as it was.
    np.testing.assert_allclose(common.values, [q7, [-0.2, -0.3]], atol=1e-8)
    assert (common.load, common.until.tolist(), common.counts.tolist(), common.partitioners) == (8, [5, 5], [4, 0], 2)
    printed = learned(now, 4, [first, second], 2, 1.0, "printed")
    np.testing.assert_allclose(printed.values[0], np.array(q7) * 4 / 8 / 2, atol=1e-8)


def test_a_key_is_hot_for_a_round_and_the_next_and_begins_again_later():
    common = learned(table(workers=2), 0, [told(counts={7: 6, 8: 2}, tuples=8)], 2, 1.0, "normalised")
    assert (common.keys.tolist(), common.until.tolist(), common.values.tolist()) == ([7], [1], [[-2.0, -2.0]])
    common = learned(common, 1, [told([7], [[0.5, 1.0]], [[-0.1, 0.0]], {7: 0, 8: 8}, tuples=8)], 2, 1.0, "normalised")
    assert common.keys.tolist() == [8]  # 7 was hot until round 1
    late = told([7], [[0.5, 1.0]], [[-0.1, 0.0]], {7: 9}, tuples=9)  # a task that started from the table with 7
    common = learned(common, 2, [late], 2, 1.0, "normalised")
    assert common.keys.tolist() == [7]
    np.testing.assert_allclose(common.values, [[0.5 * -2.0 - 0.1, -2.0]])


def test_shared_also_tells_loads_and_fragments():
    common = learned(
        table([7], workers=2),
        0,
        [
            told([7], [[0.5, 1.0]], [[0.0, 0.0]], {7: 6}, 8, loads=[6, 2]),
            told([7], [[0.5, 0.5]], [[0.0, 0.0]], {7: 6}, 8, loads=[4, 4]),
        ],
        2,
        1.0,
        "shared",
    )
    assert (common.loads.tolist(), common.holders.tolist()) == ([10, 6], [[2, 1]])
    own = CooperativeDalton(2, merge="shared")
    own.start(common)
    assert own.loads.tolist() == [5, 3]  # as one task had them
    assert own.fragments(7) == 2
    own.route(np.array([7]))
    assert int(own.changes().loads.sum()) == 1


def rounds(batches, tasks, merge, workers=WORKERS, lag=2):
    """The workers of every micro-batch, whose tasks have the table of `lag` rounds before."""
    tables, routed = [table(workers=workers)], []
    for number, keys in enumerate(batches):
        told, parts = [], []
        for task, part in enumerate(np.array_split(keys, tasks)):
            own = CooperativeDalton(workers, seed=1000 * number + task, merge=merge)
            own.start(tables[max(0, len(tables) - lag)])
            parts.append(own.route(part))
            told.append(own.changes())
        tables.append(learned(tables[-1], len(tables) - 1, told, workers, HOT_AT, merge))
        routed.append(np.concatenate(parts))
    return routed


def test_tasks_that_learn_together_are_even_though_each_has_few_tuples():
    batches = np.split(Zipf(1.5, seed=1).take(8 * 100_000), 8)
    balance = {}
    for merge in ("normalised", "printed", "shared"):
        routed = rounds(batches, 8, merge, 16)
        balance[merge] = [metrics.max_over_avg(each, 16) for each in routed]
    alone = [Bounded(16).for_task().route(part) for part in np.array_split(batches[-1], 8)]
    assert balance["normalised"][0] > 1.2  # nothing is known yet
    assert max(balance["normalised"][5:]) < 1.05
    assert max(balance["printed"][5:]) < 1.05
    assert max(balance["shared"][5:]) > 1.1  # what was too much in one micro-batch is made up for in another
    assert metrics.max_over_avg(np.concatenate(alone), 16) < 1.1  # and bounded needs no table


def test_a_merge_that_there_is_not_is_refused():
    with pytest.raises(SkewlessError, match="merge is 'mean'; choose one of normalised, printed, shared"):
        CooperativeDalton(4, merge="mean")
