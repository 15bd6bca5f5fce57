"""A hot spot that wanders, followed by the loop of a placed stream: how soon the busiest worker is near the mean again.

Sixteen workers, rows and placements as on Spark, but no rows are sent: a micro-batch counts the rows of each worker by
the placement that it goes by, and leaves copies without entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless import place
from skewless.control.loop import Chosen, Observed
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.version import Version
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.core.turn import Turn
from skewless.place import Even, Placement, Rule, moves

WORKERS, SLOTS, KEYS, ROWS, EVERY, SPOTS = 16, 256, 40_000, 60_000, 7, 4
WATCHED = 160
HASHES = xxhash64(np.arange(KEYS))
CHOSEN = Chosen("even", "as the test asks")
PLACERS = [(name, {}) for name in place.NAMES] + [(name, {"tail": True}) for name in ("scan", "redist", "readj")]
NOTHING = pa.record_batch({"hash": pa.array([], pa.int64())})


def wandering(batch: int, first: Placement) -> Int64Array:
    """Hashes of rows: of 60 % the keys are two workers' by the first placement, two thirds of them ten hot ones each.

    Every few micro-batches it is two other workers'.
    """
    chance, owners = np.random.default_rng(batch), first.worker_of(HASHES)
    there = [np.flatnonzero(owners == (worker + 5 * (batch // EVERY)) % WORKERS) for worker in (3, 11)]
    kind = chance.random(ROWS)
    rows = np.where(kind < 0.6, chance.choice(np.concatenate(there), ROWS), chance.integers(0, KEYS, ROWS))
    hottest = np.concatenate([keys[:10] for keys in there])
    rows = np.where(kind < 0.4, chance.choice(hottest, ROWS), rows)
    hashes: Int64Array = HASHES[rows]
    return hashes


def micro_batch(folder: Placements, batch: int, version: Version, rows: Int64Array) -> tuple[Observed, float]:
    """What the driver is told of a micro-batch whose control is `version`, and its busiest worker over the mean."""
    turn = Turn(0, batch, "q", "run")
    version = folder.due(version, turn)
    placement = folder.placement(version.force, turn)
    if version.to_come:
        then = folder.placement(version.to_come, turn)
        for giver in {move.source for move in moves(placement, then) if move.source != move.target}:
            folder.give(then, Turn(giver, batch, "q", "run"), [], NOTHING)
    slots = placement.slot_of(rows)
    notes = np.bincount(slots, minlength=placement.slots)
    loads = np.bincount(placement.owners[slots], minlength=WORKERS)
    keys, counts = np.unique(rows, return_counts=True)
    top = np.argsort(-counts)[:WATCHED]
    seen = Counts(keys[top], counts[top], len(rows))
    told = Observed("q", "run", batch, seen, control=version.code, notes=(tuple(notes.tolist()),))
    return told, float(loads.max() / loads.mean())


def run(loop: Placing, folder: Placements, batches: Iterable[Int64Array], idle: bool) -> list[float]:
    """The busiest worker over the mean of every micro-batch."""
    waiting, busiest = list[Observed](), list[float]()
    for batch, rows in enumerate(batches):
        if idle:  # the driver has heard of all before the next one reads the control
            for seen in waiting:
                loop.hear(seen)
            waiting = []
        control, _query = folder.read_control() or (Version(0), None)
        for seen in waiting:  # back to back, it hears of one while the next one runs
            loop.hear(seen)
        told, over_mean = micro_batch(folder, batch, control, rows)
        waiting, busiest = [told], [*busiest, over_mean]
    assert not loop._failed
    return busiest


@pytest.mark.parametrize(("idle", "from_the"), [(True, 3), (False, 4)])
def test_a_hot_spot_that_wanders_is_followed(tmp_path: Path, idle: bool, from_the: int) -> None:
    folder = Placements.at(str(tmp_path))
    loop = Placing("stream", Even(slots=SLOTS), folder, WORKERS, WORKERS, Rule(), 100, CHOSEN)
    first = loop.placement
    busiest = run(loop, folder, (wandering(batch, first) for batch in range(EVERY * SPOTS)), idle)
    for spot in range(SPOTS):
        there = busiest[EVERY * spot : EVERY * (spot + 1)]
        assert there[0] > 2  # or nothing is followed
        assert max(there[from_the - 1 :]) <= 1.3, there


@pytest.mark.parametrize(("name", "options"), PLACERS, ids=str)
def test_uniform_rows_are_even_and_move_nothing(tmp_path: Path, name: str, options: dict[str, bool]) -> None:
    folder, chance = Placements.at(str(tmp_path)), np.random.default_rng(1)
    placer = place.make(name, slots=SLOTS, **options)
    loop = Placing("stream", placer, folder, WORKERS, WORKERS, Rule(alpha=1.1), 100, CHOSEN)
    rows = (HASHES[chance.integers(0, KEYS, ROWS)] for _ in range(6))
    busiest = run(loop, folder, rows, idle=True)
    assert max(busiest) <= 1.1
    assert not loop.announced
    assert loop.placement.version == 0
