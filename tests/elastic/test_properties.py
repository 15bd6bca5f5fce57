"""What holds whatever the load does: no flapping, rest on a constant load, recovery from spikes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from skewless.elastic import Observation, Parallelism, Scaler
from support.stages import Load, Step, follow

THRES, STEP = 0.9, 0.1
ABOVE = THRES * (1 + 1e-8)  # W above this is too high, whatever is lost in rounding
STRIDES = st.sampled_from(["one", "straight"])
D = st.integers(1, 5)
NUMBERS = st.builds(Parallelism, st.integers(1, 24), st.integers(1, 24))
COSTS = st.floats(0.001, 4)
LOADS = st.builds(Load, st.just(1.0), st.just(1.0), COSTS, COSTS, fixed=st.floats(0, 0.8))
"""One row and one key, so that costs are the work of the stages."""
TIMES = st.floats(0, 5)
STAGE = st.floats(0.01, 0.3) | st.floats(0.3, 1.2)
"""The time of a stage with the numbers at the start: from far too many tasks to somewhat too few."""


@st.composite
def bounds(draw: st.DrawFn, highest: int = 24) -> tuple[Parallelism, Parallelism, Parallelism]:
    """The least, the most, and numbers to start with."""
    maps = sorted(draw(st.lists(st.integers(1, highest), min_size=3, max_size=3)))
    reduces = sorted(draw(st.lists(st.integers(1, highest), min_size=3, max_size=3)))
    least, start, most = (Parallelism(*pair) for pair in zip(maps, reduces, strict=True))
    return least, most, start


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Anything that can be measured; often the same as others, so that loads also stay as they are."""
    map_time, reduce_time, outside = draw(TIMES), draw(TIMES), draw(st.floats(0, 1))
    scale = draw(st.sampled_from([0.05, 0.2, 0.85, 1.0, 3.0])) / (map_time + reduce_time + outside or 1.0)
    rows, keys = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    stages = (map_time * scale, reduce_time * scale) if draw(st.booleans()) else (None, None)
    return Observation(1.0, (map_time + reduce_time + outside) * scale, rows, keys, *stages)


@dataclass(frozen=True)
class Spike:
    """A load that the numbers of tasks are up to, and one for which there are enough tasks within the bounds."""

    start: Parallelism
    usual: Load
    spike: Load
    most: Parallelism


@st.composite
def spikes(draw: st.DrawFn) -> Spike:
    """Spikes of rows, keys, or what they cost, where the bounds are as tight as they can be."""
    start = draw(NUMBERS)
    ratio, maps, fixed = draw(st.floats(0.1, THRES)), draw(st.floats(0.01, 0.99)), draw(st.floats(0, 0.7))
    stages = ratio * (1 - fixed)
    row_cost, key_cost = stages * maps * start.map, stages * (1 - maps) * start.reduce
    usual = Load(1.0, 1.0, row_cost, key_cost, ratio * fixed)
    times = st.sampled_from([1.0, 1.0, 0.5, 1.5, 2.0, 6.0]) | st.floats(0.2, 6)
    spike = Load(draw(times), draw(times), row_cost * draw(times), key_cost * draw(times), usual.fixed)
    share, left = draw(st.floats(0.1, 0.9)), THRES - usual.fixed
    most = Parallelism(
        max(start.map, ceil(spike.rows * spike.row_cost / (share * left))),
        max(start.reduce, ceil(spike.keys * spike.key_cost / ((1 - share) * left))),
    )
    return Spike(start, usual, spike, most)


def changes(steps: list[Step]) -> list[int]:
    """The micro-batches after which the numbers changed."""
    return [n for n, step in enumerate(steps) if step.then != step.ran]


def tasks(numbers: Parallelism) -> int:
    return numbers.map + numbers.reduce


def at_rest(scaler: Scaler, load: Load, *, staged: bool = True) -> list[Parallelism]:
    """The numbers that a constant load leads to, one after the other; it is at rest with the last ones."""
    start = scaler.parallelism
    steps = follow(scaler, [load] * (2 * tasks(scaler.bounds.most) * scaler.d), staged=staged)
    return [start, *(steps[n].then for n in changes(steps))]


