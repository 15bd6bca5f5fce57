"""Schedulers: against recurrences written out here, and what must hold whatever micro-batches take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.elastic import Observation, Parallelism, Scaler
from skewless.simulate import Costs, GroupAhead, Groups, OneAtATime, Recorded, Scheduling, Source, follow
from skewless.simulate.map_reduce import Divided

ONE = Parallelism(1, 1)
EIGHTH = st.integers(0, 40).map(lambda n: n / 8)  # seconds that add up without rounding
WORKS = st.lists(EIGHTH, min_size=1, max_size=30)


def taking(works, tasks=ONE):
    """Micro-batches whose map stage takes these seconds in one task, and a part of them in several."""
    left = iter(works)

    def divides(numbers):
        def divided(keys, times, start, length):
            part = next(left) / numbers.map * tasks.map
            sizes = np.full(numbers.map, part)
            return Divided(sizes, np.zeros(numbers.map, np.int64), np.zeros(numbers.reduce, np.int64))

        return divided

    return divides


def run(works, scheduler, **more):
    source = Source(Recorded(np.arange(3)), rate=4.0)
    return follow(source, taking(works), scheduler, Costs(tuple=1.0), 1.0, len(works), tasks=ONE, **more)


@given(WORKS, EIGHTH, st.integers(1, 7))
def test_one_at_a_time_and_groups_are_these_recurrences(works, cost, group) -> None:
    scheduling = Scheduling(message=cost)
    for size, scheduler in ((1, OneAtATime(scheduling, ONE)), (group, Groups(scheduling, ONE, group))):
        finish, expected = 0.0, []
        for number, work in enumerate(works):
            finish = max(finish, number + 1) + (cost if number % size == 0 else 0) + work
            expected.append(finish)
        assert run(works, scheduler).finishes.tolist() == expected


@given(WORKS, EIGHTH, st.integers(1, 7), EIGHTH)
def test_group_ahead_is_this_recurrence(works, cost, group, lead) -> None:
    finish, sent, expected = 0.0, float("-inf"), []
    for number, work in enumerate(works):
        if number % group == 0:
            sent = max(number + 1 - lead, sent) + cost
        finish = max(finish, number + 1, sent) + work
        expected.append(finish)
    found = run(works, GroupAhead(Scheduling(message=cost), ONE, group, lead=lead))
    assert found.finishes.tolist() == expected


@given(WORKS, EIGHTH, st.integers(1, 7), EIGHTH)
def test_ahead_is_never_later_than_groups_and_groups_never_later_than_one_at_a_time(works, cost, group, lead) -> None:
    scheduling = Scheduling(message=cost)
    one = run(works, OneAtATime(scheduling, ONE))
    groups = run(works, Groups(scheduling, ONE, group))
    ahead = run(works, GroupAhead(scheduling, ONE, group, lead=lead))
    assert (groups.finishes <= one.finishes).all()
    assert (ahead.finishes <= groups.finishes).all()
    for each in (one, groups, ahead):
        assert (each.starts >= each.heartbeats).all()
        assert (each.starts[1:] >= each.finishes[:-1]).all()


@given(
    st.lists(st.integers(1, 64).map(lambda n: n / 8), min_size=5, max_size=40),
    st.integers(1, 7),
    EIGHTH,
    EIGHTH,
    EIGHTH,
    st.integers(1, 3),
)
def test_no_micro_batch_runs_with_numbers_that_workers_do_not_know_yet(works, group, cost, adjust, report, d) -> None:
    """What is heard of by a message is in it, and everything else is in force when its window is over."""
    log = []

    class Logged(GroupAhead):
        def change(self, at, tasks):
            log.append((at, tasks))
            super().change(at, tasks)

    scheduler = Logged(Scheduling(message=cost), ONE, group, lead=0.5, adjust=adjust, report=report)
    scaler = Scaler(ONE, Parallelism(16, 1), d=d)
    found = run(works, scheduler, scaler=scaler)
    for number, (start, tasks) in enumerate(zip(found.starts, found.map_tasks, strict=True)):
        first = number // group * group
        # The last message begins half a second before its group, or when the one before is made.
        sent = float("-inf")
        for begin in range(0, first + 1, group):
            begun = max(begin + 0.5, sent)
            sent = begun + cost
        known = [
            numbers.map
            for at, numbers in log
            if at < start + 1e-9 and (at + report + adjust <= start or at + report <= begun)
        ]
        assert tasks == (known[-1] if known else 1)


def test_a_change_waits_for_the_next_message_the_next_group_or_the_adjustment_window() -> None:
    cost, more = Scheduling(message=0.25), Parallelism(4, 4)
    one, groups = OneAtATime(cost, ONE), Groups(cost, ONE, 10)
    ahead = GroupAhead(cost, ONE, 10, adjust=0.5)
    first = {}
    for scheduler in (one, groups, ahead):
        for batch in range(1, 31):
            start = scheduler.start(batch, float(batch), 0.0)
            first.setdefault(scheduler, None)
            if batch == 15:
                scheduler.change(15.9, more)
            if start.tasks == more and first[scheduler] is None:
                first[scheduler] = batch
    assert list(first.values()) == [16, 21, 17]  # 15.9 + 0.5 is after micro-batch 16 started


def first_with(scheduler: GroupAhead, tasks: Parallelism, after: int, at: float) -> int:
    """The first micro-batch that runs with these numbers, which are decided then, after that micro-batch started."""
    for batch in range(1, 31):
        if scheduler.start(batch, float(batch), 0.0).tasks == tasks:
            return batch
        if batch == after:
            scheduler.change(at, tasks)
    return 0


def test_what_is_heard_of_by_then_is_in_the_message_of_the_next_group() -> None:
    ahead = GroupAhead(Scheduling(message=0.25), ONE, 5, lead=0.5, adjust=5.0)
    assert first_with(ahead, Parallelism(4, 4), after=4, at=4.4) == 6  # made from 5.5 on; its window would end at 9.4
    ahead = GroupAhead(Scheduling(message=0.25), ONE, 5, lead=0.5, adjust=5.0, report=1.2)
    assert first_with(ahead, Parallelism(4, 4), after=4, at=4.4) == 11  # heard of at 5.6, too late for that message


def test_the_adjustment_window_is_what_a_message_with_the_new_numbers_takes() -> None:
    ahead = GroupAhead(Scheduling(message=0.25, task=0.25), ONE, 30)
    assert first_with(ahead, Parallelism(4, 4), after=15, at=15.0) == 18  # 15 + 0.25 + 8 / 4; by the old ones 15.75


def test_an_update_is_in_force_for_a_micro_batch_that_still_waits_for_its_message() -> None:
    ahead = GroupAhead(Scheduling(message=0.5), ONE, 5, lead=0.0, adjust=0.25, report=0.125)
    ahead.change(1.0, Parallelism(4, 4))
    assert ahead.start(1, 1.0, 0.0) == (1.5, Parallelism(4, 4), 0.5)  # complete at 1, in force from 1.375 on


def test_the_message_costs_more_with_more_tasks_and_is_shared_by_its_group() -> None:
    cost = Scheduling(message=0.5, task=0.25)
    assert OneAtATime(cost, ONE).share(Parallelism(2, 2)) == 1.5
    assert Groups(cost, ONE, 5).share(Parallelism(2, 2)) == 0.3
    assert GroupAhead(cost, ONE, 5).share(Parallelism(2, 2)) == 0
    # The default lead is what the message takes, so that nobody waits for it.
    assert run([0.5] * 9, GroupAhead(cost, ONE, 3)).scheduling.tolist() == [0] * 9


def test_the_scaler_is_told_of_the_work_and_its_share_of_the_scheduling() -> None:
    told = []

    class Told(Scaler):
        def observe(self, seen: Observation) -> Parallelism:
            told.append((seen.ratio, seen.map_time, seen.reduce_time))
            return super().observe(seen)

    run([0.25, 0.5], Groups(Scheduling(message=0.5), ONE, 2), scaler=Told(ONE, Parallelism(8, 1)))
    assert told == [(0.5, 0.25, 0.0), (0.75, 0.5, 0.0)]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Scheduling(message=-1.0), "message is -1.0 seconds"),
        (lambda: Scheduling(message="a"), "message is 'a'; give seconds as a number"),
        (lambda: run([1.0], OneAtATime(Scheduling(), Parallelism(4, 1))), "scheduler starts with Par.*map=4.*the same"),
        (lambda: [run([1.0] * 3, one) for one in [Groups(Scheduling(), ONE, 2)] * 2], "has started 3 micro-batches"),
        (lambda: [run([1.0], one) for one in [OneAtATime(Scheduling(), ONE)] * 2], "make a new one for each run"),
        (lambda: [run([1.0], one) for one in [GroupAhead(Scheduling(), ONE, 2)] * 2], "make a new one for each run"),
        (
            lambda: run([1.0], OneAtATime(Scheduling(), ONE), failures=(99, 0)),
            "micro-batch 0; give numbers from 1 to 1",
        ),
        (lambda: run([1.0], OneAtATime(Scheduling(), ONE), failures=(1, 2)), "micro-batch 2; give numbers from 1 to 1"),
        (lambda: Groups(Scheduling(), ONE, 0), "group is 0"),
        (lambda: GroupAhead(Scheduling(), ONE, True), "group is True"),
        (lambda: GroupAhead(Scheduling(), ONE, 2, lead=float("nan")), "lead is nan"),
        (lambda: GroupAhead(Scheduling(), ONE, 2, adjust=-0.5), "adjust is -0.5"),
        (
            lambda: run([1.0], OneAtATime(Scheduling(), ONE), scaler=Scaler(Parallelism(2, 1), Parallelism(4, 1))),
            "same",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_value(make, said) -> None:
    with pytest.raises(SkewlessError, match=said):
        make()


@given(WORKS, EIGHTH, st.integers(1, 7))
def test_w_has_the_wait_for_a_message_that_is_not_sent_ahead(works, cost, group) -> None:
    scheduling = Scheduling(message=cost)
    alone = run(works, GroupAhead(scheduling, ONE, 1, lead=0.0))
    assert alone.ratios.tolist() == pytest.approx(alone.delays.tolist())
    groups, ahead = Groups(scheduling, ONE, group), GroupAhead(scheduling, ONE, group, lead=0.0)
    assert (run(works, ahead).ratios <= run(works, groups).ratios + 1e-9).all()


def test_w_has_the_part_of_the_wait_that_is_left_if_a_message_comes_too_late() -> None:
    ahead = GroupAhead(Scheduling(message=0.75), ONE, 2, lead=0.5)
    assert run([0.5] * 4, ahead).ratios.tolist() == [0.625] * 4  # a quarter of a second for two micro-batches
    assert run([0.5] * 4, GroupAhead(Scheduling(message=0.75), ONE, 2)).ratios.tolist() == [0.5] * 4


@given(st.lists(st.integers(1, 24).map(lambda n: n / 8), min_size=1, max_size=20))
def test_w_has_the_work_in_it_that_is_queued(works) -> None:
    told = []

    class Told(Scaler):
        def observe(self, seen: Observation) -> Parallelism:
            told.append((seen.ratio, seen.map_time))
            return self.parallelism

    found = run(works, OneAtATime(Scheduling(), ONE), scaler=Told(ONE, Parallelism(8, 1)))
    # One at a time without costs, what is queued is what it waits for.
    assert [ratio for ratio, _ in told] == pytest.approx(found.delays.tolist())
    assert [seconds for _, seconds in told] == pytest.approx(found.delays.tolist())
    assert found.ratios.tolist() == pytest.approx(found.delays.tolist())
