"""Tail slots as items: what `tail=True` adds to scan, redist and readj."""

from __future__ import annotations

import numpy as np
import pytest

from skewless import place
from skewless.core.arrays import FloatArray
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.place import Placement, Resources, Tolerance
from skewless.place.tracking import Problem
from skewless.workload import Zipf

TRACKING = pytest.mark.parametrize("name", ["scan", "redist", "readj"])
SLOTS, KEYS, TOLD = 256, 20_000, 500
HASHES, SHARES = xxhash64(np.arange(KEYS)), Zipf(1.0, keys=KEYS).frequencies


def zipf() -> Counts:
    tail: FloatArray = np.bincount(HASHES[TOLD:] % SLOTS, 1e6 * SHARES[TOLD:], SLOTS).astype(np.float64)
    return Counts(HASHES[:TOLD], 1e6 * SHARES[:TOLD], 1e6, tail, distinct=KEYS)


def busiest(placement: Placement) -> float:
    """The rows of the busiest worker over the average."""
    loads = np.bincount(placement.worker_of(HASHES), SHARES, placement.workers)
    return float(loads.max() / loads.mean())


@TRACKING
@pytest.mark.parametrize("first", [False, True])
def test_slots_move_to_balance_what_keys_alone_cannot(name: str, first: bool) -> None:
    ring = None if first else place.make("consistent", slots=SLOTS).place(zipf(), None, 8)
    keys_alone = place.make(name, slots=SLOTS).place(zipf(), ring, 8)
    slots_too = place.make(name, slots=SLOTS, tail=True).place(zipf(), ring, 8)
    assert busiest(keys_alone) > 1.2  # the worker of the hottest key has its share of the tail too
    assert busiest(slots_too) < 1.05


@TRACKING
def test_what_is_balanced_stays(name: str) -> None:
    placer = place.make(name, slots=SLOTS, tail=True)
    even = Counts(np.zeros(0, np.int64), np.zeros(0), 100.0 * SLOTS, np.full(SLOTS, 100.0), distinct=10**5)
    first = placer.place(even, None, 8)
    assert placer.place(even, first, 8) is first


@TRACKING
def test_slots_without_rows_are_the_rings(name: str) -> None:
    seen = zipf()
    assert seen.tail is not None
    bare = np.arange(0, SLOTS, 3)
    told = ~np.isin(seen.keys % SLOTS, bare)
    tail = np.where(np.isin(np.arange(SLOTS), bare), 0, seen.tail)
    some = Counts(seen.keys[told], seen.counts[told], float(seen.counts[told].sum() + tail.sum()), tail, distinct=KEYS)
    placement = place.make(name, slots=SLOTS, tail=True).place(some, None, 8)
    ring = place.make("consistent", slots=SLOTS).place(some, None, 8)
    assert placement.tail[bare].tolist() == ring.tail[bare].tolist()


@TRACKING
def test_without_counted_slots_keys_alone_are_placed(name: str) -> None:
    seen = zipf()
    blind = Counts(seen.keys, seen.counts, seen.total, None, distinct=KEYS)
    with_tail, without = (place.make(name, slots=SLOTS, tail=tail).place(blind, None, 8) for tail in (True, False))
    assert with_tail == without


def test_a_group_weighs_what_its_members_do() -> None:
    frequencies, members = np.array([0.6, 0.4]), np.array([3.0, 1.0])
    nowhere, there = np.full(2, -1, np.int32), np.zeros(2, np.int32)
    problem = Problem.of(
        Resources("CQL"), Tolerance.of(1.2), 2, frequencies, nowhere, there, members=members
    )  # fmt: skip
    squares = np.array([3 * 0.2**2, 0.4**2])
    assert problem.weights[0] == pytest.approx(squares / squares.sum())
    assert problem.weights[1] == pytest.approx(frequencies)
    assert problem.ideal == pytest.approx(4 / 2)  # under "C" state counts keys
