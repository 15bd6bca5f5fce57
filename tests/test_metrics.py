from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import metrics
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.home import homes

N = 5
KEYS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)
ROUTINGS = st.lists(st.tuples(KEYS, st.integers(0, N - 1)), min_size=1, max_size=300)


def arrays(routing: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([key for key, _ in routing], np.int64), np.array([worker for _, worker in routing], np.int32)


@settings(deadline=None)
@given(ROUTINGS)
def test_fragments_are_the_distinct_pairs_of_key_and_worker(routing: list[tuple[int, int]]) -> None:
    keys, workers = arrays(routing)
    assert metrics.fragments(keys, workers, N) == len(set(routing))
    expected = len(set(routing)) / len({key for key, _ in routing})
    assert metrics.fragments_per_key(keys, workers, N) == expected
    assert metrics.ksr(keys, workers, N) == expected


@settings(deadline=None)
@given(ROUTINGS, st.sampled_from([0.5, 1.0, 2.0]))
def test_hot_keys_are_those_with_a_share_of_a_fair_load(routing: list[tuple[int, int]], hot_at: float) -> None:
    keys, workers = arrays(routing)
    tuples = Counter(key for key, _ in routing)
    on = {key: len({worker for other, worker in routing if other == key}) for key in tuples}
    hot = [on[key] for key, times in tuples.items() if times >= max(1, hot_at * len(routing) / N)]
    expected = sum(hot) / len(hot) if hot else float("nan")
    assert metrics.hot_fragments(keys, workers, N, hot_at) == pytest.approx(expected, nan_ok=True)
    most = max(tuples.values())
    assert metrics.top_fragments(keys, workers, N) == max(on[key] for key, times in tuples.items() if times == most)


def test_the_tail_does_not_hide_a_key_on_all_workers() -> None:
    keys = np.concatenate([np.zeros(1_000, np.int64), np.arange(1, 1_001)])
    workers = np.concatenate([np.arange(1_000) % N, np.zeros(1_000)]).astype(np.int32)
    assert metrics.fragments_per_key(keys, workers, N) < 1.01
    assert metrics.hot_fragments(keys, workers, N) == metrics.top_fragments(keys, workers, N) == N


@settings(deadline=None)
@given(ROUTINGS, st.integers(1, 4))
def test_aggregation_cost_is_the_fragments_of_the_busiest_reducer(
    routing: list[tuple[int, int]], reducers: int
) -> None:
    received = [0] * reducers
    for key, _ in set(routing):
        received[int(xxhash64(np.array([key]))[0]) % reducers] += 1
    assert metrics.aggregation_cost(*arrays(routing), N, reducers) == max(received)


@settings(deadline=None)
@given(ROUTINGS)
def test_imbalances_are_maximum_less_average(routing: list[tuple[int, int]]) -> None:
    keys, workers = arrays(routing)
    sizes = [sum(worker == w for _, worker in routing) for w in range(N)]
    cardinalities = [len({key for key, worker in routing if worker == w}) for w in range(N)]
    assert metrics.loads(workers, N).tolist() == sizes
    assert metrics.bsi(workers, N) == pytest.approx(max(sizes) - sum(sizes) / N)
    assert metrics.imbalance(workers, N) == metrics.bsi(workers, N)
    assert metrics.max_over_avg(workers, N) == pytest.approx(max(sizes) / (sum(sizes) / N))
    assert metrics.bci(keys, workers, N) == pytest.approx(max(cardinalities) - sum(cardinalities) / N)


def test_many_distinct_keys_are_all_counted() -> None:
    keys = np.arange(300_000, dtype=np.int64) << 40
    workers = (np.arange(300_000) % N).astype(np.int32)
    assert metrics.fragments(np.tile(keys, 2), np.tile(workers, 2), N) == 300_000


def test_a_strided_view_is_measured_like_its_copy() -> None:
    keys, workers = np.arange(100) // 3, (np.arange(100) % 4).astype(np.int32)
    assert metrics.fragments(keys[::3], workers[::3], 4) == metrics.fragments(keys[::3].copy(), workers[::3].copy(), 4)


@pytest.mark.parametrize(("weights", "expected"), [((1, 0, 0), 1.0), ((0, 1, 0), 0.5), ((0, 0, 1), 1.5)])
def test_mpi_weighs_size_cardinality_and_split(weights: tuple[float, float, float], expected: float) -> None:
    keys, blocks = np.array([7, 7, 7, 9]), np.array([0, 0, 1, 0], np.int32)
    assert metrics.mpi(keys, blocks, 2, *weights) == expected


def test_mpi_refuses_weights_that_do_not_add_up() -> None:
    with pytest.raises(SkewlessError, match="add up to 1"):
        metrics.mpi(np.array([7]), np.array([0], np.int32), 1, p1=0.9)


@pytest.mark.parametrize(
    ("loads", "score"), [([4, 5, 5, 5, 5], 6.67), ([5, 5], 0.0), ([0, 0, 0], 0.0), ([9, 0, 0, 0], 100.0)]
)
def test_data_skew_is_flinks(loads: list[int], score: float) -> None:
    assert metrics.data_skew(np.array(loads)) == pytest.approx(score, abs=0.005)


def test_no_workers_have_no_skew_to_score() -> None:
    with pytest.raises(SkewlessError, match="no workers"):
        metrics.data_skew(np.array([], np.int64))


@pytest.mark.parametrize(
    ("keys", "workers", "n", "message"),
    [
        ([], [], 2, "empty routing"),
        ([1, 2], [0, 2], 2, "from 0 to 1, but the routing has 0 to 2"),
        ([1, 2], [0, -1], 2, "from 0 to 1, but the routing has -1 to 0"),
        ([1, 2], [0, 0], 0, "at least 1, not 0"),
        ([1, 2], [0], 2, "1 workers for 2 keys"),
    ],
)
def test_what_is_no_routing_is_refused(keys: list[int], workers: list[int], n: int, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        metrics.fragments(np.array(keys, np.int64), np.array(workers, np.int32), n)


def test_there_is_at_least_one_reducer() -> None:
    with pytest.raises(SkewlessError, match="reducers must be at least 1"):
        metrics.aggregation_cost(np.array([1]), np.array([0], np.int32), 1, reducers=0)


KEYS_OF_SIX = np.array([1, 1, 1, 1, 2, 3])


def test_the_costs_of_a_partitioning_are_those_of_its_formulas() -> None:
    keys, blocks = KEYS_OF_SIX, np.array([0, 0, 0, 1, 1, 1], np.int32)
    costs = metrics.prompt_costs(keys, blocks, 2)
    # Blocks of three tuples each; keys 1 | 1 2 3: the most is 3, the average 2; four fragments of three keys.
    assert (costs.bsi, costs.bci, costs.ksr) == (0.0, 1.0, pytest.approx(4 / 3))
    assert costs.mpi == pytest.approx((0 + 1 + 4 / 3) / 3)


def test_costs_relative_to_hashing_and_to_shuffling() -> None:
    keys, blocks = KEYS_OF_SIX, np.array([0, 0, 0, 1, 1, 1], np.int32)
    to_hash = metrics.prompt_costs_relative(keys, blocks, 2, "hash")
    assert to_hash.bsi == 0.0
    assert to_hash.ksr == pytest.approx(4 / 3)
    assert to_hash.bci == pytest.approx(1 / metrics.bci(keys, homes(keys, 2), 2))
    # Dealt out, block 0 has 1 1 2 and block 1 has 1 1 3: two keys each, four fragments.
    to_shuffle = metrics.prompt_costs_relative(keys, blocks, 2, "shuffle")
    assert to_shuffle.bci == np.inf
    assert to_shuffle.bsi == 1.0  # nothing over nothing
    assert to_shuffle.ksr == pytest.approx(1.0)
    assert to_shuffle.mpi == pytest.approx(((1 + 4 / 3) / 3) / ((4 / 3) / 3))


@pytest.mark.parametrize("to", ["hash", "shuffle"])
def test_a_partitioning_relative_to_itself_costs_1(to: str) -> None:
    keys = np.random.default_rng(1).zipf(1.5, 1_000)
    blocks = homes(keys, N) if to == "hash" else (np.arange(1_000) % N).astype(np.int32)
    assert metrics.prompt_costs_relative(keys, blocks, N, to) == metrics.PromptCosts(1.0, 1.0, 1.0, 1.0)


def test_costs_relative_to_anything_else_are_refused() -> None:
    with pytest.raises(SkewlessError, match="to is 'dalton'; choose hash or shuffle"):
        metrics.prompt_costs_relative(np.array([7]), np.array([0], np.int32), 1, "dalton")


def test_the_makespan_is_the_longest_map_task_and_the_longest_reduce_task() -> None:
    assert metrics.makespan(np.array([1.0, 4.0, 2.0]), np.array([3.0, 0.5])) == 7.0
    with pytest.raises(SkewlessError, match="2 map and 0 reduce times; give at least one of each"):
        metrics.makespan(np.array([1.0, 4.0]), np.array([]))
