"""CM: of a key's candidates, the one with the fewest distinct keys."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.kernel import lean_kernel
from skewless.sketch.open_addressing import KEY
from skewless.split.candidates import FULL, LAST, SLIDE, SLIDES, CandidateSplitter, SeenState, last_gone, seen_row
from skewless.split.sliding import advance, slide_end
from skewless.split.two_choices import candidate


class CM(CandidateSplitter):
    """Sends a key to the one of its d candidates with the fewest distinct keys in the window, the first among equals.

    It balances the number of keys, which determines the cost of merging, and not the number of tuples.

    Parameters
    ----------
    workers, slide, slides, candidates
        See `CandidateSplitter`.

    Examples
    --------
    >>> splitter = CM(8)
    >>> _ = splitter.route(np.arange(10_000))
    >>> int(splitter.cardinalities.max() - splitter.cardinalities.min()) <= 2
    True

    References
    ----------
    N. R. Katsipoulakis, A. Labrinidis, P. K. Chrysanthis: A holistic view of stream partitioning costs. PVLDB 2017.
    """

    name: ClassVar[str] = "cm"

    def __init__(self, workers: int = 1, *, slide: int | None = 100_000, slides: int = 10, candidates: int = 2) -> None:
        super().__init__(workers, slide=slide, slides=slides, candidates=candidates)
        self.cardinalities: Int64Array = np.zeros(workers, dtype=np.int64)

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        return int(_route(self.cardinalities, self.seen, keys, out))

    def _end_slide(self) -> None:
        _expire(self.cardinalities, self.seen)
        super()._end_slide()

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        self.cardinalities[:] = 0


@lean_kernel
def _route(cardinalities: Int64Array, seen: SeenState, keys: Int64Array, out: Int32Array) -> Int:
    table, meta = seen
    workers, gone = cardinalities.shape[0], last_gone(seen)
    end = slide_end(meta, keys.shape[0])
    for i in range(end):
        row = seen_row(seen, keys[i])
        if row == FULL:
            return advance(meta, i)
        chosen, worker = 0, candidate(keys[i], 0, workers)
        for j in range(1, table.shape[1] - LAST):
            other = candidate(keys[i], j, workers)
            if cardinalities[other] < cardinalities[worker]:
                chosen, worker = j, other
        if table[row, LAST + chosen] <= gone:
            cardinalities[worker] += 1
        table[row, LAST + chosen] = meta[SLIDE]
        out[i] = worker
    return advance(meta, end)


@lean_kernel
def _expire(cardinalities: Int64Array, seen: SeenState) -> None:
    """Take off the keys that a worker has only from the slide that leaves the window when the current one ends."""
    table, leaving = seen.table, seen.meta[SLIDE] - seen.meta[SLIDES] + 1
    if leaving < 1:
        return
    for row in range(table.shape[0]):
        for j in range(table.shape[1] - LAST):
            if table[row, LAST + j] == leaving:
                cardinalities[candidate(table[row, KEY], j, cardinalities.shape[0])] -= 1
