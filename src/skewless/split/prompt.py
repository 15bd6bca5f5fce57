"""Prompt: a block plan for every micro-batch, from its exact counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy
from skewless.sketch import ExactCounts, FrequencyBuffer
from skewless.split.base import Splitter, as_keys
from skewless.split.blocks import BlockPlan, partition
from skewless.split.receiver import Receiver

BUFFERS = ("sort", "tree")


class Prompt(Splitter):
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
        buffer, which keeps them in nearly that order all the time.

    Examples
    --------
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
    plans_batches = True

    def __init__(self, workers: int = 1, *, slide: int = 100_000, buffer: str = "sort") -> None:
        super().__init__(workers)
        if slide < 1:
            raise SkewlessError(f"slide is {slide} tuples; give at least 1")
        if buffer not in BUFFERS:
            raise SkewlessError(f"buffer is {buffer!r}; choose one of {', '.join(BUFFERS)}")
        self.slide, self.buffer = slide, buffer
        self._batch: FrequencyBuffer | ExactCounts = FrequencyBuffer(slide) if buffer == "tree" else ExactCounts()
        self._routed = 0
        self._current = Policy.of(workers)

    @property
    def hot_keys(self) -> int:
        """The number of keys that the current plan splits."""
        return len(self._current.split)

    def plan(self, seen: Counts) -> Policy:
        """The block plan of a micro-batch with counts `seen`; every key in them has its blocks, whatever its count."""
        order = np.argsort(-seen.counts, kind="stable")
        tail = seen.tail_loads(self.workers)
        return self._policy_of(partition(seen.keys[order], seen.whole[order], self.workers, tail))

    def partition(self, keys: Int64Array) -> Int32Array:
        """A block for each tuple of one whole batch (Algorithm 2)."""
        keys = as_keys(keys)
        seen = Counts.of(keys)
        return partition(seen.keys, seen.whole, self.workers).route(keys)

    def receiver(self) -> Receiver:
        """What partitions the rows of one task, where each task of a micro-batch sees only its own rows."""
        return Receiver(self.workers, buffer=self.buffer)

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """Blocks for the rows of one task, part by part, when its input has ended."""
        receiver = self.receiver()
        for part in parts:
            receiver.take(part)
        yield from receiver.finish()

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        start = 0
        while start < len(keys):
            arrived = self._routed % self.slide  # tuples of the current batch
            if arrived == 0 and self._routed > 0:
                self._end_batch()
            end = min(len(keys), start + self.slide - arrived)
            part = keys[start:end]
            out[start:end] = self._current.route(part, self._routed)
            self._batch.add(part)
            self._routed += end - start
            start = end

    def _end_batch(self) -> None:
        if isinstance(self._batch, FrequencyBuffer):
            batch = self._batch.finish()
            ordered, counts = batch.keys, batch.counts
        else:
            ordered, counts = self._batch.heavy(0.0)
            self._batch.reset()
        self._current = self._policy_of(partition(ordered, counts, self.workers))

    def _policy_of(self, plan: BlockPlan) -> Policy:
        self.version += 1
        return Policy.from_assignments(self.workers, plan.keys[plan.which], plan.block, plan.size, version=self.version)

    def _begin_batch(self, seen: Counts) -> None:
        """A block plan needs nothing from the batch before."""
