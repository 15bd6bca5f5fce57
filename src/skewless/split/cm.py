"""CM: of a key's candidates, the one with the fewest distinct keys."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.kernel import lean_kernel
from skewless.split.candidates import FULL, LAST, SLIDE, CandidateSplitter, count_expiring, seen_in_window, seen_row
from skewless.split.sliding import SEEN, slide_end
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

    def __init__(self, workers: int = 1, *, slide: int = 100_000, slides: int = 10, candidates: int = 2) -> None:
        super().__init__(workers, slide=slide, slides=slides, candidates=candidates)
        self.cardinalities: Int64Array = np.zeros(workers, dtype=np.int64)

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        return int(_route(self.cardinalities, self._table, self._meta, keys, out))

    def _end_slide(self) -> None:
        expiring = np.zeros(self.workers, dtype=np.int64)
        count_expiring(self._table, self._meta, self.workers, expiring)
        self.cardinalities -= expiring
        super()._end_slide()

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        self.cardinalities[:] = 0


@lean_kernel
def _route(cardinalities: Int64Array, table: Int64Array, meta: Int64Array, keys: Int64Array, out: Int32Array) -> Int:
    workers = cardinalities.shape[0]
    candidates = table.shape[1] - LAST
    end = slide_end(meta, keys.shape[0])
    for i in range(end):
        row = seen_row(table, meta, keys[i])
        if row == FULL:
            end = i
            break
        chosen, worker = 0, candidate(keys[i], 0, workers)
        for j in range(1, candidates):
            other = candidate(keys[i], j, workers)
            if cardinalities[other] < cardinalities[worker]:
                chosen, worker = j, other
        if not seen_in_window(table, meta, row, chosen):
            cardinalities[worker] += 1
        table[row, LAST + chosen] = meta[SLIDE]
        out[i] = worker
    meta[SEEN] += end
    return end
