"""Algorithm 4 traced by hand, micro-batch by micro-batch, and what a scaler refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skewless.core.errors import SkewlessError
from skewless.elastic import Decision, Observation, Parallelism, Scaler
from support.stages import Clocked, Load, follow

FEW, MANY = Parallelism(1, 1), Parallelism(8, 8)
USUAL = Load(rows=1000, keys=70, row_cost=0.001, key_cost=0.01)
"""With 2 and 2 tasks: 0.5 seconds to map and 0.35 to reduce, so W = 0.85."""


def scaler(**options: object) -> Scaler:
    return Scaler(FEW, MANY, Parallelism(2, 2), **{"stride": "one", "d": 2, **options})


def trace(scaler: Scaler, loads: list[Load], *, staged: bool = True) -> list[tuple[float, int, int]]:
    """W of each micro-batch, and the numbers after it."""
    steps = follow(scaler, loads, staged=staged)
    return [(round(step.ratio, 3), step.then.map, step.then.reduce) for step in steps]


def only_w(*ratios: float) -> list[Observation]:
    return [Observation(1.0, ratio, rows=1000, keys=70) for ratio in ratios]


def test_map_tasks_follow_a_rate_that_rises_and_falls() -> None:
    rising = [USUAL] + [replace(USUAL, rows=2200)] * 5
    assert trace(follower := scaler(), rising) == [
        (0.85, 2, 2),
        (1.45, 2, 2),  # 1.1 + 0.35
        (1.45, 3, 2),  # the second one above 0.9
        (1.083, 3, 2),
        (1.083, 4, 2),  # the rate is still higher than before W was too high
        (0.9, 4, 2),  # 0.55 + 0.35, which is not above 0.9
    ]
    assert follower.last == Decision("out", Parallelism(3, 2), Parallelism(4, 2), ("map",))
    assert trace(follower, [USUAL] * 6) == [
        (0.6, 4, 2),  # 0.25 + 0.35; and the second micro-batch of the grace
        (0.6, 3, 2),
        (0.683, 3, 2),
        (0.683, 2, 2),  # the rate fell, the number of keys did not
        (0.85, 2, 2),
        (0.85, 2, 2),
    ]
    assert follower.last == Decision("in", Parallelism(3, 2), Parallelism(2, 2), ("map",))


def test_straight_goes_there_and_back_in_one_decision_each() -> None:
    loads = [USUAL] + [replace(USUAL, rows=2200)] * 4 + [USUAL] * 4
    assert trace(scaler(stride="straight"), loads) == [
        (0.85, 2, 2),
        (1.45, 2, 2),
        (1.45, 4, 2),  # 2 * 1.1 / (0.9 - 0.35) = 4
        (0.9, 4, 2),
        (0.9, 4, 2),
        (0.6, 4, 2),
        (0.6, 2, 2),  # 4 * 0.25 / (0.9 - 0.35) = 1.8
        (0.85, 2, 2),
        (0.85, 2, 2),
    ]


def test_straight_learns_what_does_not_shrink_where_stages_are_not_told() -> None:
    loads = [USUAL] + [replace(USUAL, rows=2900)] * 5
    assert trace(scaler(stride="straight"), loads, staged=False) == [
        (0.85, 2, 2),
        (1.8, 2, 2),  # 1.45 + 0.35
        (1.8, 4, 2),  # 2 * 1.8 / 0.9 = 4
        (1.075, 4, 2),
        (1.075, 6, 2),  # twice the tasks gained 0.725: so much shrinks, 0.35 does not, and 4 * 0.725 / 0.55 = 5.3
        (0.833, 6, 2),
    ]


def test_reduce_tasks_follow_keys_that_rise_alone() -> None:
    loads = [USUAL] + [replace(USUAL, keys=130)] * 5
    assert trace(follower := scaler(), loads) == [
        (0.85, 2, 2),
        (1.15, 2, 2),  # 0.5 + 0.65
        (1.15, 2, 3),
        (0.933, 2, 3),
        (0.933, 2, 4),
        (0.825, 2, 4),
    ]
    assert str(follower.last) == "2 map and 3 reduce tasks became 2 and 4, because the number of keys rose"


def test_both_follow_if_both_rise() -> None:
    loads = [USUAL] + [replace(USUAL, rows=1600, keys=130)] * 8
    assert trace(follower := scaler(), loads) == [
        (0.85, 2, 2),
        (1.45, 2, 2),  # 0.8 + 0.65
        (1.45, 3, 3),
        (0.967, 3, 3),
        (0.967, 4, 4),
        (0.725, 4, 4),  # 0.4 + 0.325, so that a task can be given up
        (0.725, 4, 4),  # but for two micro-batches no decision is reversed
        (0.725, 4, 3),  # without a reduce task 0.833, without a map task 0.858
        (0.833, 4, 3),
    ]
    assert str(follower.last).endswith("4 and 3, because micro-batches took too little of their interval")


def test_the_slower_stage_grows_if_neither_rose() -> None:
    slower_rows = [USUAL] + [replace(USUAL, row_cost=0.002)] * 5
    assert trace(scaler(), slower_rows) == [
        (0.85, 2, 2),
        (1.35, 2, 2),  # 1.0 + 0.35
        (1.35, 3, 2),
        (1.017, 3, 2),
        (1.017, 4, 2),
        (0.85, 4, 2),
    ]
    assert trace(scaler(stride="straight"), slower_rows)[2] == (1.35, 4, 2)
    slower_keys = replace(USUAL, key_cost=0.02)
    assert trace(scaler(), [USUAL, slower_keys, slower_keys])[-1] == (1.2, 2, 3)  # 0.5 + 0.7


@pytest.mark.parametrize(("keys", "then"), [(73, (3, 2)), (76, (3, 3))])
def test_a_number_of_keys_within_a_twentieth_has_not_changed(keys: int, then: tuple[int, int]) -> None:
    more = replace(USUAL, rows=1500, keys=keys)
    assert trace(scaler(), [USUAL, more, more])[-1][1:] == then


def test_both_grow_if_neither_rose_and_stages_are_not_told() -> None:
    slower = replace(USUAL, row_cost=0.002)
    assert trace(scaler(), [USUAL, slower, slower], staged=False)[-1] == (1.35, 3, 3)
    assert trace(scaler(stride="straight"), [USUAL, slower, slower], staged=False)[-1] == (1.35, 3, 3)


def test_the_other_side_grows_if_the_one_that_should_follow_has_no_room() -> None:
    follower = Scaler(FEW, Parallelism(3, 8), Parallelism(2, 2), stride="one", d=1)
    assert trace(follower, [USUAL] + [replace(USUAL, rows=2200)] * 5) == [
        (0.85, 2, 2),
        (1.45, 3, 2),
        (1.083, 3, 3),
        (0.967, 3, 4),
        (0.908, 3, 5),
        (0.873, 3, 5),
    ]


def test_both_sides_grow_straight_if_the_other_one_alone_takes_too_long() -> None:
    more = replace(USUAL, rows=1100, key_cost=0.03)  # 0.55 + 1.05: however many map tasks there are, it is above 0.9
    assert trace(scaler(stride="straight"), [USUAL, more, more, more])[2:] == [(1.6, 4, 4), (0.8, 4, 4)]


def test_a_side_with_little_of_the_time_is_not_all_that_grows() -> None:
    long_maps = replace(USUAL, rows=1760, keys=1)  # 0.88 + 0.01 with 2 and 1 tasks
    follower = Scaler(FEW, Parallelism(8, 64), Parallelism(2, 1), stride="straight", d=1)
    assert trace(follower, [long_maps, *[replace(long_maps, keys=40)] * 2]) == [
        (0.89, 2, 1),
        (1.28, 3, 2),  # with 2 map tasks it would take 20 reduce tasks: 0.88 + 0.02
        (0.787, 3, 2),
    ]
    assert str(follower.last).endswith(
        "3 and 2, because the number of keys rose, and the slower stage made up the rest"
    )


def test_a_side_that_followed_nothing_and_stayed_is_not_said_to_have_made_up_the_rest() -> None:
    follower = scaler(stride="straight", d=1)
    assert trace(follower, [USUAL, replace(USUAL, rows=2200)])[-1] == (1.45, 4, 2)
    assert str(follower.last).endswith("4 and 2, because the rate rose")
    assert trace(scaler(d=1), [USUAL, replace(USUAL, rows=1600, keys=130)])[-1][1:] == (3, 3)
    assert Decision("out", FEW, MANY, ("map", "reduce")).reason == "the rate and the number of keys rose"


def test_a_stage_that_takes_no_time_gets_no_tasks_however_late_micro_batches_are() -> None:
    queued = [replace(USUAL, key_cost=0.0, fixed=2.0)] * 3  # no numbers of tasks are enough
    assert trace(scaler(stride="straight", d=1), queued)[-1] == (2.125, 8, 2)
    assert trace(scaler(stride="one", d=1), [*queued, *queued * 3])[-1] == (2.125, 8, 2)


def test_what_was_gained_under_another_load_says_nothing() -> None:
    loads = [replace(USUAL, rows=2900)] * 2
    follower = scaler(stride="straight", d=1)
    assert trace(follower, [USUAL, *loads], staged=False) == [(0.85, 2, 2), (1.8, 4, 2), (1.075, 6, 2)]
    follower = scaler(stride="straight", d=1)
    risen = [loads[0], replace(USUAL, rows=3200)]  # a tenth more rows: 4 * 1.15 / 0.9, and not 4 * 0.65 / 0.4
    assert trace(follower, [USUAL, *risen], staged=False) == [(0.85, 2, 2), (1.8, 4, 2), (1.15, 6, 2)]


def test_what_was_gained_before_w_was_fine_again_says_nothing() -> None:
    follower = Scaler(Parallelism(2, 1), Parallelism(64, 1), d=1)
    maps = [follower.observe(Observation(1.0, ratio, 1000, 0)).map for ratio in (0.85, 1.8, 0.85, 1.2)]
    assert maps == [2, 4, 4, 6]  # 4 * 1.2 / 0.9 = 5.3, and not 4 * 0.6 / 0.3


def test_of_sides_that_grew_unequally_the_one_that_grew_more_counts() -> None:
    follower = Scaler(FEW, Parallelism(64, 64), Parallelism(2, 3), d=1)
    numbers = [follower.observe(seen) for seen in only_w(1.35, 1.0)]
    # 1.5 and 1.67 times the tasks gained 0.35: 0.525 shrinks, 0.475 does not, and 5 * 0.525 / 0.425 = 6.2.
    assert numbers == [Parallelism(3, 5), Parallelism(4, 7)]


def test_of_micro_batches_that_are_as_extreme_the_newest_speaks() -> None:
    follower = scaler()
    for ratio, rows in ((0.85, 1000), (1.2, 2000), (1.2, 1000)):
        then = follower.observe(Observation(1.0, ratio, rows, 70))
    assert then == Parallelism(3, 3)  # by the newest the rate is what it was; by the one before only it rose


def test_the_count_starts_anew_when_w_leaves_the_zone() -> None:
    follower = scaler(d=3)
    for seen in only_w(0.95, 0.95, 0.85, 0.95, 0.95, 0.75, 0.95, 0.95):
        assert follower.observe(seen) == Parallelism(2, 2)
    (third,) = only_w(0.95)
    assert follower.observe(third) == Parallelism(3, 3)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_tasks_are_added_after_the_dth_micro_batch_and_not_later(d: int) -> None:
    follower = scaler(d=d)
    maps = [follower.observe(seen).map for seen in only_w(*[2.0] * (2 * d))]
    assert maps == [2] * (d - 1) + [3] * d + [4]


@pytest.mark.parametrize(("stride", "numbers"), [("one", (3, 3)), ("straight", (3, 3))])
def test_a_decision_goes_no_further_than_all_d_micro_batches_ask_for(stride: str, numbers: tuple[int, int]) -> None:
    follower = scaler(stride=stride, d=3)
    for seen in only_w(9.0, 1.0, 5.0):
        then = follower.observe(seen)
    assert (then.map, then.reduce) == numbers  # 2 * 1.0 / 0.9 = 2.2


def test_the_least_extreme_one_counts_unless_rows_rise_with_every_micro_batch() -> None:
    for rows, then in (((1000, 2000, 3000), 8), ((1000, 2000, 2100), 3), ((1000, 3000, 2000), 3), ((3000, 2000, 1), 3)):
        follower = Scaler(FEW, MANY, Parallelism(2, 1), d=3)
        for ratio, number in zip((1.2, 2.0, 3.5), rows, strict=True):
            now = follower.observe(Observation(1.0, ratio, number, 0, ratio, 0.0))
        assert now.map == then, rows  # 2 * 3.5 / 0.9 = 7.8, and 2 * 1.2 / 0.9 = 2.7


@pytest.mark.parametrize(("d", "late", "within"), [(1, 1, 100), (2, 0, 75), (2, 1, 150), (3, 0, 150), (3, 1, 270)])
def test_a_backlog_that_a_source_without_a_limit_piles_up_is_worked_off(d: int, late: int, within: int) -> None:
    source = Clocked()
    scaler = Scaler(Parallelism(2, 1), Parallelism(16, 1), d=d)
    risen = [(at - source.rise, seen) for at, seen in source.follow(scaler, 1000, late) if at > source.rise]
    back = next(at + seen.processing for at, seen in risen if seen.ratio <= 0.9)
    assert back <= within
    assert max(seen.ratio for _, seen in risen[-100:]) <= 0.9
    assert scaler.parallelism.map == 6  # (24 / 6 + 1) / 6 = 0.83, as with a limit


def test_a_decision_may_be_reversed_after_the_grace_only() -> None:
    follower = scaler(d=2)
    maps = [follower.observe(seen).map for seen in only_w(1.2, 1.2, 0.3, 0.3, 0.3, 1.2, 1.2, 1.2)]
    assert maps == [2, 3, 3, 3, 2, 2, 2, 3]  # the fourth and the seventh would reverse


def test_no_task_is_added_because_of_a_stop_and_none_is_given_up_until_it_is_worked_off() -> None:
    follower = scaler(d=1, stride="straight")
    left = [(2.4, 2.0), (1.8, 1.4), (1.2, 0.8), (0.85, 0.45)]  # 0.4 of work, and what is left of a stop
    for ratio, stopped in left:
        assert follower.observe(Observation(1.0, ratio, 1000, 70, stopped=stopped)) == Parallelism(2, 2)
    assert follower.observe(Observation(1.0, 2.6, 1000, 70, 1.4, 0.2, stopped=1.0)) == Parallelism(4, 2)  # 1.6 of work
    idle = Observation(1.0, 0.7, 1000, 70, 0.15, 0.1, stopped=0.05)
    assert [follower.observe(each).map for each in (idle, idle)] == [4, 2]  # after the grace


def test_a_task_that_is_needed_is_not_given_up() -> None:
    fallen = [replace(USUAL, rows=900)] * 6  # without a task W would be 0.9 + 0.35 or 0.45 + 0.7
    assert trace(scaler(), fallen) == [(0.8, 2, 2)] * 6
    assert trace(scaler(), [USUAL, *fallen]) == [(0.85, 2, 2)] + [(0.8, 2, 2)] * 6


def test_tasks_that_nothing_needs_are_given_up_though_nothing_fell() -> None:
    for stride in ("one", "straight"):
        follower = Scaler(FEW, MANY, MANY, stride=stride, d=1)
        assert trace(follower, [USUAL] * 20)[-1] == (0.85, 2, 2)


def test_the_zone_between_keeps_tasks_that_a_higher_load_shows_to_be_spare() -> None:
    idle_maps = Load(rows=1, keys=1, row_cost=0.4, key_cost=0.8)
    start = Parallelism(8, 1)  # 0.05 + 0.8
    assert trace(Scaler(FEW, MANY, start, d=1), [idle_maps] * 9)[-1] == (0.85, 8, 1)
    more = replace(idle_maps, key_cost=0.9)  # 0.05 + 0.9, then 0.05 + 0.45, and without seven of the map tasks 0.85
    assert trace(Scaler(FEW, MANY, start, d=1), [more] * 9)[-1] == (0.85, 1, 2)


def test_micro_batches_that_ran_with_older_numbers_are_passed_over() -> None:
    follower = scaler(d=1, stride="straight")
    old, new = Parallelism(2, 2), Parallelism(4, 4)
    (seen,) = only_w(1.8)
    assert follower.observe(replace(seen, ran=old)) == new
    assert follower.observe(replace(seen, ran=old)) == new
    assert follower.observe(replace(seen, ran=new)) == Parallelism(8, 8)


def test_no_more_than_the_bounds_allow() -> None:
    follower = scaler(d=1, stride="straight")
    assert follower.observe(*only_w(100.0)) == MANY
    assert follower.observe(*only_w(100.0)) == MANY
    assert [follower.observe(seen) for seen in only_w(0.0, 0.0)] == [FEW, FEW]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"most": Parallelism(8, 1), "least": Parallelism(1, 2)},
            "at least 2 and at most 1 reduce tasks; give the sma",
        ),
        ({"start": Parallelism(9, 1)}, r"start is Parallelism\(map=9, reduce=1\); give numbers from"),
        ({"least": 2}, r"least is 2; give the numbers of map and of reduce tasks, such as Parallelism\(2, 1\)"),
        ({"most": 16}, "most is 16; give the numbers of map and of reduce tasks"),
        ({"thres": "0.9"}, "thres is '0.9'; give a number, such as 0.9"),
        ({"stride": "two"}, "no stride 'two'; there are one, straight"),
        ({"stride": ["one"]}, r"no stride \['one'\]; there are one, straight"),
        ({"d": 0}, "d is 0; give a whole number"),
        ({"d": 1.5}, "d is 1.5; give a whole number"),
        ({"thres": 0.0}, "thres is 0.0; give a number above 0"),
        ({"thres": 1.2}, "thres is 1.2; give a number above 0 and at most 1"),
        ({"thres": float("nan")}, "thres is nan"),
        ({"thres": 0.1, "step": 0.1}, "step is 0.1 and thres is 0.1; give a step above 0 and below thres"),
        ({"step": 0.0}, "step is 0.0"),
        ({"step": float("nan")}, "step is nan"),
    ],
)
def test_what_cannot_be_followed_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(SkewlessError, match=said):
        Scaler(**{"least": FEW, "most": MANY, **options})
