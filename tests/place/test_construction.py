"""What holds for scan, redist and readj alike, and what each of them promises by itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.gedik import balance
from skewless.core.arrays import FloatArray, Int32Array
from skewless.place import Readj, Redist, Resources, Scan, Tolerance
from skewless.place.penalty import UTILITIES, utility
from skewless.place.tracking import Problem, TrackingPlacer

EACH = pytest.mark.parametrize("kind", [Scan, Redist, Readj])
RESOURCES = st.sampled_from(["LCL", "LLL", "LQL", "CQL", "CCL"])
TOY: FloatArray = np.array([5.0, 3, 2, 1, 4, 3, 3, 1])
ALPHA = Tolerance.of(1.2)


@st.composite
def problems(draw: st.DrawFn, letters: str = "LCL", first: bool = False) -> Problem:
    """A few items of other frequencies, on as many channels as before, more, or fewer."""
    channels = draw(st.integers(2, 6))
    count = draw(st.integers(1, 14))
    weights = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=count, max_size=count, unique=True)))
    channel = st.integers(-1 if first else 0, channels + 1)
    before = draw(st.lists(channel, min_size=count, max_size=count))
    fallback = draw(st.lists(st.integers(0, channels - 1), min_size=count, max_size=count))
    frequencies = weights / weights.sum()
    return Problem.of(
        Resources(letters), ALPHA, channels, frequencies, np.array(before, np.int32), np.array(fallback, np.int32)
    )


def utility_of(name: str, letters: str, problem: Problem, placed: list[int], where: Int32Array) -> float:
    """The utility of a map of these items only, computed from scratch."""
    rho = balance.balance_penalty(
        Resources(letters), ALPHA, problem.frequencies[placed], where[placed], problem.channels
    )
    moved = problem.state[placed][problem.before[placed] != where[placed]].sum()
    return utility(UTILITIES.index(name), rho, moved / problem.ideal)


@EACH
@given(problem=problems(first=True), name=st.sampled_from(UTILITIES))
def test_every_item_is_on_a_channel_there_is(kind: type[TrackingPlacer], problem: Problem, name: str) -> None:
    where = kind(utility=name).assign(problem)
    assert where.shape == problem.before.shape
    assert where.min() >= 0
    assert where.max() < problem.channels


@given(st.data(), RESOURCES, st.sampled_from(UTILITIES))
def test_scan_puts_each_item_where_it_is_of_most_use(data: st.DataObject, letters: str, name: str) -> None:
    problem = data.draw(problems(letters))
    where = Scan(resources=letters, utility=name).assign_items(problem)
    placed: list[int] = []
    for item in np.argsort(-problem.frequencies, kind="stable").tolist():
        placed.append(item)
        found = utility_of(name, letters, problem, placed, where)
        trial = where.copy()
        for channel in range(problem.channels):
            trial[item] = channel
            assert found <= utility_of(name, letters, problem, placed, trial) + 1e-6


@settings(max_examples=50)
@given(st.data(), RESOURCES, st.sampled_from(UTILITIES))
def test_redist_takes_the_item_of_most_use_for_its_volume(data: st.DataObject, letters: str, name: str) -> None:
    problem = data.draw(problems(letters))
    where = Redist(resources=letters, utility=name).assign_items(problem)
    placed: list[int] = []
    left = set(range(len(where)))
    while left:
        chosen, best, least = -1, np.inf, np.inf
        for item in left:
            trial = where.copy()
            for channel in range(problem.channels):
                trial[item] = channel
                value = utility_of(name, letters, problem, [*placed, item], trial) / problem.frequencies[item]
                least = min(least, value)
                if channel == where[item] and value < best:
                    chosen, best = item, value
        assert best <= least + 1e-6
        placed.append(chosen)
        left.remove(chosen)


@given(st.data(), RESOURCES, st.sampled_from(UTILITIES), st.integers(0, 5))
def test_readj_ends_when_no_move_and_no_swap_helps(
    data: st.DataObject, letters: str, name: str, most_moves: int
) -> None:
    problem = data.draw(problems(letters))
    where, times = Readj(resources=letters, utility=name, most_moves=most_moves).readjust(problem)
    assert times.max() <= most_moves

    def penalty(trial: object) -> float:
        return balance.balance_penalty(
            Resources(letters), ALPHA, problem.frequencies, np.asarray(trial, np.int32), problem.channels
        )

    reached = penalty(where)
    start = np.where(problem.before < problem.channels, problem.before, problem.fallback)
    assert reached <= penalty(start) + 1e-6
    assert np.array_equal(where[times == 0], start[times == 0])
    free = [item for item in range(len(where)) if times[item] < most_moves]
    for item in free:
        for channel in range(problem.channels):
            trial = where.copy()
            trial[item] = channel
            assert penalty(trial) >= reached - 1e-6
    for one, other in combinations(free, 2):
        trial = where.copy()
        trial[[one, other]] = where[[other, one]]
        assert penalty(trial) >= reached - 1e-6


def test_an_item_that_helps_nobody_stays() -> None:
    frequencies = np.array([0.25, 0.25, 0.25, 0.25])
    before = np.array([0, 1, 2, 3], np.int32)
    problem = Problem.of(Resources("LCL"), ALPHA, 4, frequencies, before, np.zeros(4, np.int32))
    for kind in (Scan, Redist, Readj):
        assert np.array_equal(kind().assign(problem), before)


def toy(letters: str, before: list[int]) -> Problem:
    """Figure 1: eight items on two channels, and a third one comes."""
    return Problem.of(Resources(letters), ALPHA, 3, TOY / TOY.sum(), np.array(before, np.int32), np.zeros(8, np.int32))


@pytest.mark.parametrize("kind", [Scan, Readj])
def test_the_toy_scenario_optimized_for_communication(kind: type[TrackingPlacer]) -> None:
    where = kind(resources="LCL").assign(toy("LCL", [0, 0, 0, 0, 1, 1, 1, 1]))
    assert sorted(balance.loads("L", TOY, where, 3)) == [7, 7, 8]  # 1.14


Outcome = tuple[tuple[int, ...], int]  # the loads, smallest first, and the state that moved


def redistributed(before: tuple[int, ...], where: tuple[int, ...], found: dict[tuple[int, ...], set[Outcome]]) -> None:
    """All that Algorithm 3 can make of the toy's items by "APM", whatever it does among equals, in exact numbers."""
    loads, moved = [0, 0, 0], 0
    for item, channel in enumerate(where):
        if channel >= 0:
            loads[channel] += int(TOY[item])
            moved += int(TOY[item]) if channel != before[item] else 0
    found[where] = {(tuple(sorted(loads)), moved)} if -1 not in where else set()
    values: dict[tuple[int, int], Fraction] = {}
    for item in (item for item, channel in enumerate(where) if channel < 0):
        size = int(TOY[item])
        for channel in range(3):
            after = [load + (size if at == channel else 0) for at, load in enumerate(loads)]
            theta = Fraction(1, 5) / (1 + Fraction(6, 5) / 2)
            rho = Fraction(max(after) - min(after)) / (theta * sum(after) / 3)
            gamma = Fraction(3 * (moved + (size if channel != before[item] else 0)), 22)
            values[item, channel] = (rho + gamma) / size
    for (item, channel), value in values.items():
        if value == min(values.values()):
            then = (*where[:item], channel, *where[item + 1 :])
            if then not in found:
                redistributed(before, then, found)
            found[where] |= found[then]


