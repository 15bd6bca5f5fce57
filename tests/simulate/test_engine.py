"""The simulated cluster: against queues worked out by hand, and against a cluster in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import metrics, split
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.windows import Windows
from skewless.simulate import Cluster, Costs, MicroBatches, Partitioners, Recorded, Source, run, steps, sustainable
from skewless.workload import Zipf
from tests.support import plain_cluster

TICK = 1 / 64  # a power of two, so that sums of times are exact
ONE_SECOND = Windows.of("1 second")


class Modulo:
    """Sends a tuple where its key says."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def route(self, keys):
        return (keys % self.workers).astype(np.int32)


def source(keys, rate):
    return Source(Recorded(np.array(keys, dtype=np.int64)), rate)


def cluster(combiners=1, reducers=1, windows=ONE_SECOND, **options):
    costs = {name: options.pop(name, 0.0) for name in ("route", "tuple", "emit", "partial", "key")}
    return Cluster(combiners, reducers, windows, Costs(**costs), **options)


@settings(max_examples=150)
@given(
    keys=st.lists(st.integers(0, 9), min_size=1, max_size=60),
    rate=st.sampled_from([4.0, 8.0, 16.0]),
    sources=st.integers(1, 3),
    partitioners=st.integers(1, 3),
    combiners=st.integers(1, 4),
    reducers=st.integers(1, 3),
    slides=st.integers(1, 3),
    costs=st.tuples(*[st.sampled_from([0, 1, 3, 20])] * 5),
)
def test_a_cluster_is_the_same_as_one_in_plain_python(
    keys, rate, sources, partitioners, combiners, reducers, slides, costs
):
    seconds = 4
    windows = Windows(slides * 1_000_000, 1_000_000)
    names = ("route", "tuple", "emit", "partial", "key")
    made = cluster(combiners, reducers, windows, **{n: c * TICK for n, c in zip(names, costs, strict=True)})
    # Sources start with different keys; tuples of equal time are those of the first source first.
    streams = [np.roll(keys, shift) for shift in range(sources)]
    tuples = sorted(
        (i / rate, s, int(stream[i % len(keys)]), (s + sources * i) % partitioners)
        for s, stream in enumerate(streams)
        for i in range(int(seconds * rate))
    )
    tuples = [(time, key, p, key % combiners) for time, _, key, p in tuples]
    plain = plain_cluster.simulate(made, tuples, partitioners, seconds)
    found = run(
        made,
        [source(stream, rate) for stream in streams],
        Partitioners(*(Modulo(combiners) for _ in range(partitioners))),
        seconds,
    )
    np.testing.assert_allclose(found.latency, [np.mean(plain.latency[s]) for s in range(seconds)])
    np.testing.assert_allclose(found.longest, [np.max(plain.latency[s]) for s in range(seconds)])
    np.testing.assert_allclose(found.delay, plain.delay)
    assert found.partials.tolist() == plain.partials
    assert found.gamma.tolist() == plain.gamma
    assert found.keys.tolist() == found.results.tolist() == plain.keys
    assert found.loads.tolist() == plain.loads
    np.testing.assert_allclose(found.imbalance, [max(loads) - sum(loads) / combiners for loads in plain.loads])


