from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload.linear_road import ENTRANCE, EXIT, INTERVAL, SEGMENT, LinearRoad, Reports

ROAD = LinearRoad(expressways=2, vehicles=2000, accident_every=300, seed=7)
STREAM = ROAD.take(2000 * 120)  # an hour


def columns(reports: Reports) -> list[np.ndarray]:
    return [getattr(reports, column.name) for column in fields(reports)]


def by_vehicle(reports: Reports) -> Reports:
    order = np.lexsort((reports.time, reports.vehicle))
    return Reports(*(column[order] for column in columns(reports)))


@settings(max_examples=20)
@given(st.integers(0, 900), st.integers(1, 1000))
def test_the_stream_does_not_depend_on_the_block(n: int, block: int) -> None:
    road = LinearRoad(vehicles=100)
    pieces = [columns(piece) for piece in road.blocks(n, block)]
    assert all(len(piece[0]) == block for piece in pieces[:-1])
    for i, whole in enumerate(columns(road.take(n))):
        assert len(whole) == n
        assert np.concatenate([whole[:0], *(piece[i] for piece in pieces)]).tolist() == whole.tolist()


def test_a_seed_is_a_stream() -> None:
    first, again, other = (LinearRoad(vehicles=500, seed=seed).take(20_000) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(columns(first), columns(again), strict=True))
    assert not np.array_equal(first.position, other.position)


def test_reports_are_in_order_of_time_and_within_the_road() -> None:
    assert (np.diff(STREAM.time) >= 0).all()
    assert STREAM.speed.min() >= 0
    assert STREAM.speed.max() <= 100
    assert set(STREAM.lane.tolist()) == {0, 1, 2, 3, 4}
    assert set(STREAM.direction.tolist()) == {0, 1}
    assert set(STREAM.expressway.tolist()) == {0, 1}
    assert STREAM.position.min() >= 0
    assert STREAM.position.max() < 100 * SEGMENT
    assert np.array_equal(STREAM.segment, STREAM.position // SEGMENT)


def test_a_car_reports_every_half_minute_from_entrance_to_exit() -> None:
    cars = by_vehicle(STREAM)
    same = np.diff(cars.vehicle) == 0
    assert (np.diff(cars.time)[same] > 0).all()
    assert (np.diff(cars.time)[same] <= 2 * INTERVAL).all()
    assert np.bincount(np.diff(cars.time)[same]).argmax() == INTERVAL
    # Whoever came after the start enters first, and whoever left before the end exits last.
    firsts, lasts = np.append(True, ~same), np.append(~same, True)
    assert (cars.lane[firsts & (cars.vehicle >= ROAD.vehicles)] == ENTRANCE).all()
    leavers = lasts & (cars.time < STREAM.time[-1] - INTERVAL)
    assert (cars.lane[leavers] == EXIT).mean() > 0.95
    assert not (cars.lane[~firsts] == ENTRANCE).any()
    assert not (cars.lane[~lasts] == EXIT).any()


def test_a_car_keeps_its_road_and_moves_as_fast_as_it_says() -> None:
    cars = by_vehicle(STREAM)
    same = np.diff(cars.vehicle) == 0
    assert (np.diff(cars.expressway)[same] == 0).all()
    assert (np.diff(cars.direction)[same] == 0).all()
    moved = np.where(cars.direction[1:] == 0, 1, -1) * np.diff(cars.position)
    # A car that ran into another stopped short or was pushed on, within its segment.
    expected = cars.speed[:-1] * SEGMENT / 3600 * INTERVAL
    assert (np.abs(moved - expected)[same] <= 1).mean() > 0.999
    assert (np.abs(moved - expected)[same] <= SEGMENT).all()


def test_accidents_are_two_cars_that_stand_in_one_place() -> None:
    stands = STREAM.speed == 0
    vehicles, counts = np.unique(STREAM.vehicle[stands], return_counts=True)
    assert len(vehicles) >= 4
    places = {v: set(STREAM.position[stands & (STREAM.vehicle == v)].tolist()) for v in vehicles.tolist()}
    assert all(len(place) == 1 for place in places.values())
    for vehicle, place in places.items():
        assert any(other != vehicle and place == where for other, where in places.items())
    over = STREAM.time[-1] - 20 * INTERVAL
    early = [v for v in vehicles.tolist() if STREAM.time[stands & (STREAM.vehicle == v)].min() < over]
    assert all(counts[vehicles == v][0] >= 4 for v in early)


def test_a_crowd_is_slow() -> None:
    reports = LinearRoad(vehicles=10_000, seed=3).take(600_000)
    cars = np.bincount(reports.key, minlength=200) / 60
    speed = np.bincount(reports.key, reports.speed, minlength=200) / np.maximum(1, cars * 60)
    assert speed[cars > 100].mean() < 0.8 * speed[(cars > 5) & (cars < 40)].mean()


def test_without_accidents_nobody_stands() -> None:
    assert LinearRoad(vehicles=500, accident_every=float("inf")).take(50_000).speed.min() > 0


def test_segments_of_all_roads_have_keys_of_their_own() -> None:
    key = STREAM.key
    assert np.array_equal(key % 100, STREAM.segment)
    assert np.array_equal(key // 100 % 2, STREAM.direction)
    assert np.array_equal(key // 200, STREAM.expressway)


def test_an_empty_stream_has_all_columns() -> None:
    assert [len(column) for column in columns(LinearRoad(vehicles=10).take(0))] == [0] * 8


def test_what_is_no_road_is_refused() -> None:
    with pytest.raises(SkewlessError, match="0 vehicles"):
        LinearRoad(vehicles=0)
    with pytest.raises(SkewlessError, match="infinity for no accidents"):
        LinearRoad(accident_every=0)
    with pytest.raises(SkewlessError, match="at least 0, not -1"):
        LinearRoad().take(-1)
    with pytest.raises(SkewlessError, match="at least 1 tuple, not 0"):
        next(LinearRoad().blocks(10, block=0))
