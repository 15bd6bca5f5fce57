"""Engines: what their tasks take, against recurrences for every task written out here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.elastic import Parallelism, Scaler
from skewless.simulate import Costs, OneAtATime, Profile, Recorded, Scheduling, Source, follow
from skewless.simulate.map_reduce import Divided
from skewless.simulate.profiles import Slots

COSTS = Costs(tuple=1.0, emit=0.0, partial=1.0)
CONTINUOUS = Profile("continuous", continuous=True)
TWO = Parallelism(2, 2)
PAIR = st.tuples(st.integers(0, 40), st.integers(0, 40))


def divided(maps, reduces) -> Divided:
    return Divided(np.array(maps), np.zeros(len(maps), np.int64), np.array(reduces))


@given(st.lists(st.tuples(PAIR, PAIR, st.integers(0, 50)), min_size=1, max_size=20))
def test_tasks_that_live_on_each_have_a_queue_and_reduce_tasks_wait_for_all_map_tasks(batches) -> None:
    slots = Slots(CONTINUOUS, COSTS, TWO)
    maps, reduces = [0.0, 0.0], [0.0, 0.0]
    for first, second, start in batches:
        found = slots.run(divided(first, second), float(start), failed=False)
        maps = [max(free, start) + work for free, work in zip(maps, first, strict=True)]
        reduces = [max(free, *maps) + work for free, work in zip(reduces, second, strict=True)]
        assert found.finish == max(reduces)
    assert slots.busy == max(sum(each[side][task] for each in batches) for side in (0, 1) for task in (0, 1))


@given(PAIR, PAIR, st.floats(0, 2), st.integers(1, 4), st.floats(0, 1))
def test_around_the_work_there_are_placing_further_steps_and_control_events(maps, reduces, place, steps, event) -> None:
    profile = Profile("x", place=place, steps=steps, event=event)
    found = profile.times(divided(maps, reduces), Costs(tuple=1.0, emit=0.5, partial=1.0))
    assert found[0] == pytest.approx([each + place * sum(maps) / 2 for each in maps])
    assert found[1] == pytest.approx([each + (steps - 1) * 0.5 * each + 2 * event for each in reduces])


def test_what_fails_is_done_again_as_a_task_or_as_a_whole_batch() -> None:
    work = divided((4, 6), (1, 2))
    assert Slots(Profile("task"), COSTS, TWO).run(work, 0.0, failed=True).finish == 12 + 2
    assert Slots(Profile("batch", recovers="batch"), COSTS, TWO).run(work, 0.0, failed=True).finish == 2 * 8
    lives = Profile("batch", continuous=True, recovers="batch")
    assert Slots(lives, COSTS, TWO).run(work, 0.0, failed=True).finish == 12 + 4


def halves(tasks):
    def route(keys, times, start, length):
        sizes = np.full(tasks.map, len(keys) / tasks.map)
        return Divided(sizes, np.zeros(tasks.map, np.int64), np.zeros(tasks.reduce, np.int64))

    return route


@pytest.mark.parametrize(("rescale", "grown"), [(0.0, True), (2.0, True), (None, False)])
def test_numbers_of_tasks_follow_where_the_engine_lets_them(rescale, grown) -> None:
    profile = Profile("x", continuous=True, rescale=rescale)
    scaler = Scaler(Parallelism(1, 1), Parallelism(8, 1), d=1)
    source = Source(Recorded(np.arange(5)), rate=3.0)
    scheduler = OneAtATime(Scheduling(), Parallelism(1, 1))
    found = follow(source, halves, scheduler, COSTS, 1.0, 6.0, tasks=Parallelism(1, 1), scaler=scaler, profile=profile)
    assert (found.map_tasks[-1] > 1) == grown
    if grown:
        # The first is done at 4, and the second starts when tasks have stopped for so long.
        assert found.starts[1] == 4 + rescale


class Scripted:
    """Changes the numbers of map tasks when it is told to, and keeps what it hears."""

    def __init__(self, *maps: int) -> None:
        self.left, self.parallelism, self.told = list(maps), Parallelism(1, 1), []

    def observe(self, seen):
        self.told.append(seen)
        self.parallelism = Parallelism(self.left.pop(0), 1)
        return self.parallelism


@given(st.lists(st.integers(1, 6), min_size=12, max_size=12), st.integers(0, 12).map(lambda n: n / 4))
def test_w_has_in_it_what_arrived_while_tasks_had_stopped(maps, rescale) -> None:
    profile, source = Profile("x", continuous=True, rescale=rescale), Source(Recorded(np.arange(5)), rate=3.0)
    scaler = Scripted(*maps)
    found = follow(
        source,
        halves,
        OneAtATime(Scheduling(), scaler.parallelism),
        Costs(tuple=0.5),
        1.0,
        12.0,
        tasks=scaler.parallelism,
        scaler=scaler,
        profile=profile,
    )
    # With all of the work in map tasks, what is queued is what a micro-batch waits for.
    assert found.ratios.tolist() == pytest.approx(found.delays.tolist())
    assert [seen.ratio for seen in scaler.told] == pytest.approx(found.delays.tolist())
    ran = [1, *found.map_tasks.tolist()]
    left = 0.0  # of stops; work that is queued is done before it
    for number, seen in enumerate(scaler.told):
        left += rescale if ran[number + 1] != ran[number] else 0.0
        assert seen.stopped == pytest.approx(left, abs=1e-9)
        left = min(left, max(0.0, seen.ratio - 1.0))


def test_a_stop_is_no_work_that_more_tasks_would_have_done_sooner() -> None:
    source = Source(Recorded(np.arange(5)), rate=3.0)
    scaler = Scaler(Parallelism(1, 1), Parallelism(64, 1), d=1)
    start, seconds = scaler.parallelism, 60.0
    costs, profile = Costs(tuple=1.0), Profile("x", continuous=True, rescale=5.0)
    found = follow(
        source,
        halves,
        OneAtATime(Scheduling(), start),
        costs,
        1.0,
        seconds,
        tasks=start,
        scaler=scaler,
        profile=profile,
    )
    assert found.delays.max() > 7
    assert (found.ratios[-1], found.delays[-1]) == (pytest.approx(0.75), pytest.approx(0.75))
    assert found.map_tasks[-1] == 4  # 3 seconds of work in 4 tasks, though 5 are not enough for what is queued at first


def test_what_no_engine_has_is_refused() -> None:
    with pytest.raises(SkewlessError, match="0 operations"):
        Profile("x", steps=0)
    with pytest.raises(SkewlessError, match=r"1\.5 operations; give a whole number"):
        Profile("x", steps=1.5)  # type: ignore[arg-type]  # no int
    with pytest.raises(SkewlessError, match="event is -1"):
        Profile("x", event=-1.0)
    with pytest.raises(SkewlessError, match="place is inf seconds; give a finite number"):
        Profile("x", place=float("inf"))
    with pytest.raises(SkewlessError, match="place is None; give seconds as a number"):
        Profile("x", place=None)  # type: ignore[arg-type]  # no number
    with pytest.raises(SkewlessError, match="rescale is '2 s'; give seconds as a number"):
        Profile("x", rescale="2 s")  # type: ignore[arg-type]  # no number
    with pytest.raises(SkewlessError, match="recovers is 'none'; give \"task\""):
        Profile("x", recovers="none")  # type: ignore[arg-type]  # neither of the two
    with pytest.raises(SkewlessError, match="cannot change"):
        Slots(Profile("storm", rescale=None), COSTS, TWO).change(0.0, TWO)
    with pytest.raises(SkewlessError, match="3 blocks and 2 buckets for 2 map and 2 reduce"):
        Slots(CONTINUOUS, COSTS, TWO).run(divided((1, 1, 1), (1, 1)), 0.0, failed=False)