@settings(max_examples=80)
@given(
    keys=st.lists(st.integers(0, 9), min_size=1, max_size=60),
    rate=st.sampled_from([4.0, 8.0, 16.0]),
    partitioners=st.integers(1, 3),
    combiners=st.integers(1, 4),
    reducers=st.integers(1, 3),
    per_slide=st.integers(1, 3),
    slides=st.integers(1, 3),
    costs=st.tuples(*[st.sampled_from([0, 1, 3, 20])] * 6),
)
def test_micro_batches_are_the_same_as_in_plain_python(
    keys, rate, partitioners, combiners, reducers, per_slide, slides, costs
):
    batches = 2 * per_slide
    windows = Windows(slides * per_slide * 1_000_000, per_slide * 1_000_000)
    names = ("route", "tuple", "emit", "partial", "key")
    prices = {name: cost * TICK for name, cost in zip(names, costs[:5], strict=True)}
    made = cluster(combiners, reducers, windows, **prices, engine=MicroBatches(1.0, overhead=costs[5] * TICK))
    tuples = [
        (i / rate, keys[i % len(keys)], i % partitioners, keys[i % len(keys)] % combiners)
        for i in range(int(batches * rate))
    ]
    plain = plain_cluster.micro_batches(made, tuples, partitioners, batches)
    team = Partitioners(*(Modulo(combiners) for _ in range(partitioners)))
    found = run(made, source(keys, rate), team, seconds=batches)
    np.testing.assert_allclose(found.delay, plain.delay)
    np.testing.assert_allclose(found.latency, [np.mean(plain.latency[step]) for step in range(batches)])
    np.testing.assert_allclose(found.longest, [np.max(plain.latency[step]) for step in range(batches)])
    assert found.partials.tolist() == plain.partials
    assert found.gamma.tolist() == plain.gamma
    assert found.keys.tolist() == found.results.tolist() == plain.keys


def test_one_worker_with_a_service_time_has_its_inverse_as_capacity():
    found = run(cluster(tuple=1 / 128), source([7], 64.0), split.Hash(1), seconds=3)
    assert found.capacity.tolist() == [128.0] * 3
    assert found.demand() == 0.5
    assert found.latency.tolist() == found.longest.tolist() == [1 / 128] * 3  # nobody waits
    assert found.throughput.tolist() == [64.0] * 3


def test_balanced_workers_have_as_many_times_the_capacity_of_one():
    found = run(cluster(4, tuple=1 / 128), source(range(4), 64.0), Modulo(4), seconds=2)
    assert found.capacity.tolist() == [4 * 128.0] * 2


def test_a_known_skew_is_limited_by_the_heaviest_worker():
    # Five of eight tuples are of one worker, which can do 128 a second: all in all 128 x 8 / 5.
    found = run(cluster(4, tuple=1 / 128), source([0, 0, 0, 0, 0, 1, 2, 3], 64.0), Modulo(4), seconds=2)
    assert found.capacity.tolist() == pytest.approx([128 * 8 / 5] * 2)
    assert found.imbalance.tolist() == [40 - 16] * 2
    assert found.max_over_avg.tolist() == [2.5] * 2


def test_hash_on_zipf_has_the_capacity_that_the_frequencies_of_its_keys_say():
    zipf, n = Zipf(1.5, keys=1000, seed=2), 16
    heaviest = np.bincount(homes(np.arange(1000), n), zipf.frequencies, minlength=n).max()
    found = run(cluster(n, tuple=1e-3), Source(zipf, 50_000.0), split.Hash(n), seconds=2)
    assert found.capacity.mean() == pytest.approx(1000 / heaviest, rel=0.02)


def test_latency_grows_linearly_when_overloaded():
    # 96 tuples a second for a worker that can do 64: after t seconds t/2 seconds of work are waiting.
    found = run(cluster(tuple=1 / 64), source([7], 96.0), split.Hash(1), seconds=6)
    np.testing.assert_allclose(found.backlog, 0.5 * np.arange(1, 7), atol=0.02)
    np.testing.assert_allclose(np.diff(found.latency), 0.5, atol=1e-9)
    assert found.demand() == 1.5
    assert found.throughput.tolist() == pytest.approx([64.0] * 6)


def test_a_partitioner_may_be_the_bottleneck_and_two_share_the_work():
    one = run(cluster(4, route=1 / 64, tuple=1 / 256), source([0, 1, 2, 3], 96.0), Modulo(4), seconds=2)
    two = run(
        cluster(4, route=1 / 64, tuple=1 / 256),
        source([0, 1, 2, 3], 96.0),
        Partitioners(Modulo(4), Modulo(4)),
        seconds=2,
    )
    assert one.capacity.tolist() == pytest.approx([64.0] * 2)
    assert two.capacity.tolist() == pytest.approx([128.0] * 2)
    assert one.latency[1] > 0.25 > 0.05 > two.latency[1]


