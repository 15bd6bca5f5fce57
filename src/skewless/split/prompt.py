"""Prompt: a block plan for every micro-batch, from its exact counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy
from skewless.sketch import FrequencyBuffer
from skewless.split.base import as_keys
from skewless.split.block_splitter import BlockSplitter
from skewless.split.blocks import BlockPlan, partition
from skewless.split.receiver import Receiver

BUFFERS = ("sort", "tree")


class Prompt(BlockSplitter):
    """Counts a micro-batch as it arrives and divides it into blocks equal in tuples and in keys.

    `partition` is the paper's form: it has the whole batch, and gives each of its tuples a block. `route` has to answer
    before the batch is complete, so it follows the plan of the batch before; a key that was not in that batch goes to
    its home. `receiver` is for tasks that each have a part of the batch and wait until it is complete.

    Parameters
    ----------
    workers
        Blocks of a batch, one for each worker.
    slide
        Tuples in a batch.
    buffer
        How the keys are sorted: "sort" counts and sorts at the end of the batch; "tree" is the paper's frequency-aware
        buffer, which keeps them in nearly that order all the time. It needs the tuples as they come, so that `plan`,
        which has only counts, and Spark refuse it.

    Examples
    --------
    >>> import numpy as np
    >>> keys = np.random.default_rng(1).zipf(1.5, 10_000)
    >>> blocks = Prompt(8).partition(keys)
    >>> np.bincount(blocks)
    array([1250, 1250, 1250, 1250, 1250, 1250, 1250, 1250])

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref: Prompt: dynamic data-partitioning for distributed
    micro-batch stream processing systems. SIGMOD 2020.
    """

    name: ClassVar[str] = "prompt"
    in_task = True

    def __init__(self, workers: int = 1, *, slide: int = 100_000, buffer: str = "sort") -> None:
        super().__init__(workers, slide=slide)
        if buffer not in BUFFERS:
            raise SkewlessError(f"buffer is {buffer!r}; choose one of {', '.join(BUFFERS)}")
        self.buffer = buffer
        self._tree = FrequencyBuffer(slide) if buffer == "tree" else None

    def partition(self, keys: Int64Array) -> Int32Array:
        """A block for each tuple of one whole batch."""
        if self.buffer == "sort":
            return super().partition(keys)
        keys = as_keys(keys)
        buffer = FrequencyBuffer(max(1, len(keys)))
        buffer.add(keys)
        batch = buffer.finish()
        return self._divide(batch.keys, batch.counts, None).route(keys)

    def plan(self, seen: Counts) -> Policy:
        """The block plan of a micro-batch with counts `seen`, where these are sorted, and not kept in a tree."""
        self.refuse_tree()
        return super().plan(seen)

    def refuse_tree(self) -> None:
        """Refuse the paper's buffer where there are only counts."""
        if self.buffer == "tree":
            raise SkewlessError(
                "buffer is 'tree', which keeps the order of keys while their tuples come, and this plan is made of "
                "counts; omit buffer, or call partition(keys) or route(keys)"
            )

    def receiver(self) -> Receiver:
        """What partitions the rows of one task, where each task of a micro-batch sees only its own rows."""
        return Receiver(self.workers, buffer=self.buffer)

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """Blocks for the rows of one task, part by part, when its input has ended."""
        receiver = self.receiver()
        for part in parts:
            receiver.take(part)
        yield from receiver.finish()

    def _divide(
        self,
        keys: Int64Array,
        counts: Int64Array,
        tail: Int64Array | None,
        tail_keys: Int64Array | None = None,
    ) -> BlockPlan:
        return partition(keys, counts, self.workers, tail, tail_keys)

    def _count(self, keys: Int64Array) -> None:
        if self._tree is None:
            super()._count(keys)
        else:
            self._tree.add(keys)

    def _counted(self) -> tuple[Int64Array, Int64Array]:
        if self._tree is None:
            return super()._counted()
        batch = self._tree.finish()
        return batch.keys, batch.counts
