"""How evenly techniques divide whole micro-batches, side by side: what PartLy is measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from skewless import metrics, split
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError

RIVALS = ("prompt", "bounded", "cam", "five-choices", "hash", "shuffle")
Divide = Callable[[Int64Array], Int32Array]


@dataclass(frozen=True, eq=False)
class Balance:
    """What a technique made of each micro-batch.

    Attributes
    ----------
    bsi
        Block size imbalance, as a part of the average block.
    bci
        Block cardinality imbalance, in keys.
    ksr
        Fragments over keys.
    splits
        Keys that are in several blocks.
    """

    bsi: FloatArray
    bci: FloatArray
    ksr: FloatArray
    splits: FloatArray


def balances(batches: Sequence[Int64Array], blocks: int, partly: split.PartLy | None = None) -> dict[str, Balance]:
    """Divide each micro-batch as a whole, by PartLy and its rivals; each of them starts anew with every micro-batch.

    cAM has the number of candidates that suits the first micro-batch best. `partly` is the shipped one if not given.

    >>> found = balances([np.random.default_rng(1).zipf(1.5, 10_000)], blocks=8)
    >>> bool(found["prompt"].bsi[0] < found["hash"].bsi[0])
    True
    """
    if not batches or not all(map(len, batches)):
        raise SkewlessError("give at least one micro-batch, and none without rows")
    techniques = {"partly": (partly or split.PartLy()).again(workers=blocks).partition, **_rivals(batches[0], blocks)}
    return {name: balance(batches, divide, blocks) for name, divide in techniques.items()}


def _rivals(first: Int64Array, blocks: int) -> dict[str, Divide]:
    candidates, _ = split.best_cam(first, blocks)

    def anew(name: str) -> Divide:
        return lambda keys: split.make(name, blocks).route(keys)

    rivals = {name: anew(name) for name in RIVALS}
    rivals["prompt"] = split.Prompt(blocks).partition
    rivals["bounded"] = lambda keys: split.Bounded(blocks, slide=None, slides=1).route(keys)
    rivals["cam"] = lambda keys: split.CAM(blocks, slide=len(keys), slides=1, candidates=candidates).route(keys)
    return rivals


def balance(batches: Sequence[Int64Array], divide: Divide, blocks: int) -> Balance:
    """What one technique makes of each micro-batch."""
    rows = []
    for keys in batches:
        block = divide(keys)
        found = np.unique(np.stack([keys, block]), axis=1)[0]  # the key of each fragment
        splits = int((np.unique(found, return_counts=True)[1] > 1).sum())
        bsi = metrics.bsi(block, blocks) * blocks / len(keys)
        rows.append((bsi, metrics.bci(keys, block, blocks), metrics.ksr(keys, block, blocks), float(splits)))
    return Balance(*np.array(rows).T)


def balance_table(found: Mapping[str, Balance], title: str) -> Table:
    """The means as a table, the best of each column in bold."""
    table = Table(title=title)
    table.add_column("technique")
    columns = ("BSI, % of a block", "largest BSI, %", "BCI, keys", "fragments a key", "keys split")
    for column in columns:
        table.add_column(column, justify="right")
    cells = {
        name: (100 * b.bsi.mean(), 100 * b.bsi.max(), b.bci.mean(), b.ksr.mean(), b.splits.mean())
        for name, b in found.items()
    }
    best = [min(column) for column in zip(*cells.values(), strict=True)]
    for name, row in cells.items():
        texts = [f"{value:,.3f}" for value in row]
        marked = [f"[bold]{t}[/]" if value <= low else t for t, value, low in zip(texts, row, best, strict=True)]
        table.add_row(name, *marked)
    return table