def test_partials_of_a_window_are_its_fragments():
    keys = Zipf(1.0, keys=500, seed=3).take(8_000)
    splitter = split.TwoChoices(8)
    routed = split.TwoChoices(8).route(keys)
    windows = Windows.of("4 seconds", "1 second")
    found = run(cluster(8, 3, windows), source(keys, 1000.0), splitter, seconds=8)
    last, sent = keys[-4000:], routed[-4000:]
    assert found.partials[-1] == metrics.fragments(last, sent, 8)
    assert found.gamma[-1] == metrics.aggregation_cost(last, sent, 8, reducers=3)
    assert found.imbalance[-1] == metrics.imbalance(sent, 8)
    assert found.keys[-1] == len(np.unique(last))
    assert found.loads[-1].tolist() == np.bincount(sent, minlength=8).tolist()


def test_when_fragments_explode_reducers_are_the_bottleneck():
    # Every key is on all 8 combiners, in a window of 100 keys: 800 partials a slide for one reducer.
    made = cluster(8, 1, ONE_SECOND, tuple=1e-4, partial=1e-3)
    keys = np.repeat(np.arange(100), 8)
    shuffled = run(made, source(keys, 800.0), split.Shuffle(8), seconds=3)
    hashed = run(made, source(keys, 800.0), split.Hash(8), seconds=3)
    assert shuffled.partials.tolist() == [800] * 3
    assert hashed.partials.tolist() == [100] * 3
    assert shuffled.capacity.tolist() == pytest.approx([1000.0] * 3)
    assert hashed.capacity.tolist() == pytest.approx([8000.0] * 3)
    assert shuffled.delay.tolist() == pytest.approx([0.8] * 3)


def test_more_reducers_share_the_partials():
    keys = np.arange(1000)
    one, four = (
        run(cluster(8, m, ONE_SECOND, partial=1e-3), source(keys, 1000.0), split.Shuffle(8), seconds=1) for m in (1, 4)
    )
    assert one.work.max() == pytest.approx(1.0)
    assert 0.25 <= four.work.max() < 0.3


def test_a_rate_that_steps_up_is_followed():
    found = run(cluster(tuple=1 / 64), Source(Recorded(np.array([1])), steps((0, 32), (2, 128))), Modulo(1), seconds=4)
    assert found.tuples.tolist() == [32, 32, 128, 128]
    assert found.backlog.tolist() == pytest.approx([0, 0, 1, 2], abs=0.02)


@pytest.mark.parametrize("partitioners", [1, 2])
def test_micro_batches_take_their_stages_one_after_the_other(partitioners):
    # 64 tuples: 40 of key 0 and 8 each of 1, 2, 3; fragments of one batch, results of all keys of the window.
    made = cluster(
        4,
        2,
        Windows.of("4 seconds", "2 seconds"),
        route=1 / 1024,
        tuple=1 / 128,
        emit=1 / 256,
        partial=1 / 64,
        key=1 / 32,
        engine=MicroBatches(1.0, overhead=0.25),
    )
    keys = [0, 0, 0, 0, 0, 1, 2, 3] * 8
    team = Partitioners(*(Modulo(4) for _ in range(partitioners)))
    found = run(made, source(keys, 64.0), team, seconds=4)
    share = [plain_cluster.reducer_of(key, 2) for key in range(4)]
    most = max(share.count(0), share.count(1))
    plain = 0.25 + 64 / partitioners / 1024 + 40 / 128 + 1 / 256 + most / 64
    assert found.work[:, 0].tolist() == pytest.approx([plain, plain + most / 32] * 2)
    assert found.partials.tolist() == [4] * 4
    assert found.results.tolist() == found.keys.tolist() == [0, 4, 0, 4]
    assert found.delay[0] == pytest.approx(plain)
    assert found.latency[0] == pytest.approx(plain + 1 - 63 / 128)


