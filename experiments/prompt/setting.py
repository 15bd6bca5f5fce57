"""The cluster of Prompt's figures, what its work costs, and the streams that it is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from experiments.costs import MEASURED, said, work
from experiments.figure import Scale, Scaled
from skewless.core.arrays import Int64Array
from skewless.simulate import Costs, MicroBatches
from skewless.workload import TPCH, Cluster, Taxi, TweetWords, Zipf, synd

CORES = 320  # 20 nodes of 16
PLANNING = MEASURED["plan"]  # seconds for each key of a micro-batch
SORTED = 1.1e-6  # the same with sorting after the interval: more than Figure 2.9b has for a key of the fewest keys
OVERHEAD = MEASURED["micro-batch"] + 2 * MEASURED["task"]  # seconds besides the work on tuples; tasks run in two stages
AMPLITUDE, PERIOD = 0.75, 6.0  # of the sine: a share of its mean, and seconds

# Cores are slower than those that were measured by one factor, so that a tuple takes as long as this, and 320 cores
# have a micro-batch of the size that the thesis speaks of.
TUPLE: dict[Scale, float] = {"small": 200e-6, "full": 20e-6}
SHRUNK: dict[Scale, int] = {"small": 10, "full": 1}


def slower(scale: Scale) -> float:
    """Times that all work takes longer than was measured."""
    return TUPLE[scale] / work(1, slower=1.0).tuple


@dataclass(frozen=True)
class Setting:
    """How large the cluster and its streams are, and what work costs."""

    scale: Scale
    blocks: int = CORES
    reducers: int = CORES
    partial: float = 1.0  # times the cost of a partial result
    merging: float = 1.0  # times the cost of merging one, which is a part of that
    slower: float = 1.0  # times all costs, which makes micro-batches smaller

    @property
    def costs(self) -> Costs:
        """Seconds of work, for the map and reduce tasks."""
        costs = work(1, merging=self.partial, slower=self.slower * slower(self.scale))
        return replace(costs, partial=self.merging * costs.partial)

    @property
    def start(self) -> float:
        """The first rate that a search tries, in tuples a second."""
        return 0.3 * self.blocks / self.costs.tuple

    def engine(self, interval: float) -> MicroBatches:
        """Micro-batches of so many seconds."""
        return MicroBatches(interval, OVERHEAD)


def tweets(scale: Scale) -> TweetWords:
    """Words of tweets: fewer of them at the small scale, the most frequent one with the same share."""
    return TweetWords(words=450_000 // SHRUNK[scale])


class Rows(Protocol):
    """A workload whose rows have several columns."""

    def blocks(self, n: int, block: int) -> Iterator[Any]:
        """The first `n` rows, at most `block` of them at a time."""


@dataclass(frozen=True)
class Column:
    """A column of a workload, as a stream of keys."""

    rows: Rows
    name: str

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""
        return (getattr(rows, self.name) for rows in self.rows.blocks(n, block))

    def take(self, n: int) -> Int64Array:
        """The first `n` keys as one array."""
        return np.concatenate([*self.blocks(n, 1_000_000)])


def tpch(scale: Scale) -> Column:
    """The parts of TPC-H at its scale 1, or a tenth of them."""
    return Column(TPCH(scale=1 / SHRUNK[scale]), "part")


def trips() -> Column:
    """The taxis of DEBS, all of them at both scales."""
    return Column(Taxi(), "taxi")


def submissions() -> Column:
    """The jobs of the Google cluster."""
    return Column(Cluster(), "job")


def skewed(z: float, scale: Scale) -> Zipf:
    """SynD of exponent z."""
    return synd(z, keys=500_000 // SHRUNK[scale])


def cluster_lines(scale: Scale, size: float = 1.0) -> tuple[Scaled, ...]:
    """The lines of a setup that all figures with tasks share, where all work takes `size` times longer."""
    return (
        Scaled("cores: blocks of a micro-batch, and reduce tasks", "20 nodes of 16 cores", f"{CORES}, simulated"),
        Scaled("costs", "those of Spark 2.0, not said", said(size * slower(scale))),
        Scaled("fixed cost of a micro-batch", "not said", f"{OVERHEAD:.2g} s, measured on Spark"),
    )
