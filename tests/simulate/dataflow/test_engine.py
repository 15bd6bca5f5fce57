"""Dataflows with state that moves: nothing is lost, and who waits for what."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.place import AutoFlow, Even
from skewless.simulate.dataflow import Batching, HotSpots, Instruction, Network, Stream, announced, flow

SLOTS = 6


def stream_of(seed: int, rows: int = 400, seconds: float = 4.0, hot: float = 0.0, slots: int = SLOTS) -> Stream:
    """Rows of 30 keys, a share of which are of the slots of worker 0."""
    draw = np.random.default_rng(seed)
    key = draw.integers(0, 30, rows)
    key = np.where(draw.random(rows) < hot, key // 3 * 3 % 30, key)
    return Stream(np.sort(draw.random(rows)) * seconds, key % slots, key, draw.integers(1, 100, rows))


class Scripted:
    """Moves one slot after each period, as it is told."""

    def __init__(self, workers: int, moves: list[tuple[int, int]]) -> None:
        self.owners = [slot % workers for slot in range(SLOTS)]
        self.moves = list(moves)

    def hear(self, counts: np.ndarray, busy: bool = False) -> list[Instruction]:
        if busy or not self.moves:
            return []
        slot, target = self.moves.pop(0)
        source, self.owners[slot] = self.owners[slot], target
        return [] if source == target else [Instruction(source, target, (slot,))]


def check_totals(found, stream: Stream) -> None:
    """Every key is on one worker, with the total that plain addition gives."""
    merged: dict[int, int] = {}
    for totals in found.totals:
        assert not merged.keys() & totals.keys()
        merged |= totals
    expected = {int(key): int(stream.value[stream.key == key].sum()) for key in np.unique(stream.key)}
    assert merged == expected
    assert np.isfinite(found.done).all()
    assert (found.done > found.at).all()


runs = st.tuples(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, 3)), max_size=12),
    st.lists(st.floats(0, 0.5), min_size=4, max_size=4),
    st.floats(0.05, 1.0),
    st.sampled_from([0.0, 0.002, 0.02]),
)


@given(runs)
def test_no_row_is_lost_or_added_twice_however_slots_move(run) -> None:
    seed, workers, moves, lags, period, work = run
    moves = [(slot, target % workers) for slot, target in moves]
    stream, network = stream_of(seed), Network(work, lags=tuple(lags[:workers]), state=0.01)
    owners = [slot % workers for slot in range(SLOTS)]
    for protocol in ("autoflow", "barrier"):
        found = flow(stream, owners, workers, network, Scripted(workers, moves), period, protocol)
        check_totals(found, stream)
    for most in (None, 7):
        batching = Batching(work, fixed=period / 4, most=most)
        found = announced(stream, owners, workers, batching, Scripted(workers, moves))
        check_totals(found, stream)
        assert found.kept == 0


@given(st.integers(0, 10_000), st.floats(0, 0.5))
def test_rows_of_one_worker_wait_as_in_a_queue_of_one_server(seed, work) -> None:
    """Lindley's recursion, with rows that arrive one channel and one mapper later."""
    stream, network = stream_of(seed, rows=60), Network(work, route=0.0, delay=0.25)
    found = flow(stream, [0] * SLOTS, 1, network)
    free = 0.0
    for at, done in zip(stream.at + 0.5, found.done, strict=True):
        free = max(free, at) + work
        assert done == pytest.approx(free)


def hot_runs():
    stream = stream_of(3, rows=9_000, seconds=10.0, hot=0.4, slots=12)
    owners, network = [slot % 3 for slot in range(12)], Network(0.0024, lags=(0.0, 0.05, 0.2), state=0.001)

    def scheduler() -> HotSpots:
        return HotSpots(AutoFlow(12), 3, window_length=2)

    batching = Batching(network.work, fixed=0.1, copy=network.state)
    return stream, {
        "autoflow": flow(stream, owners, 3, network, scheduler(), 0.5),
        "barrier": flow(stream, owners, 3, network, scheduler(), 0.5, "barrier"),
        "announced": announced(stream, owners, 3, batching, scheduler()),
    }


def test_autoflow_keeps_only_rows_of_slots_that_move_a_barrier_keeps_all_and_copies_none() -> None:
    stream, kinds = hot_runs()
    for found in kinds.values():
        check_totals(found, stream)
        assert found.moves
    moving = {slot for move in kinds["autoflow"].moves for slot in move.slots}
    kept = set(stream.slot[kinds["autoflow"].held > 0].tolist())
    assert kept
    assert kept <= moving < set(range(12))
    assert set(stream.slot[kinds["barrier"].held > 0].tolist()) == set(range(12))
    assert kinds["barrier"].kept > kinds["autoflow"].kept > kinds["announced"].kept == 0


def test_without_lags_mappers_keep_nothing_and_with_them_they_do() -> None:
    stream = stream_of(5, rows=2_000)
    owners = [slot % 2 for slot in range(SLOTS)]
    level = flow(stream, owners, 2, Network(0.0), Scripted(2, [(0, 1)]), 1.0)
    uneven = flow(stream, owners, 2, Network(0.0, lags=(0.0, 0.5)), Scripted(2, [(0, 1)]), 1.0)
    assert level.held.max() < 0.01
    assert uneven.held.max() > 0.4  # the rows of the source that is half a second ahead