@given(bounds(), STRIDES, D, st.lists(observations(), max_size=60))
def test_every_decision_is_due_and_none_reverses_another_in_its_grace(
    within: tuple[Parallelism, Parallelism, Parallelism], stride: str, d: int, measured: list[Observation]
) -> None:
    least, most, start = within
    scaler = Scaler(least, most, start, stride=stride, d=d)
    decisions: list[tuple[int, bool]] = []
    before = start
    for n, seen in enumerate(measured):
        then = scaler.observe(seen)
        assert least.map <= then.map <= most.map
        assert least.reduce <= then.reduce <= most.reduce
        if then == before:
            continue
        grows = then.map >= before.map and then.reduce >= before.reduce
        assert grows or (then.map <= before.map and then.reduce <= before.reduce)  # never one side for the other
        since = decisions[-1][0] if decisions else -1
        run = [each.processing for each in measured[max(since + 1, n - d + 1) : n + 1]]
        assert len(run) == d
        assert all(w > THRES for w in run) if grows else all(w <= ABOVE - STEP for w in run)
        if stride == "one":
            assert max(abs(then.map - before.map), abs(then.reduce - before.reduce)) == 1
        decisions.append((n, grows))
        before = then
    for (earlier, out), (later, then_out) in pairwise(decisions):
        assert out == then_out or later - earlier > d


@given(bounds(), STRIDES, D, LOADS, st.booleans())
def test_a_constant_load_comes_to_rest(
    within: tuple[Parallelism, Parallelism, Parallelism], stride: str, d: int, load: Load, staged: bool
) -> None:
    least, most, start = within
    steps = follow(Scaler(least, most, start, stride=stride, d=d), [load] * (100 * (d + 1)), staged=staged)
    # Tasks are added, then given up, and never added again; a decision takes d micro-batches, and the grace one more.
    moves = changes(steps)
    sizes = [tasks(start), *(tasks(steps[n].then) for n in moves)]
    highest = sizes.index(max(sizes))
    assert sizes[: highest + 1] == sorted(set(sizes[: highest + 1]))
    assert sizes[highest:] == sorted(set(sizes[highest:]), reverse=True)
    assert len(moves) <= 2 * tasks(most)
    assert not moves or moves[-1] <= d * len(moves)
    # At rest W is fine, or there are no more tasks to be had.
    assert steps[-1].ratio <= ABOVE or steps[-1].then == most


@given(spikes(), STRIDES, D, st.integers(0, 12))
def test_every_spike_is_recovered_from(case: Spike, stride: str, d: int, calm: int) -> None:
    """Straight within 2d + 2 micro-batches, and one by one within d for each task that there is room for, and 2.

    The 2 are the grace of a scale-in just before the spike, and the micro-batch that shows the recovery.
    """
    scaler = Scaler(Parallelism(1, 1), case.most, case.start, stride=stride, d=d)
    assert all(step.ratio <= ABOVE for step in follow(scaler, [case.usual] * calm))
    decisions = 2 if stride == "straight" else tasks(case.most) - tasks(scaler.parallelism)
    steps = follow(scaler, [case.spike] * (decisions * d + 2 + 3 * d))
    assert all(step.ratio <= ABOVE for step in steps[decisions * d + 1 :])


@given(bounds(6), STRIDES, st.integers(1, 3), LOADS, st.booleans(), st.floats(0, 3))
def test_a_constant_load_comes_to_rest_where_every_change_stops_all_tasks(
    within: tuple[Parallelism, Parallelism, Parallelism], stride: str, d: int, load: Load, staged: bool, stop: float
) -> None:
    """What arrives during a stop waits, as does work that is too much; the scaler is told which part is the stop's."""
    least, most, start = within
    scaler = Scaler(least, most, start, stride=stride, d=d)
    queued = stopped = 0.0
    ran, moved, ratios = start, 0, []
    for number in range(1500):
        if scaler.parallelism != ran:
            ran, moved, queued, stopped = scaler.parallelism, number, queued + stop, stopped + stop
        seen = load.seen(ran, staged=staged)
        work = queued - stopped  # of the same kind as the other work
        more = {"map_time": seen.map_time + work, "reduce_time": seen.reduce_time} if staged else {}
        scaler.observe(replace(seen, processing=seen.processing + queued, stopped=stopped, **more))
        ratios.append(seen.ratio + queued)
        queued = max(0.0, queued + seen.processing - 1.0)
        stopped = min(stopped, queued)
    assert moved < 1000
    assert ratios[-1] <= ABOVE or ran == most


@given(spikes(), st.floats(0.01, 1), st.floats(0.01, 1), STRIDES, D, st.booleans())
def test_giving_up_tasks_makes_no_micro_batch_too_slow(
    case: Spike, rows: float, keys: float, stride: str, d: int, staged: bool
) -> None:
    scaler = Scaler(Parallelism(1, 1), case.start, case.start, stride=stride, d=d)
    fallen = replace(case.usual, rows=rows, keys=keys)
    steps = follow(scaler, [case.usual] * d + [fallen] * (50 * d), staged=staged)
    assert all(step.ratio <= ABOVE for step in steps)


