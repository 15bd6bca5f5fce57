"""Splitters that plan a whole micro-batch from its counts, key by key, into blocks."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy
from skewless.sketch import ExactCounts
from skewless.split.base import Splitter, as_keys
from skewless.split.blocks import BlockPlan


class BlockSplitter(Splitter):
    """Makes a block plan for every micro-batch; one that is routed goes by the plan of the batch before.

    Parameters
    ----------
    workers
        Blocks of a batch, one for each worker.
    slide
        Tuples in a batch.
    """

    plans_batches = True

    def __init__(self, workers: int = 1, *, slide: int = 100_000) -> None:
        super().__init__(workers)
        if not isinstance(slide, (int, np.integer)) or slide < 1:
            raise SkewlessError(f"slide is {slide!r} tuples; give at least 1, a whole number")
        self.slide = int(slide)
        self._batch = ExactCounts()
        self._routed = 0
        self._current = Policy.of(workers)

    @property
    def hot_keys(self) -> int:
        """The number of keys that the current plan splits."""
        return len(self._current.split)

    def plan(self, seen: Counts) -> Policy:
        """The block plan of a micro-batch with counts `seen`."""
        order = np.argsort(-seen.counts, kind="stable")
        order = order[seen.whole[order] > 0]  # what has faded to less than a row is in no block
        tail = seen.tail_loads(self.workers)
        return self._policy_of(self._divide(seen.keys[order], seen.whole[order], tail, seen.tail_keys))

    def partition(self, keys: Int64Array) -> Int32Array:
        """A block for each tuple of one whole batch."""
        keys = as_keys(keys)
        seen = Counts.of(keys)
        return self._divide(seen.keys, seen.whole, None).route(keys)

    @abstractmethod
    def _divide(
        self,
        keys: Int64Array,
        counts: Int64Array,
        tail: Int64Array | None,
        tail_keys: Int64Array | None = None,
    ) -> BlockPlan:
        """The plan for keys that come most frequent first.

        `tail` has the tuples that are in the blocks in any case, and `tail_keys` how many keys these have, if known.
        """

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        start = 0
        while start < len(keys):
            arrived = self._routed % self.slide  # tuples of the current batch
            if arrived == 0 and self._routed > 0:
                self._end_batch()
            end = min(len(keys), start + self.slide - arrived)
            part = keys[start:end]
            out[start:end] = self._current.route(part, self._routed)
            self._count(part)
            self._routed += end - start
            start = end

    def _count(self, keys: Int64Array) -> None:
        self._batch.add(keys)

    def _counted(self) -> tuple[Int64Array, Int64Array]:
        """The keys of the batch that ends, most frequent first, and their counts; the next batch starts empty."""
        ordered, counts = self._batch.heavy(0.0)
        self._batch.reset()
        return ordered, counts

    def _end_batch(self) -> None:
        self._current = self._policy_of(self._divide(*self._counted(), None))

    def _policy_of(self, plan: BlockPlan) -> Policy:
        self.version += 1
        return Policy.from_assignments(self.workers, plan.keys[plan.which], plan.block, plan.size, version=self.version)

    def _begin_batch(self, seen: Counts) -> None:
        """A block plan needs nothing from the batch before."""