def test_an_instruction_goes_with_the_next_control_message_and_between_periods_only_if_asked_to() -> None:
    stream, owners = stream_of(5, rows=2_000), [slot % 2 for slot in range(SLOTS)]
    for protocol in ("autoflow", "barrier"):
        script = [(0, 1), (1, 0), (0, 0)]
        waiting = flow(stream, owners, 2, Network(0.0), Scripted(2, script), 0.75, protocol)
        assert [move.told for move in waiting.moves] == [1.5, 2.25, 3.0]
        between = flow(stream, owners, 2, Network(0.0), Scripted(2, script), 0.75, protocol, at_once=True)
        assert [move.told for move in between.moves] == pytest.approx([0.75, 1.5, 2.25], abs=0.02)
        assert all(move.told % 0.75 > 0 for move in between.moves)


class Listening:
    """Moves slots 0 and 1 to two workers after the first period, and keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[float] = []

    def hear(self, counts: np.ndarray, busy: bool = False) -> list[Instruction]:
        self.heard.append(counts.sum())
        return [Instruction(0, 1, (0,)), Instruction(1, 2, (1,))] if len(self.heard) == 1 else []


def test_every_period_is_heard_of_once_also_where_its_message_moves_slots() -> None:
    rows = 40
    stream = Stream(np.arange(rows) * 0.1 + 0.05, np.arange(rows) % 3, np.arange(rows) % 3, np.ones(rows, int))
    listening = Listening()
    found = flow(stream, [0, 1, 2], 3, Network(0.0), listening)
    assert [move.told for move in found.moves] == [2.0, 2.0]
    assert listening.heard == [10, 10, 10]  # the last rows come before a message would
    check_totals(found, stream)


def test_a_placement_is_in_force_two_micro_batches_after_the_driver_heard() -> None:
    """Micro-batches of one second: 0 shows the hot spot, 2 leaves the copies, 3 goes by them."""
    rows = 40
    stream = Stream(np.arange(rows) * 0.25, np.zeros(rows, int), np.zeros(rows, int), np.ones(rows, int))
    script = Scripted(2, [(0, 1)])
    found = announced(stream, [0] * SLOTS, 2, Batching(0.0, fixed=1.0, copy=0.0), script)
    commits = np.unique(found.done)
    by_batch = [set(found.worker[found.done == commit].tolist()) for commit in commits]
    assert by_batch[:5] == [{0}, {0}, {0}, {1}, {1}]
    assert found.moves[0].left == commits[2]


def test_what_is_beyond_the_limit_of_a_source_waits_for_the_next_micro_batches() -> None:
    """Ten rows that come at once, four a micro-batch, of 0.1 s each and 1 s whatever their rows."""
    stream = Stream(np.zeros(10), np.zeros(10, int), np.arange(10), np.ones(10, int))
    found = announced(stream, [0], 1, Batching(0.1, fixed=1.0, most=4))
    assert found.done == pytest.approx([1.4] * 4 + [2.8] * 4 + [4.0] * 2)
    check_totals(found, stream)


def test_both_placers_level_a_hot_spot() -> None:
    draw = np.random.default_rng(1)
    rows, slots = 12_000, 60
    slot = np.where(draw.random(rows) < 0.5, draw.integers(0, 20, rows) * 3, draw.integers(0, slots, rows))
    stream = Stream(np.arange(rows) / 1000, slot, slot, np.ones(rows, int))
    for placer in (AutoFlow(slots, factor=0.2), Even(slots)):
        scheduler = HotSpots(placer, 3)
        found = flow(stream, scheduler.placement.tail.tolist(), 3, Network(0.0025), scheduler)
        before, after = found.loads(0, 1, 3), found.loads(9, 12, 3)
        assert before.max() / before.sum() > 0.6
        assert (after.max() - after.min()) / after.max() < 0.25


def test_throughput_and_latency_are_sampled_by_worker() -> None:
    stream = stream_of(1, rows=3_000, seconds=3.0)
    found = flow(stream, [0] * SLOTS, 1, Network(0.001))
    times, latency = found.sampled(0, every=100)
    assert len(times) == len(latency) == 30
    times, rates = found.throughput(0, every=1000)
    assert len(times) == 3
    assert rates == pytest.approx(1000, rel=0.15)


def test_what_cannot_be_is_refused() -> None:
    stream = stream_of(1)
    with pytest.raises(SkewlessError, match="period is 0"):
        flow(stream, [0] * SLOTS, 1, Network(0.1), period=0)
    with pytest.raises(SkewlessError, match="2 lags for 1 sources"):
        flow(stream, [0] * SLOTS, 1, Network(0.1, lags=(0.0, 1.0)))
    with pytest.raises(SkewlessError, match="work is -1"):
        Network(-1)
    with pytest.raises(SkewlessError, match="sort them"):
        Stream(np.array([1.0, 0.0]), *[np.zeros(2, int)] * 3)
    with pytest.raises(SkewlessError, match="as many of each"):
        Stream(np.zeros(2), *[np.zeros(1, int)] * 3)
    with pytest.raises(SkewlessError, match="window_length is 0"):
        HotSpots(AutoFlow(SLOTS), 2, window_length=0)
    with pytest.raises(SkewlessError, match="below 0"):
        Batching(0.1, fixed=-1.0)
    with pytest.raises(SkewlessError, match="most is 0 rows"):
        Batching(0.1, most=0)