@given(spikes(), st.floats(1, 10), st.booleans(), D)
def test_straight_recovers_from_w_alone_where_one_side_follows(case: Spike, times: float, keys: bool, d: int) -> None:
    """The side's own bound must allow it: that the other one can help is not told by W."""
    far = Parallelism(case.start.map, 10**6) if keys else Parallelism(10**6, case.start.reduce)
    scaler = Scaler(case.start, far, d=d)
    follow(scaler, [case.usual], staged=False)
    spike = replace(case.usual, keys=times) if keys else replace(case.usual, rows=times)
    steps = follow(scaler, [spike] * (5 * d + 2), staged=False)
    assert all(step.ratio <= ABOVE for step in steps[2 * d + 1 :])


@given(NUMBERS, STRIDES, st.integers(1, 2), st.tuples(STAGE, STAGE), st.floats(0, 0.4), st.floats(1, 1.5))
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_more_of_the_same_load_never_has_fewer_tasks_at_rest(
    start: Parallelism, stride: str, d: int, stages: tuple[float, float], fixed: float, times: float
) -> None:
    """Unless tasks of one side are given up after the other side grew: the zone between keeps those of a lower load."""
    load = Load(1.0, 1.0, stages[0] * start.map, stages[1] * start.reduce, fixed)
    more = replace(load, row_cost=load.row_cost * times, key_cost=load.key_cost * times)
    few, many = Parallelism(1, 1), Parallelism(60, 60)
    lower, higher = (at_rest(Scaler(few, many, start, stride=stride, d=d), each) for each in (load, more))
    for way in (lower, higher):
        sizes = [tasks(numbers) for numbers in way]
        assume(sizes in (sorted(sizes), sorted(sizes, reverse=True)))
    assert lower[-1].map <= higher[-1].map
    assert lower[-1].reduce <= higher[-1].reduce


@given(STRIDES, st.booleans(), D, LOADS, st.floats(1, 5), st.floats(0, 0.5))
def test_more_work_or_fixed_cost_never_has_fewer_tasks_of_a_side_that_started_with_least(
    stride: str, staged: bool, d: int, load: Load, times: float, fixed: float
) -> None:
    more = replace(load, row_cost=load.row_cost * times, fixed=load.fixed + fixed)
    lower, higher = (
        at_rest(Scaler(Parallelism(1, 2), Parallelism(24, 2), stride=stride, d=d), each, staged=staged)
        for each in (load, more)
    )
    assert lower[-1].map <= higher[-1].map


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40), st.booleans(), D)
def test_straight_takes_the_smallest_number_that_is_enough(
    start: int, base: int, work: int, known: bool, d: int
) -> None:
    """Each row is as much work as `thres` allows a task, so that the smallest number is the number of rows."""
    reduce_work = 0.3 if known else 0.0
    first = Load(rows=base, keys=1, row_cost=THRES - reduce_work, key_cost=reduce_work)
    then = replace(first, rows=work)
    scaler = Scaler(Parallelism(1, 1), Parallelism(40, 1), Parallelism(start, 1), d=d)
    follow(scaler, [first] * (6 * d), staged=known)
    settled = scaler.parallelism
    assert settled.map == base or 0.8 < first.ratio(settled) <= ABOVE
    steps = follow(scaler, [then] * (6 * d), staged=known)
    smallest = next(n for n in range(1, 41) if then.ratio(Parallelism(n, 1)) <= ABOVE)
    assert smallest == work
    moved = changes(steps)
    assert len(moved) <= 1
    if moved:
        assert scaler.parallelism.map == smallest
    else:
        assert 0.8 < then.ratio(settled) <= ABOVE


@given(spikes(), D, st.integers(0, 4))
def test_a_decision_that_comes_into_force_late_is_waited_for(case: Spike, d: int, lag: int) -> None:
    usual = replace(case.usual, fixed=case.usual.fixed + 0.85 - case.usual.ratio(case.start))
    spike = replace(case.usual, rows=case.spike.rows, fixed=usual.fixed)
    assume(usual.fixed >= 0)
    scaler = Scaler(Parallelism(1, 1), Parallelism(2000, 2000), case.start, d=d)
    assert scaler.observe(usual.seen(case.start)) == case.start
    decided = [case.start] * (lag + 1)
    ratios = []
    for _ in range(2 * (d + lag) + 2):
        ran = decided[-lag - 1]
        seen = replace(spike.seen(ran), ran=ran)
        ratios.append(seen.ratio)
        decided.append(scaler.observe(seen))
    assert ratios[-1] <= ABOVE
    # The numbers just before are as good as those of a decision that is in force at once: what ran with older ones
    # adds nothing to the newer ones.
    prompt = Scaler(Parallelism(1, 1), Parallelism(2000, 2000), case.start, d=d)
    follow(prompt, [usual] + [spike] * (2 * d + 2))
    assert decided[-1] == prompt.parallelism