def test_redist_in_the_toy_scenario_optimized_for_communication() -> None:
    before, found = (0, 0, 0, 0, 1, 1, 1, 1), dict[tuple[int, ...], set[Outcome]]()
    redistributed(before, (-1,) * 8, found)
    outcomes = found[(-1,) * 8]
    assert {loads for loads, _ in outcomes} == {(6, 8, 8)}  # 1.33: the utility per volume does not find 7, 7, 8
    where = Redist(resources="LCL").assign(toy("LCL", list(before)))
    moved = int(balance.migrated(TOY, np.array(before), where))
    assert (tuple(sorted(balance.loads("L", TOY, where, 3).astype(int).tolist())), moved) in outcomes


@EACH
def test_the_toy_scenario_optimized_for_computation(kind: type[TrackingPlacer]) -> None:
    before = [0, 0, 1, 0, 1, 1, 1, 0]
    where = kind(resources="CQC").assign(toy("CQC", before))
    assert sorted(balance.loads("Q", TOY, where, 3)) == [24, 25, 25]  # 1.04
    assert sorted(balance.loads("L", TOY, where, 3)) == [5, 7, 10]  # the communication suffers: 2
    assert balance.migrated(TOY, np.array(before), where) == pytest.approx(10, abs=1)


@EACH
def test_the_toy_scenario_optimized_for_both(kind: type[TrackingPlacer]) -> None:
    where = kind(resources="CQL").assign(toy("CQL", [0, 0, 1, 0, 1, 1, 1, 0]))
    assert sorted(balance.loads("L", TOY, where, 3)) == [7, 7, 8]  # 1.14
    assert sorted(balance.loads("Q", TOY, where, 3)) == [22, 25, 27]  # 1.23


def test_items_dropped_from_the_map_count_as_migration() -> None:
    frequencies, before, there = np.array([0.5]), np.array([0], np.int32), np.zeros(1, np.int32)
    lost = (np.array([0.3, 0.2]), np.array([0, 1], np.int32), np.array([1, 1], np.int32))
    problem = Problem.of(Resources("LCL"), ALPHA, 2, frequencies, before, there, lost)
    assert problem.moved == pytest.approx(0.3)
    assert problem.ideal == pytest.approx(0.5)


def test_a_load_that_is_known_is_filled_up() -> None:
    frequencies = np.array([0.2, 0.2])
    rest = (np.array([0.4, 0.1, 0.1]), np.ones(3), np.array([0, 1, 2], np.int32))
    nowhere = np.full(2, -1, np.int32)
    problem = Problem.of(Resources("LCL"), Tolerance.of(1.2), 3, frequencies, nowhere, np.zeros(2, np.int32), rest=rest)
    for kind in (Scan, Redist, Readj):
        assert sorted(kind().assign(problem)) == [1, 2]


def test_a_group_of_rare_items_has_little_quadratic_load() -> None:
    frequencies, nowhere = np.array([0.5]), np.full(1, -1, np.int32)
    rest = (np.array([0.5]), np.array([1000.0]), np.array([1], np.int32))
    problem = Problem.of(Resources("CQL"), ALPHA, 2, frequencies, nowhere, np.zeros(1, np.int32), rest=rest)
    squares = np.array([0, 1000 * 0.0005**2]) / (0.5**2 + 1000 * 0.0005**2)
    assert problem.floor[0] == pytest.approx(squares)
    assert problem.floor[1] == pytest.approx([0, 0.5])
