from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import Cluster

SEEDS = pytest.mark.parametrize("seed", [1, 2, 3])


def rows_per_key(keys: np.ndarray) -> np.ndarray:
    return np.sort(np.unique(keys, return_counts=True)[1])[::-1]


def test_a_stream_is_the_same_however_it_is_cut_and_starts_again() -> None:
    stream = Cluster(seed=3)
    whole, cut = stream.take(10_000), list(stream.blocks(10_000, block=3_001))
    assert [len(block) for block in cut] == [3_001, 3_001, 3_001, 997]
    for column in fields(whole):
        pieces = np.concatenate([getattr(block, column.name) for block in cut])
        assert pieces.tolist() == getattr(whole, column.name).tolist()
    assert len(stream.take(0)) == 0


def test_time_never_goes_back() -> None:
    assert np.diff(Cluster(seed=3).take(20_000).time).min() >= 0


# Of 10,000 real submissions: 588 jobs, the largest with 38.8 % of the tasks and ten with 69.3 %; tasks per job at the
# quantiles 0.5, 0.75, 0.9 and 0.99 are 1, 3, 10, 259; each job is one run of rows; half of the jobs ask for
# up to 0.031.
@SEEDS
def test_submissions_have_the_shape_of_real_ones(seed: int) -> None:
    events = Cluster(seed=seed).take(10_000)
    rows = rows_per_key(events.job)
    assert 250 <= len(rows) <= 1_200
    assert 0.1 <= rows[0] / 10_000 <= 0.5
    assert 0.55 <= rows[:10].sum() / 10_000 <= 0.9
    assert np.quantile(rows, [0.5, 0.75]) == pytest.approx([1, 3], abs=1)
    assert 7 <= np.quantile(rows, 0.9) <= 20
    assert 80 <= np.quantile(rows, 0.99) <= 600
    assert np.count_nonzero(np.diff(events.job)) == len(rows) - 1
    per_job = events.cpu[np.unique(events.job, return_index=True)[1]]
    assert np.median(per_job) == pytest.approx(0.031, rel=0.3)


# Of the same jobs 0.075, 0.078, 0.413 and 0.434 are in the four classes; 0.02, 0.01, 0.63 and 0.34 are shares of tasks.
@SEEDS
def test_jobs_have_the_classes_of_real_ones(seed: int) -> None:
    events = Cluster(seed=seed).take(200_000)
    per_job = events.category[np.unique(events.job, return_index=True)[1]]
    shares = np.bincount(per_job, minlength=4) / len(per_job)
    assert shares == pytest.approx([0.075, 0.078, 0.413, 0.434], abs=0.02)


def test_the_hot_job_of_a_batch_is_another_one_each_time() -> None:
    hottest = [int(np.bincount(batch.job).argmax()) for batch in Cluster(seed=1).blocks(100_000, 10_000)]
    assert len(set(hottest)) >= 8


def test_a_stream_without_a_rate_is_refused() -> None:
    with pytest.raises(SkewlessError, match="tasks_per_second is 0; give more than 0"):
        Cluster(tasks_per_second=0)
