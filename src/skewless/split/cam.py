"""cAM: a key stays with the candidate that has it; a new key goes to the least loaded."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.kernel import lean_kernel
from skewless.split.candidates import FULL, LAST, SLIDE, CandidateSplitter, SeenState, last_gone, seen_row
from skewless.split.held import LOAD, WindowState, new_window, window_clear, window_slide
from skewless.split.sliding import advance, slide_end
from skewless.split.two_choices import candidate


class CAM(CandidateSplitter):
    """Sends a key to the first of its d candidates that has seen it in the window, otherwise to the least loaded one.

    No key is ever split within a window, so a hot key stays whole: affinity first, balance second.

    Parameters
    ----------
    workers, slide, slides, candidates
        See `CandidateSplitter`.

    Examples
    --------
    >>> CAM(8).route(np.array([5, 5, 5, 5]))
    array([5, 5, 5, 5], dtype=int32)

    References
    ----------
    N. R. Katsipoulakis, A. Labrinidis, P. K. Chrysanthis: A holistic view of stream partitioning costs. PVLDB 2017.
    """

    name: ClassVar[str] = "cam"

    def __init__(self, workers: int = 1, *, slide: int | None = 100_000, slides: int = 10, candidates: int = 2) -> None:
        super().__init__(workers, slide=slide, slides=slides, candidates=candidates)
        self.window: WindowState = new_window(workers, slides, rows=0)

    @property
    def loads(self) -> Int64Array:
        """Tuples of the window on each worker."""
        loads: Int64Array = self.window.loads[LOAD]
        return loads

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        return int(_route(self.loads, self.seen, keys, weights, out))

    def _end_slide(self) -> None:
        super()._end_slide()
        window_slide(self.window)

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        window_clear(self.window, seen.tail_loads(self.workers))


@lean_kernel
def _route(loads: Int64Array, seen: SeenState, keys: Int64Array, weights: Int64Array, out: Int32Array) -> Int:
    table, meta = seen
    gone = last_gone(seen)
    step = np.int64(weights.shape[0] > 1)
    end = slide_end(meta, keys.shape[0])
    for i in range(end):
        row = seen_row(seen, keys[i])
        if row == FULL:
            return advance(meta, i)
        chosen, worker = np.int64(-1), np.int64(0)
        for j in range(table.shape[1] - LAST):
            other = candidate(keys[i], j, loads.shape[0])
            if table[row, LAST + j] > gone:
                chosen, worker = np.int64(j), other
                break
            if chosen < 0 or loads[other] < loads[worker]:
                chosen, worker = np.int64(j), other
        table[row, LAST + chosen] = meta[SLIDE]
        loads[worker] += weights[i * step]
        out[i] = worker
    return advance(meta, end)
