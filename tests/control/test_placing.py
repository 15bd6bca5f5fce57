"""The loop of a placed stream: what it learns from a micro-batch, and what the placer is told of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skewless.control.loop import Chosen, Observed
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.version import Version
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.place import AutoFlow, Even, Placement, Placer, Readj, Rule, Uniform
from skewless.place.base import Owners

CHOSEN = Chosen("as asked", "as the test asks")


def loop(path: Path, placer: Placer, rule: Rule) -> Placing:
    return Placing("stream", placer, Placements.at(str(path)), 2, 2, rule, 100, CHOSEN)


def seen(batch: int, *rows: int, top: Counts | None = None, version: Version | None = None) -> Observed:
    return Observed("q", "run", batch, top, control=(version or Version(0)).code, notes=(rows,))


class Told(Uniform):
    """Remembers the rounds that it was told of."""

    def __init__(self, slots: int = 4) -> None:
        super().__init__(slots)
        self.rounds: list[Counts] = []

    def learn(self, seen: Counts) -> None:
        self.rounds.append(seen)


def test_a_placer_is_told_of_every_micro_batch_once_and_of_nothing_else(tmp_path: Path) -> None:
    placer = Told()
    placing = loop(tmp_path, placer, Rule(memory=0.9))
    hot = Counts(np.array([5, 6]), np.array([30, 20]), total=60)
    placing.hear(seen(0, 10, 30, 20, 0, top=hot))
    for _ask in range(3):
        placing.rebalance(dry=True)
    placing.hear(seen(1, 4, 0, 0, 0))
    first, second = placer.rounds
    assert (first.keys.tolist(), first.counts.tolist(), first.total) == ([5, 6], [30, 20], 60)
    assert first.by_slot(4).tolist() == [10, 30, 20, 0]
    assert (second.total, second.by_slot(4).tolist()) == (4, [4, 0, 0, 0])  # not faded into the one before
    assert not placing._failed


@pytest.mark.parametrize(("window_length", "moves_at"), [(1, 1), (4, 4)])
def test_a_spike_moves_slots_by_the_rounds_it_lasts(tmp_path: Path, window_length: int, moves_at: int) -> None:
    # Slots 0 and 2 are worker 0's at first. Then a spike of 60 and 20 instead of 20 each.
    placing = loop(tmp_path, AutoFlow(slots=4, factor=0.5, window_length=window_length), Rule(alpha=1.0, rest=0))
    for batch in range(4):
        placing.hear(seen(batch, 10, 10, 10, 10))
        placing.rebalance(dry=True)
    announced = []
    for spike in range(4):
        placing.hear(seen(4 + spike, 40, 10, 20, 10))
        announced.append(placing.announced)
    assert announced.index(True) + 1 == moves_at
    assert not placing._failed


@pytest.mark.parametrize("workers", ["3", 1.5, True, 0, 3])
def test_a_number_of_workers_that_cannot_be_is_refused(tmp_path: Path, workers: object) -> None:
    placing = loop(tmp_path, Uniform(4), Rule())
    says = f"workers is {workers!r}; give a whole number from 1 to 2, as this query has state in that many partitions"
    with pytest.raises(SkewlessError, match=says):
        placing.rebalance(workers)  # type: ignore[arg-type]  # what is refused
    assert placing.version == Version(0)


BUSY = (40, 10, 20, 10)  # worker 0 has slots 0 and 2: 60 rows and 20; slot 2 would make it even


def announces(path: Path, rule: Rule, *batches: tuple[int, ...]) -> list[bool]:
    """Whether something is announced after each micro-batch, by a placer that levels all it can."""
    placing = loop(path, Even(slots=4, hot=1.0), rule)
    found = []
    for batch, rows in enumerate(batches):
        placing.hear(seen(batch, *rows, version=placing.version))
        found.append(placing.announced)
    assert not placing._failed
    return found


@pytest.mark.parametrize(
    ("horizon", "cost", "moves"),
    [(1, 1.0, False), (2, 1.0, True), (1, 0.9, True), (2, 2.0, False), (3, 2.0, True), (0, 0.0, False)],
)
def test_a_move_has_to_gain_over_the_horizon_what_it_costs(
    tmp_path: Path, horizon: int, cost: float, moves: bool
) -> None:
    # It moves 20 rows and brings 20 down to the average.
    assert announces(tmp_path, Rule(horizon=horizon, cost=cost, memory=0.0), BUSY) == [moves]


@pytest.mark.parametrize(("alpha", "moves"), [(1.4, True), (1.6, False)])
def test_a_placement_is_looked_for_above_alpha(tmp_path: Path, alpha: float, moves: bool) -> None:
    assert announces(tmp_path, Rule(alpha=alpha), BUSY) == [moves]  # 60 rows over an average of 40


class Evened(Uniform):
    """Has one slot of 70 rows and two of 35 on each worker, instead of one kind on each."""

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        if previous is None:
            return super()._place(seen, previous, workers)
        return Owners(np.array([0, 0, 1, 0, 0, 1, 1, 1], np.int32))


@pytest.mark.parametrize(("resources", "moves"), [("LCL", False), ("CQC", True), ("LQL", True), ("LLQ", True)])
def test_a_placement_is_looked_for_if_one_of_the_resources_is_out_of_balance(
    tmp_path: Path, resources: str, moves: bool
) -> None:
    # Worker 0 has two slots of 70 rows, and worker 1 four of 35: even in rows, and 2 to 1 in their squares.
    placing = loop(tmp_path, Evened(slots=8), Rule(resources=resources, memory=0.0, cost=0.1))
    placing.hear(seen(0, 70, 35, 70, 35, 0, 35, 0, 35))
    assert placing.announced == moves
    assert not placing._failed


@pytest.mark.parametrize("rest", [1, 2, 4])
def test_a_placement_rests_before_the_next(tmp_path: Path, rest: int) -> None:
    # Announced in 0, carried by 1, in force from 2 on: then slots 1 to 3 are worker 1's and busy.
    batches = [BUSY, BUSY, *[(10, 20, 20, 40)] * 6]
    found = announces(tmp_path, Rule(rest=rest, memory=0.0), *batches)
    assert found[:2] == [True, False]
    assert found.index(True, 2) - 1 == rest


@pytest.mark.parametrize(("memory", "lasts"), [(0.0, 1), (0.5, 2), (0.9, 8)])
def test_a_spike_has_to_last_by_the_memory(tmp_path: Path, memory: float, lasts: int) -> None:
    # Worker 0 has 40 rows of 80 in each of 30 micro-batches, and then 54, which is above 1.2 times the average.
    found = announces(tmp_path, Rule(memory=memory), *[(30, 20, 10, 20)] * 30, *[(44, 13, 10, 13)] * 12)
    rows, weights, batches = 0.0, 0.0, 0
    while not weights or rows <= 1.2 * 40 * weights:
        rows, weights = memory * rows + (40 if batches < 30 else 54), memory * weights + 1
        batches += 1
    assert found.index(True) + 1 == batches
    assert batches - 30 == lasts


@pytest.mark.parametrize(("byte_cost", "moves"), [(0.0, True), (0.02, True), (0.05, False)])
def test_the_bytes_of_state_are_a_price_of_a_move(tmp_path: Path, byte_cost: float, moves: bool) -> None:
    placing = loop(tmp_path, Even(slots=4, hot=1.0), Rule(memory=0.0, byte_cost=byte_cost))
    for worker, size in ((0, 500), (1, 12_000), (0, 8_000)):  # what a worker tells takes the place of what it told
        placing.folder.tell_size(Turn(worker, 0, "q"), size)
    assert placing.folder.state_bytes() == 20_000
    # Slot 2 moves, 20 of 80 rows, and as much of the state: 5,000 bytes. It brings 20 rows down to the average.
    placing.hear(seen(0, *BUSY))
    assert placing.announced == moves
    assert not placing._failed


def test_a_placement_may_follow_another_before_a_micro_batch_went_by_it(tmp_path: Path) -> None:
    # Announced after 0, carried by 1, which shows that slot 3 is busy: so the next is announced at once.
    found = announces(tmp_path, Rule(memory=0.0), BUSY, (10, 20, 20, 40), (10, 20, 20, 40), (10, 20, 20, 40))
    assert found == [True, True, False, False]


def test_a_placer_that_asks_for_more_keys_than_are_watched_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def made(path: Path, watched: int | None) -> Placing:
        folder = Placements.at(str(path))
        return Placing("stream", Readj(slots=4), folder, 2, 16, Rule(), 100, CHOSEN, watched)

    with caplog.at_level("INFO", logger="skewless"):
        blind = made(tmp_path / "one", 128)
        line = "readj asks for the 865 most frequent keys, and the 128 first are watched"
        assert [line in record.getMessage() for record in caplog.records] == [True]
        assert line in blind.describe()
        caplog.clear()
        for seeing in (made(tmp_path / "two", 865), made(tmp_path / "three", None)):
            assert not any("asks for" in text for text in seeing.describe())
        assert not caplog.records
