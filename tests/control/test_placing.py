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
from skewless.place import AutoFlow, Placer, Rule, Uniform

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