def test_the_busiest_reducer_has_partials_and_results_together():
    first, second = ([key for key in range(40) if plain_cluster.reducer_of(key, 2) == r] for r in (0, 1))
    # Five keys of one reducer, and then three of the other: 3 partials and 3 results, against 5 results.
    made = cluster(1, 2, Windows.of("2 seconds"), partial=TICK, key=TICK, engine=MicroBatches(1.0))
    keys = [*second[:5], *second[:5], *first[:3], *first[:3], *first[:3], first[0]]
    found = run(made, source(keys, 10.0), Modulo(1), seconds=2)
    assert found.work[:, 0].tolist() == [5 * TICK, 6 * TICK]


def test_micro_batches_queue_behind_each_other_when_they_take_longer_than_their_interval():
    made = cluster(1, 1, ONE_SECOND, tuple=1 / 64, engine=MicroBatches(1.0))
    found = run(made, source([5], 96.0), Modulo(1), seconds=4)
    assert found.delay.tolist() == pytest.approx([1.5, 2.0, 2.5, 3.0])
    assert found.demand() == 1.5


def test_dalton_and_prompt_see_a_micro_batch_before_they_route_it():
    keys = Zipf(1.5, seed=1)
    made = cluster(16, 2, ONE_SECOND, tuple=1e-4, engine=MicroBatches(1.0))
    for splitter in (split.Prompt(16), split.Dalton(16, slide=None, slides=1)):
        found = run(made, Source(keys, 20_000.0), splitter, seconds=3)
        assert found.max_over_avg[0] < 1.2
    hashed = run(made, Source(keys, 20_000.0), split.Hash(16), seconds=3)
    assert hashed.max_over_avg[0] > 4


def test_slides_of_time_end_with_those_of_the_cluster():
    zipf, windows = Zipf(1.2, keys=1000, seed=4), Windows.of("3 seconds", "1 second")
    splitter = split.Bounded(8, slide=None, slides=3)
    found = run(cluster(8, 1, windows), Source(zipf, 1000.0), splitter, seconds=7)
    other, keys = split.Bounded(8, slide=None, slides=3), zipf.take(7000)
    routed = []
    for part in np.split(keys, 7):
        routed.append(other.route(part))
        other.end_slide()
    assert found.loads[-1].tolist() == np.bincount(np.concatenate(routed[-3:]), minlength=8).tolist()


def test_the_fragments_of_watched_keys_are_recorded():
    made = cluster(4, 1, Windows.of("2 seconds", "1 second"))
    found = run(made, source([9, 9, 9, 9, 5, 6], 6.0), split.Shuffle(4), seconds=3, watch=[9, 77])
    assert found.watched[:, 1].tolist() == [0, 0, 0]
    assert found.watched[-1, 0] == 4


def test_what_does_not_count_is_left_out_of_the_demand():
    found = run(cluster(tuple=1 / 64), Source(Recorded(np.array([1])), steps((0, 16), (2, 32))), Modulo(1), seconds=4)
    assert found.demand() == 0.375
    assert found.demand(since=2) == 0.5
    with pytest.raises(SkewlessError, match="nothing was measured after 4 s"):
        found.demand(since=4)


def test_a_silent_stream_has_no_imbalance_and_no_bound():
    found = run(cluster(2, tuple=1.0), Source(Recorded(np.array([1])), steps((0, 0), (1, 1))), Modulo(2), seconds=2)
    assert found.tuples.tolist() == [0, 1]
    assert found.max_over_avg.tolist() == [1.0, 2.0]
    assert found.capacity.tolist() == [np.inf, 1.0]
    assert found.latency[0] == 0


def test_costs_that_leave_no_time_for_tuples_have_no_sustained_rate():
    made = cluster(1, 1, partial=2.0)
    with pytest.raises(SkewlessError, match="no rate was found"):
        sustainable(lambda rate: run(made, source([1], max(1.0, rate)), Modulo(1), 1), start=10.0)


def test_the_sustained_rate_is_that_of_the_heaviest_worker():
    made = cluster(4, tuple=1 / 128)
    for start in (1.0, 1.05 * 128 * 4 / 3, 200.0, 1e5):
        found = sustainable(lambda rate: run(made, source([0, 0, 0, 1], rate), Modulo(4), 4), start=start)
        assert 0.98 * 128 * 4 / 3 <= found.rate <= 1.01 * 128 * 4 / 3


