"""Dataflows with state that moves: nothing is lost, and who waits for what."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place import AutoFlow, Even, Placement
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
    st.sampled_from([0.0, 0.05]),  # mappers are idle, or far behind their sources
)


@given(runs)
def test_no_row_is_lost_or_added_twice_however_slots_move(run) -> None:
    seed, workers, moves, lags, period, work, route = run
    moves = [(slot, target % workers) for slot, target in moves]
    stream, network = stream_of(seed), Network(work, route, lags=tuple(lags[:workers]), state=0.01)
    owners = [slot % workers for slot in range(SLOTS)]
    for protocol in ("autoflow", "barrier"):
        found = flow(stream, owners, workers, network, Scripted(workers, moves), period, protocol)
        check_totals(found, stream)
        if protocol == "barrier":
            for move in found.moves:
                assert (found.done[stream.at > move.told] >= move.came).all()
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


def rows_at(*times: float, slot: int = 0) -> Stream:
    """Rows of one slot with a key each."""
    return Stream(np.array(times), np.full(len(times), slot), np.arange(len(times)), np.ones(len(times), int))


def test_a_mapper_routes_one_row_after_another_and_sources_take_turns_with_mappers() -> None:
    """Sources 0 and 1 each send their first row to mapper 0 and their second to mapper 1, which take 0.5 s a row."""
    found = flow(rows_at(0, 0, 0, 0), [0], 2, Network(0.0, route=0.5, delay=0.25))
    assert found.done.tolist() == [1.0, 1.5, 1.0, 1.5]


def test_a_control_message_passes_a_mapper_behind_the_rows_before_it() -> None:
    """The row of 2.0 s leaves its mapper at 2.75 s, and so does the message of 2.0 s; without it, at 2.25 s."""
    moved = Says(Instruction(0, 1, (0,)))
    found = flow(rows_at(0, 0, 2.0, 4.0), [0], 2, Network(0.0, route=0.5, delay=0.25), moved)
    (move,) = found.moves
    assert (move.told, move.left) == (2.0, 3.0)
    assert (found.worker[2], found.done[2]) == (0, 3.0)
    check_totals(found, rows_at(0, 0, 2.0, 4.0))


def test_a_state_is_on_its_way_for_each_of_its_keys_and_rows_are_kept_in_the_reducer_for_so_long() -> None:
    """Told at 2 s, both reducers have the message at 2.5 s; three keys are there 0.25 and 3 x 0.125 s later."""
    stream = rows_at(0, 0, 0, 2.125, 2.875)
    found = flow(stream, [0], 2, Network(0.0625, route=0.0, delay=0.25, state=0.125), Says(Instruction(0, 1, (0,))))
    (move,) = found.moves
    assert (move.told, move.left, move.came) == (2.0, 2.5, 3.125)
    assert found.held.tolist() == [0, 0, 0, 0.5, 0]  # since 2.625 s; the next row comes after the state
    assert found.done[3:].tolist() == [3.1875, 3.4375]
    assert found.worker.tolist() == [0, 0, 0, 1, 1]


def test_what_is_reported_between_periods_is_heard_of_with_the_next_one() -> None:
    """The first period is heard of at 1.75 s and another message goes out then, so that reducers report twice."""
    rows = 40
    times = np.arange(rows) * 0.1 + 0.05
    stream = Stream(times, np.arange(rows) % 2, np.arange(rows) % 2, np.ones(rows, int))
    heard: list[list[float]] = []

    class Listens(Says):
        def hear(self, counts: np.ndarray, busy: bool = False) -> list[Instruction]:
            heard.append(counts.tolist())
            return super().hear(counts, busy)

    moved = Listens(Instruction(0, 1, (2,)))  # of which there are no rows
    found = flow(stream, [0, 1, 0], 2, Network(0.0, route=0.0, delay=0.25), moved, at_once=True)
    assert [move.told for move in found.moves] == [1.75]
    assert heard == [[5, 5, 0]] * 4


def test_while_sources_are_stopped_no_period_ends() -> None:
    """The only key of the slot is on its way for 3 s."""
    stream = stream_of(5, rows=2_000, seconds=8.0)
    heard: list[float] = []

    class Listens(Says):
        def hear(self, counts: np.ndarray, busy: bool = False) -> list[Instruction]:
            heard.append(counts.sum())
            return super().hear(counts, busy)

    owners, moved = [*(slot % 2 for slot in range(SLOTS)), 0], Listens(Instruction(0, 1, (0,)))
    found = flow(stream, owners, 2, Network(0.0, state=0.6), moved, protocol="barrier")
    (move,) = found.moves
    assert move.came > 5.0
    assert 0 not in heard
    assert len(heard) == 4  # at 1, 2, 6 and 7 s


def test_a_copy_is_written_in_one_micro_batch_and_read_in_the_next() -> None:
    """Micro-batches of a second, of which 2 writes three totals of 0.25 s each and 3 reads them."""
    stream = rows_at(0, 0, 0, *range(1, 8))
    three = Stream(stream.at, stream.slot, np.arange(10) % 3, stream.value)
    found = announced(three, [0], 2, Batching(0.0, fixed=1.0, copy=0.25), Says(Instruction(0, 1, (0,))))
    assert np.unique(found.done).tolist() == [1.0, 2.0, 3.75, 5.5, 6.5, 7.5, 8.5][: len(np.unique(found.done))]
    assert len(np.unique(found.done)) >= 6
    (move,) = found.moves
    assert (move.told, move.left, move.came) == (1.0, 3.75, 3.75)


def test_a_scheduler_hears_that_slots_still_move() -> None:
    busy: list[bool] = []

    class Listens(Says):
        def hear(self, counts: np.ndarray, moving: bool = False) -> list[Instruction]:
            busy.append(moving)
            return super().hear(counts)

    announced(rows_at(*range(6)), [0], 2, Batching(0.0, fixed=1.0), Listens(Instruction(0, 1, (0,))))
    assert busy == [False, True, True, False, False, False]  # decided after 0, copied in 2, in force in 3


class Asked(AutoFlow):
    """Remembers what it is asked."""

    def __init__(self) -> None:
        super().__init__(2)
        self.learned: list[list[float]] = []
        self.seen: list[list[float]] = []

    def learn(self, seen: Counts) -> None:
        self.learned.append(seen.tail.tolist())

    def place(self, seen: Counts, previous: Placement | None, workers: int) -> Placement:
        self.seen.append([] if seen.tail is None else seen.tail.tolist())
        return super().place(seen, previous, workers)


def test_a_placer_learns_every_period_and_is_asked_about_all_of_a_window() -> None:
    placer = Asked()
    scheduler = HotSpots(placer, 2, window_length=2)
    for counts in ([1.0, 2.0], [30.0, 40.0], [5.0, 6.0]):
        scheduler.hear(np.array(counts))
    assert placer.learned == [[1, 2], [30, 40], [5, 6]]
    assert placer.seen[1:] == [[31, 42]]


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
    order = np.argsort(found.done)
    times, latency = found.sampled(0, every=100)
    assert len(times) == 30
    assert times.tolist() == found.done[order][99::100].tolist()  # the hundredth is the first
    assert latency.tolist() == (found.done - stream.at)[order][99::100].tolist()
    times, rates = found.throughput(0, every=1000)
    assert times.tolist() == found.done[order][999::1000].tolist()
    assert rates[0] == 1000 / times[0]
    assert [len(each) for each in found.sampled(1)] == [0, 0]
    assert rates == pytest.approx(1000, rel=0.15)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SkewlessError, match="sort them"):
        Stream(np.array([1.0, 0.0]), *[np.zeros(2, int)] * 3)
    with pytest.raises(SkewlessError, match="as many of each"):
        Stream(np.zeros(2), *[np.zeros(1, int)] * 3)
    with pytest.raises(SkewlessError, match="row 1 of a stream comes at nan s; give each row a time"):
        Stream(np.array([1.0, np.nan]), *[np.zeros(2, int)] * 3)
    for length in (0, 1.5, np.nan):
        with pytest.raises(SkewlessError, match=f"window_length is {length}; give a whole number from 1"):
            HotSpots(AutoFlow(SLOTS), 2, window_length=length)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network(-1), "work is -1 s; give at least 0"),
        (lambda: Network(np.nan), "work is nan s; give at least 0"),
        (lambda: Network(0.1, state=np.inf), "state is inf s; give at least 0"),
        (lambda: Network("1"), "work is 1 s; give at least 0"),
        (lambda: Network(0.1, lags=(0.0, -5)), "the lag of source 1 is -5 s; give at least 0"),
        (lambda: Network(0.1, lags=(np.nan,)), "the lag of source 0 is nan s; give at least 0"),
        (lambda: Batching(0.1, fixed=-1.0), "fixed is -1.0 s; give at least 0"),
        (lambda: Batching(np.nan), "work is nan s; give at least 0"),
        (lambda: Batching(0.1, copy=np.nan), "copy is nan s; give at least 0"),
        (lambda: Batching(0.1, heard=-1), "heard is -1; give a whole number from 0"),
        (lambda: Batching(0.1, heard=0.5), "heard is 0.5; give a whole number from 0"),
        (lambda: Batching(0.1, most=0), "most is 0 rows a micro-batch; give a whole number of at least 1, or None"),
        (lambda: Batching(0.1, most=1.5), "most is 1.5 rows a micro-batch; give a whole number of at least 1, or None"),
    ],
)
def test_costs_that_are_no_times_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"period": 0}, "period is 0 s; give more than 0"),
        ({"period": np.nan}, "period is nan s; give more than 0"),
        ({"period": np.inf}, "period is inf s; give more than 0"),
        ({"protocol": "global"}, "protocol is 'global'; give one of 'autoflow', 'barrier'"),
        ({"network": Network(0.1, lags=(0.0, 1.0))}, "2 lags for 1 sources; give one for each, or none"),
    ],
)
def test_what_is_no_run_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        flow(**{"stream": stream_of(1), "owners": [0] * SLOTS, "workers": 1, "network": Network(0.1)} | given)


BOTH = pytest.mark.parametrize(
    "run",
    [
        lambda stream, owners, workers, scheduler=None: flow(stream, owners, workers, Network(0.0), scheduler),
        lambda stream, owners, workers, scheduler=None: announced(stream, owners, workers, Batching(0.0), scheduler),
    ],
    ids=["flow", "announced"],
)
"""Both take owners and what a scheduler says."""


@BOTH
@pytest.mark.parametrize(
    ("owners", "workers", "message"),
    [
        ([0] * SLOTS, 0, "workers is 0; give a whole number from 1"),
        ([0] * SLOTS, 1.5, "workers is 1.5; give a whole number from 1"),
        ([0, 1, 2, 0, 1, 2], 2, "the owner of slot 2 is 2; name one of the workers 0 to 1"),
        ([0, 1, 0, 0, -1, 0], 2, "the owner of slot 4 is -1; name one of the workers 0 to 1"),
        ([0, 1], 2, "a row is of slot 5, but there are owners for slots 0 to 1; give one for each"),
        ([], 2, "a row is of slot 5, but there are no owners; give one for each"),
    ],
)
def test_owners_that_are_no_workers_and_slots_without_one_are_refused(run, owners, workers, message) -> None:
    with pytest.raises(SkewlessError, match=message):
        run(stream_of(1), owners, workers)


@BOTH
def test_a_slot_below_0_is_refused_and_not_counted_from_the_end(run) -> None:
    stream = Stream(np.zeros(2), np.array([0, -1]), np.zeros(2, int), np.zeros(2, int))
    with pytest.raises(SkewlessError, match="a row is of slot -1, but there are owners for slots 0 to 0"):
        run(stream, [0], 1)


class Says:
    """Says this after the first period."""

    def __init__(self, *pairs: Instruction) -> None:
        self.pairs = list(pairs)

    def hear(self, counts: np.ndarray, busy: bool = False) -> list[Instruction]:
        pairs, self.pairs = self.pairs, []
        return pairs


@BOTH
@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([Instruction(0, 7, (0,))], "the scheduler moves slots to worker 7; name one of the workers 0 to 1"),
        ([Instruction(0, -1, (0,))], "the scheduler moves slots to worker -1; name one of the workers 0 to 1"),
        ([Instruction(0, 1, (9,))], "the scheduler moves slot 9; name one of the slots 0 to 5 that there are"),
        ([Instruction(0, 1, (3,))], "moves slot 3 from worker 0, but it is on worker 1; name that one"),
        ([Instruction(0, 1, (0,)), Instruction(0, 1, (0,))], "slot 0 from worker 0, but it is on worker 1; name that"),
        ([Instruction(0, 0, (0,))], "moves slot 0 to worker 0, which has it; leave it out"),
    ],
)
def test_a_scheduler_that_moves_what_cannot_move_is_refused(run, pairs: list[Instruction], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        run(stream_of(1), [slot % 2 for slot in range(SLOTS)], 2, Says(*pairs))
