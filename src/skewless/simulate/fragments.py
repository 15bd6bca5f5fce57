"""Which combiner holds which key in a sliding window: the partial results that every window ends with.

Each (key, combiner) is remembered with the last slide that brought it there. How many are last seen in each slide is
counted as they come, so that the end of a slide takes off what leaves the window without looking at the keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import BoolArray, Int, Int32Array, Int64Array
from skewless.core.hashing import SEED, pmod, xxhash64, xxhash64_long
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.open_addressing import HELD, find, is_full, probe, put, roomier

LAST = 2  # column of both tables, after their KEY and HELD: the last slide that brought the key
COLUMNS = 3

_KEY_STEP, _WORKER_STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)

# What `meta` holds.
SLIDE = 0  # number of the current slide, from 1
GONE = 1  # the last slide that has left the window
PAIRS = 2  # entries of `pairs`
KEYS = 3  # entries of `keys`
META = 4


class FragmentState(NamedTuple):
    """The arrays, to be handed to kernels."""

    pairs: Int64Array  # a table of the keys on combiners
    keys: Int64Array  # a table of the keys
    ends: Int64Array  # slide x combiner x reducer: pairs last seen in that slide
    key_ends: Int64Array  # slide x reducer: keys last seen in that slide
    live: Int64Array  # combiner x reducer: pairs of the window
    live_keys: Int64Array  # reducer: keys of the window
    meta: Int64Array


class Fragments:
    """The keys on each combiner in the window, by the reducer that they belong to.

    Parameters
    ----------
    combiners, reducers
        Their numbers.
    slides
        Slides in the window.

    Examples
    --------
    >>> fragments = Fragments(combiners=2, reducers=1, slides=2)
    >>> fragments.add(np.array([7, 7, 9]), np.array([0, 1, 1], dtype=np.int32))
    >>> fragments.live.ravel(), fragments.live_keys
    (array([1, 2]), array([2]))
    >>> fragments.held(np.array([7, 8]))
    array([[ True,  True],
           [False, False]])
    """

    def __init__(self, combiners: int, reducers: int, slides: int) -> None:
        meta = np.zeros(META, dtype=np.int64)
        meta[SLIDE] = 1
        self.slides = slides
        self.state = FragmentState(
            pairs=np.zeros((1 << 10, COLUMNS), dtype=np.int64),
            keys=np.zeros((1 << 10, COLUMNS), dtype=np.int64),
            ends=np.zeros((slides, combiners, reducers), dtype=np.int64),
            key_ends=np.zeros((slides, reducers), dtype=np.int64),
            live=np.zeros((combiners, reducers), dtype=np.int64),
            live_keys=np.zeros(reducers, dtype=np.int64),
            meta=meta,
        )

    @property
    def live(self) -> Int64Array:
        """Combiner x reducer: the partial results of the window."""
        return self.state.live

    @property
    def live_keys(self) -> Int64Array:
        """The keys of the window that belong to each reducer."""
        return self.state.live_keys

    def add(self, keys: Int64Array, workers: Int32Array) -> None:
        """Note tuples of the current slide."""
        done = 0
        while done < len(keys):
            self._make_room()
            done += int(_add(self.state, keys[done:], workers[done:]))

    def held(self, keys: Int64Array) -> BoolArray:
        """Key x combiner: whether the combiner holds the key in the window."""
        out = np.zeros((len(keys), self.state.live.shape[0]), dtype=np.bool_)
        _held(self.state, keys, out)
        return out

    def end_slide(self) -> None:
        """End the current slide; the oldest leaves the window."""
        state = self.state
        state.meta[SLIDE] += 1
        state.meta[GONE] = max(0, state.meta[SLIDE] - self.slides)
        leaving = state.meta[SLIDE] % self.slides
        state.live[:] -= state.ends[leaving]
        state.live_keys[:] -= state.key_ends[leaving]
        state.ends[leaving] = 0
        state.key_ends[leaving] = 0

    def _make_room(self) -> None:
        pairs, keys, meta = self.state.pairs, self.state.keys, self.state.meta
        if is_full(pairs, meta[PAIRS]) or is_full(keys, meta[KEYS]):
            pairs, meta[PAIRS] = roomier(pairs, pairs[:, LAST] > meta[GONE])
            keys, meta[KEYS] = roomier(keys, keys[:, LAST] > meta[GONE])
            self.state = self.state._replace(pairs=pairs, keys=keys)


def reducers_of(keys: Int64Array, reducers: int) -> Int64Array:
    """The reducer of each key, by its hash.

    >>> reducers_of(np.array([7, 9]), 4)
    array([1, 0])
    """
    return xxhash64(keys) % reducers


@inner
def _pair(key: Int, worker: Int) -> Int:
    """A number for a key on a worker: two pairs have the same about once in 2^64."""
    return np.int64(np.uint64(key) * _KEY_STEP + np.uint64(worker) * _WORKER_STEP)


@lean_kernel
def _add(state: FragmentState, keys: Int64Array, workers: Int32Array) -> Int:
    """Note tuples until there may be no room for the next; return how many."""
    pairs, table, meta = state.pairs, state.keys, state.meta
    slides, reducers = state.key_ends.shape
    slide, gone = meta[SLIDE], meta[GONE]
    now = slide % slides
    for i in range(keys.shape[0]):
        pair = _pair(keys[i], workers[i])
        row = find(pairs, pair)
        if pairs[row, HELD] != 0 and pairs[row, LAST] == slide:
            continue
        if is_full(pairs, meta[PAIRS]) or is_full(table, meta[KEYS]):
            return i
        hashed = xxhash64_long(keys[i], SEED)
        reducer = pmod(hashed, reducers)
        if pairs[row, HELD] == 0:
            put(pairs, pair, 1, row)
            meta[PAIRS] += 1
            pairs[row, LAST] = 0
        if pairs[row, LAST] > gone:
            state.ends[pairs[row, LAST] % slides, workers[i], reducer] -= 1
        else:
            state.live[workers[i], reducer] += 1
        pairs[row, LAST] = slide
        state.ends[now, workers[i], reducer] += 1

        row = probe(table, keys[i], hashed)
        if table[row, HELD] == 0:
            put(table, keys[i], 1, row)
            meta[KEYS] += 1
            table[row, LAST] = 0
        if table[row, LAST] == slide:
            continue
        if table[row, LAST] > gone:
            state.key_ends[table[row, LAST] % slides, reducer] -= 1
        else:
            state.live_keys[reducer] += 1
        table[row, LAST] = slide
        state.key_ends[now, reducer] += 1
    return keys.shape[0]


@lean_kernel
def _held(state: FragmentState, keys: Int64Array, out: BoolArray) -> None:
    for i in range(keys.shape[0]):
        for worker in range(out.shape[1]):
            row = find(state.pairs, _pair(keys[i], worker))
            out[i, worker] = state.pairs[row, HELD] != 0 and state.pairs[row, LAST] > state.meta[GONE]
