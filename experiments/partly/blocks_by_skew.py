"""The shipped policy with few blocks, with many, and with all skews: where it can be used, and where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.figure import Check, Measured, Table, Tell
from experiments.partly.setting import SEED
from skewless import metrics, split
from skewless.core.arrays import FloatArray
from skewless.workload import Zipf

NUMBERS = (2, 3, 4, 5, 8, 12, 16, 24, 32, 64, 128, 200)
SKEWS = (0.8, 1.4, 2.0)
KEYS, TUPLES, BATCHES = 1_000, 100_000, 3
LIMIT = 0.02  # of a block, beyond 1.1 times Prompt's BSI


@dataclass(frozen=True, eq=False)
class Cell:
    """What PartLy makes of the micro-batches of one skew with one number of blocks.

    Attributes
    ----------
    bsi, prompt
        Its BSI and Prompt's of each micro-batch, as a part of the average block.
    crowd
        Its mean BCI over that of hash.
    """

    blocks: int
    skew: float
    bsi: FloatArray
    prompt: FloatArray
    crowd: float

    @property
    def usable(self) -> bool:
        """Whether each micro-batch keeps to the limit in tuples, and all of them to what hash does in keys."""
        return bool((self.bsi <= 1.1 * self.prompt + LIMIT).all()) and self.crowd <= 1


def cells(tell: Tell, numbers: Sequence[int] = NUMBERS, tuples: int = TUPLES) -> list[Cell]:
    """All numbers of blocks by all skews."""
    found = []
    for skew in SKEWS:
        batches = np.array_split(Zipf(skew, KEYS, SEED).take(BATCHES * tuples), BATCHES)
        for blocks in numbers:
            tell(f"{blocks} blocks, Zipf {skew:g}")
            divide = (split.PartLy(blocks).partition, split.Prompt(blocks).partition, split.Hash(blocks).route)
            divided = [[(keys, each(keys)) for keys in batches] for each in divide]
            bsi = [[metrics.bsi(to, blocks) * blocks / len(keys) for keys, to in each] for each in divided]
            bci = [float(np.mean([metrics.bci(keys, to, blocks) for keys, to in each])) for each in divided]
            found.append(Cell(blocks, skew, np.array(bsi[0]), np.array(bsi[1]), bci[0] / max(bci[2], 1e-9)))
    return found


def check(found: Sequence[Cell]) -> Check:
    """In how many cells the shipped policy can be used."""
    beyond = [
        f"{each.blocks} blocks, Zipf {each.skew:g}: BSI {100 * each.bsi.max():.2g} % of a block, BCI {each.crowd:.2g} "
        "of hash's"
        for each in found
        if not each.usable
    ]
    return Check(
        f"numbers of blocks by skews, of {len(found)}, with a BSI of at most 1.1 times Prompt's plus 2 % of a block "
        "and a BCI of at most hash's",
        float(sum(each.usable for each in found)),
        low=float(len(found)),
        essential=False,
        why="Half of the micro-batches that it was trained on had 24 blocks, the others 4 to 24. The most of a "
        "micro-batch: " + "; ".join(beyond),
    )


def table(found: Sequence[Cell]) -> Table:
    """A row for each number of blocks, and three columns for each skew."""
    names = ("BSI, % of a block", "BCI over hash's", "Prompt's BSI, %", "within the limit")
    rows = []
    for blocks in dict.fromkeys(each.blocks for each in found):
        of_blocks = [each for each in found if each.blocks == blocks]
        values = [
            (Measured.of(100 * each.bsi), each.crowd, Measured.of(100 * each.prompt), "yes" if each.usable else "no")
            for each in of_blocks
        ]
        rows.append((blocks, *(value for each in values for value in each)))
    return Table(
        f"PartLy by numbers of blocks and Zipf exponents z, {KEYS:,} keys, {BATCHES} micro-batches of {TUPLES:,} "
        "tuples",
        ("blocks", *(f"z {skew:g}: {name}" for skew in SKEWS for name in names)),
        tuple(rows),
    )
