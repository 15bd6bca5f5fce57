"""What the workers hold in the sliding window: loads by subtract-on-evict, and the fragments of each hot key.

Both are kept per slide, so that a tuple costs O(1), and the end of a slide changes only what the slide that leaves had
set. Nothing is allocated while tuples flow. What other partitioners hold can be counted in: it stays until they tell
anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import BoolArray, Int, Int32Array, Int64Array
from skewless.core.kernel import inner, lean_kernel

# Rows of `loads`; the past slides follow.
LOAD = 0  # per worker, over the window
BEFORE = 1  # the same without the current slide
SLIDES = 2

# Planes of `held`.
SLIDES_OF = 0  # slides of the window in which the worker got the row's key, and 1 more if others hold it there
HOLDER = 1  # the workers that hold the key, in the first `fragments` places
PLACE = 2  # the worker's place among them

# What `meta` holds.
HEAD = 0  # the slide that tuples go to
TOTAL = 1  # load of the whole window
META = 2

OTHERS = -1  # of the planes of `bits`, the one that is no slide: what others hold


class WindowState(NamedTuple):
    """The arrays of the window, to be handed to kernels."""

    loads: Int64Array  # (LOAD, BEFORE, each past slide) x worker
    bits: Int64Array  # (slide, and OTHERS) x row x word: workers that got the row's key in that slide
    held: Int32Array  # row x (SLIDES_OF, HOLDER, PLACE) x worker
    fragments: Int64Array  # per row: workers that hold the key
    meta: Int64Array


def new_window(workers: int, slides: int, rows: int) -> WindowState:
    """An empty window with room for `rows` hot keys."""
    return WindowState(
        loads=np.zeros((SLIDES + slides, workers), dtype=np.int64),
        bits=np.zeros((slides + 1, rows, (workers + 63) // 64), dtype=np.int64),
        held=np.zeros((rows, 3, workers), dtype=np.int32),
        fragments=np.zeros(rows, dtype=np.int64),
        meta=np.zeros(META, dtype=np.int64),
    )


def with_rows(window: WindowState, rows: int) -> WindowState:
    """The same window with room for `rows` hot keys."""
    added = rows - len(window.fragments)
    return window._replace(
        bits=np.pad(window.bits, ((0, 0), (0, added), (0, 0))),
        held=np.pad(window.held, ((0, added), (0, 0), (0, 0))),
        fragments=np.pad(window.fragments, (0, added)),
    )


@inner
def window_fragment(window: WindowState, head: Int, row: Int, worker: Int) -> None:
    """Record that a tuple of the hot key in `row` went to `worker`, in the slide `head`."""
    bits, held, fragments = window.bits, window.held, window.fragments
    word, bit = worker >> 6, np.int64(1) << (worker & 63)
    if bits[head, row, word] & bit:
        return
    bits[head, row, word] |= bit
    _hold(held, fragments, row, worker)


@inner
def _hold(held: Int32Array, fragments: Int64Array, row: Int, worker: Int) -> None:
    """Count one more slide in which the worker got the key in `row`."""
    held[row, SLIDES_OF, worker] += 1
    if held[row, SLIDES_OF, worker] == 1:
        held[row, HOLDER, fragments[row]] = worker
        held[row, PLACE, worker] = fragments[row]
        fragments[row] += 1


@lean_kernel
def window_slide(window: WindowState) -> None:
    """End the current slide: the oldest slide leaves the window, and its memory is used for the new one."""
    loads, bits, meta = window.loads, window.bits, window.meta
    past = SLIDES + meta[HEAD]
    meta[HEAD] = (meta[HEAD] + 1) % (bits.shape[0] - 1)
    oldest = SLIDES + meta[HEAD]
    for worker in range(loads.shape[1]):
        loads[past, worker] = loads[LOAD, worker] - loads[BEFORE, worker]
        loads[LOAD, worker] -= loads[oldest, worker]
        meta[TOTAL] -= loads[oldest, worker]
        loads[BEFORE, worker] = loads[LOAD, worker]
        loads[oldest, worker] = 0
    for row in range(bits.shape[1]):
        for word in range(bits.shape[2]):
            if bits[meta[HEAD], row, word] != 0:
                _expire(window.held, window.fragments, row, word, bits[meta[HEAD], row, word])
                bits[meta[HEAD], row, word] = 0


@inner
def _expire(held: Int32Array, fragments: Int64Array, row: Int, word: Int, bits: Int) -> None:
    """Forget that the key in `row` went to these workers in one slide."""
    for b in range(64):
        if (bits >> b) & 1:
            worker = word * 64 + b
            held[row, SLIDES_OF, worker] -= 1
            if held[row, SLIDES_OF, worker] == 0:
                fragments[row] -= 1
                moved = held[row, HOLDER, fragments[row]]
                held[row, HOLDER, held[row, PLACE, worker]] = moved
                held[row, PLACE, moved] = held[row, PLACE, worker]


@inner
def window_release(window: WindowState, row: Int) -> None:
    """Forget the fragments of the key in `row`, which is no longer hot."""
    window.fragments[row] = 0
    for worker in range(window.held.shape[2]):
        window.held[row, SLIDES_OF, worker] = 0
    for slide in range(window.bits.shape[0]):
        for word in range(window.bits.shape[2]):
            window.bits[slide, row, word] = 0


def window_share(window: WindowState, loads: Int64Array, held: BoolArray) -> None:
    """Count in what others hold, in place of what they held before: loads to add, and row x worker where keys are."""
    window.loads[[LOAD, BEFORE]] += loads
    window.meta[TOTAL] += loads.sum()
    for row in range(len(held)):
        _share(window, row, held[row])


@lean_kernel
def _share(window: WindowState, row: Int, held: BoolArray) -> None:
    others = window.bits.shape[0] + OTHERS
    for word in range(window.bits.shape[2]):
        _expire(window.held, window.fragments, row, word, window.bits[others, row, word])
        window.bits[others, row, word] = 0
    for worker in range(held.shape[0]):
        if held[worker]:
            window_fragment(window, others, row, worker)


def window_clear(window: WindowState, load: Int64Array) -> None:
    """Start a micro-batch: the window holds nothing but `load` on each worker."""
    window.loads[:] = 0
    window.loads[LOAD] = load  # it belongs to the current slide and leaves the window with it
    window.meta[TOTAL] = load.sum()
    window_forget(window)


def window_forget(window: WindowState) -> None:
    """Forget all fragments, but not the loads."""
    window.bits[:] = 0
    window.held[:, SLIDES_OF] = 0
    window.fragments[:] = 0