def test_the_sustained_rate_counts_work_that_does_not_grow_with_the_rate():
    # 8 keys a combiner and slide take half a second to emit; what is left is for tuples.
    made = cluster(4, 1, tuple=1 / 128, partial=1 / 800, emit=1 / 16)
    found = sustainable(lambda rate: run(made, source(range(32), rate), Modulo(4), 6), start=100.0)
    assert found.rate == pytest.approx(4 * 128 / 2, rel=0.02)
    assert found.run.demand() <= 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cluster(0), "combiners is 0; give a whole number from 1"),
        (lambda: cluster(4, windows=Windows(5, 2)), "1, 2, 3, ... slides long"),
        (lambda: Costs(tuple=-1.0), "the cost tuple is -1.0 seconds"),
        (lambda: cluster(4, engine=MicroBatches(0.3)), "no multiple of the micro-batches"),
        (lambda: cluster(4, engine=MicroBatches(1.0), forward=True), "nothing to forward"),
        (lambda: MicroBatches(0.0), "interval is above 0"),
        (lambda: Partitioners(), "no partitioners"),
        (lambda: cluster(2.5), "combiners is 2.5; give a whole number from 1"),
        (lambda: Costs(tuple=np.inf), "the cost tuple is inf seconds"),
        (lambda: Partitioners(*[split.Hash(4)] * 2), "was given for two partitioners"),
        (
            lambda: run(cluster(8), source([1], 1.0), split.Hash(4), seconds=1),
            "Hash routes to 4 workers, but there are 8",
        ),
        (lambda: run(cluster(1), source([1], 1.0), Modulo(1), seconds=1.5), "not 1, 2, 3, ... slides"),
        (lambda: run(cluster(2), source([1, 3], 3.0), Modulo(4), seconds=1), "routes to 4 workers, but there are 2"),
        (lambda: run(cluster(1), [], Modulo(1), seconds=1), "there are no sources; give at least one"),
        (lambda: run(cluster(1), source([1], 1.0), Modulo(1), seconds=np.inf), "inf s are not 1, 2, 3, ... slides"),
        (lambda: sustainable(lambda _: None, start=0), "the first rate is 0"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_a_remedy(call, words):
    with pytest.raises(SkewlessError) as refused:
        call()
    assert words in str(refused.value)


def test_partitioners_that_have_run_are_refused_for_another_run():
    team = Partitioners(split.Hash(4), split.Hash(4))
    run(cluster(4), source(range(8), 8.0), team, seconds=2)
    with pytest.raises(SkewlessError, match="have run already; make new ones for each run"):
        run(cluster(4), source(range(8), 8.0), team, seconds=2)


def test_the_result_of_a_key_costs_whoever_emits_it():
    def work(forward):
        made = cluster(4, 2, key=0.01, forward=forward)
        return run(made, source(range(8), 8.0), split.Hash(4), seconds=3).work[:, 1:]  # all but the partitioner

    forwarded, reduced = work(True), work(False)
    assert forwarded[:, :4].sum(axis=1) == pytest.approx([0.08] * 3)
    assert forwarded[:, 4:].sum() == 0
    assert reduced[:, :4].sum() == 0
    assert reduced[:, 4:].sum(axis=1) == pytest.approx([0.08] * 3)


def test_planning_a_micro_batch_costs_its_keys_and_only_those_who_plan():
    made = Cluster(4, 1, ONE_SECOND, Costs(tuple=0.0, partial=0.0, plan=0.001), engine=MicroBatches(1.0))
    stream = source(np.arange(100) % 50, 100.0)
    planned = run(made, stream, split.Prompt(4), seconds=3)
    hashed = run(made, stream, split.Hash(4), seconds=3)
    assert planned.work[:, 0] == pytest.approx([0.05] * 3)
    assert hashed.work.sum() == 0
