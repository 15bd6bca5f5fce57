"""Which keys are hot: counts over statistics windows, and a row for each hot key.

The splitters that treat hot keys differently from the tail share this module. A key becomes hot when its count in the
current statistics window reaches `hot_at` times the fair load of a worker, which is taken from the load of the window
before. It stays hot for the current window and the next; then its row is free for another key. A statistics window is
a slide, a number of tuples, or what lies between two calls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Float, Int, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, xxhash64_long
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.open_addressing import HELD, probe, put
from skewless.sketch.switch import CountState, SwitchCounts, counts_add, counts_full, counts_next_window
from skewless.split.sliding import LENGTH, NEVER, SEEN, slide_end, slide_length

# Columns of `rows`.
KEY = 0
COUNT = 1  # in the current window
LAST_COUNT = 2  # in the window before
UNTIL = 3  # last window in which the key is hot; MISSING for a free row
FREE_ROW = 4  # a stack of the free rows, in the first `meta[FREE]` entries of the column
RELEASED_ROW = 5  # likewise, the rows released at the end of the last window
COLUMNS = 6

# What `meta` holds after SEEN and LENGTH, which count the tuples of the current slide.
WINDOW = 2  # number of the current statistics window
THRESHOLD = 3  # a count that makes a key hot
FREE = 4
RELEASED = 5
STATS_SEEN = 6  # tuples of the current statistics window so far
STATS_LENGTH = 7  # tuples in a statistics window, NEVER if it ends with a call, WITH_SLIDE if it is a slide
PROMOTED = 8  # keys that became hot in the current statistics window
LOGGED = 9  # entries of `log`
META = 10

WITH_SLIDE = -2
LEAST_HOT = 1e-6  # with less, any key is hot, and there would have to be room for all
NO_LOAD = 1 << 62  # a threshold that no count reaches, before anything is known of the load
MISSING = -1
FULL = -2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class HotState(NamedTuple):
    """The hot keys and the statistics that find them, to be handed to kernels."""

    slots: Int64Array  # a hash table as in `open_addressing`, which holds row + 1 of each hot key
    rows: Int64Array  # a row for each hot key
    log: Int64Array  # the keys that became hot, in that order, for those who ask for them
    meta: Int64Array
    counts: CountState
    hot_at: float
    workers: int


class HotKeys:
    """The hot keys of a stream and the statistics that find them.

    Parameters
    ----------
    workers
        Workers that share the load.
    window
        Tuples in a slide, None if slides end with calls.
    stats_window
        Tuples in a statistics window; "slide" if every slide is one, None if they end with calls. No key is hot before
        the first window of unknown length has ended.
    hot_at
        Share of a worker's fair load from which a key is hot; at most workers / hot_at keys can become hot in a window.
    statistics
        "exact", "countmin" or "switch" (see `SwitchCounts`).

    Examples
    --------
    >>> hot = HotKeys(4, window=100, hot_at=1.0, statistics="exact")
    >>> int(hot.state.meta[THRESHOLD])       # a fair share of 100 tuples on 4 workers
    25
    """

    def __init__(
        self,
        workers: int,
        *,
        window: int | None,
        hot_at: float,
        statistics: str,
        stats_window: int | str | None = "slide",
    ) -> None:
        if not LEAST_HOT <= hot_at < math.inf:
            raise SkewlessError(f"hot_at is {hot_at!r}; give a share of the fair load from {LEAST_HOT} on, such as 1.0")
        # An estimate is wrong by at most a quarter of the count that makes a key hot.
        self.counts = SwitchCounts(epsilon=min(0.5, hot_at / workers / 4), delta=0.05, mode=statistics)
        meta = np.zeros(META, dtype=np.int64)
        meta[LENGTH] = slide_length(window)
        meta[STATS_LENGTH] = _stats_length(stats_window)
        known = window if meta[STATS_LENGTH] == WITH_SLIDE else stats_window
        meta[THRESHOLD] = threshold(hot_at, known, workers) if isinstance(known, (int, np.integer)) else NO_LOAD
        none, log = np.zeros((0, COLUMNS), dtype=np.int64), np.zeros(256, dtype=np.int64)
        self.state = HotState(none, none, log, meta, self.counts.state, float(hot_at), int(workers))
        self._add_rows(64)
        self._asked = False
        self._hot_then: Int64Array = log[:0]

    def make_room(self, needed: int = 1) -> None:
        """Make sure that `needed` more keys can become hot, and that one more can be counted."""
        self.counts.grow()
        self.state = self.state._replace(counts=self.counts.state)
        while self.state.meta[FREE] < needed:
            self._add_rows(self.capacity)
        meta, log = self.state.meta, self.state.log
        if not self._asked:
            meta[LOGGED] = 0
        while meta[LOGGED] + needed > len(log):
            log = np.pad(log, (0, len(log)))
        self.state = self.state._replace(log=log)

    def take(self) -> Int64Array:
        """The keys that were hot at any time since the last call; from the first call on, they are remembered."""
        logged = self.state.log[: self.state.meta[LOGGED]]
        taken: Int64Array = np.union1d(self._hot_then, logged)
        self._asked, self._hot_then, self.state.meta[LOGGED] = True, self.keys, 0
        return taken

    def _add_rows(self, added: int) -> None:
        old, meta = self.state.rows, self.state.meta
        rows = np.pad(old, ((0, added), (0, 0)))
        rows[len(old) :, UNTIL] = MISSING
        rows[meta[FREE] : meta[FREE] + added, FREE_ROW] = np.arange(len(rows) - 1, len(old) - 1, -1)
        meta[FREE] += added
        slots = np.zeros((2 << (len(rows) - 1).bit_length(), 2), dtype=np.int64)
        self.state = self.state._replace(slots=slots, rows=rows)
        if len(old):
            _reindex(self.state)

    @property
    def capacity(self) -> int:
        """The number of rows, free ones included."""
        return len(self.state.rows)

    @property
    def keys(self) -> Int64Array:
        """The keys that are hot now."""
        rows = self.state.rows
        keys: Int64Array = rows[rows[:, UNTIL] != MISSING, KEY]
        return keys

    def rows(self, keys: Int64Array) -> Int64Array:
        """The row of each of `keys`, MISSING if the key is not hot."""
        out = np.empty(len(keys), dtype=np.int64)
        _find_all(self.state, keys, out)
        return out


def _stats_length(stats_window: int | str | None) -> int:
    if stats_window == "slide":
        return WITH_SLIDE
    if stats_window is None:
        return NEVER
    whole = isinstance(stats_window, (int, np.integer)) and not isinstance(stats_window, bool)
    if not whole or stats_window < 1:  # type: ignore[operator]  # it is a number
        raise SkewlessError(
            f"stats_window is {stats_window!r}; give a number of tuples of at least 1, 'slide', or None to end "
            "statistics windows yourself"
        )
    return int(stats_window)


def threshold(hot_at: Float, load: Int, workers: Int) -> Int:
    """The count that makes a key hot if a whole window has this load; one tuple alone never does."""
    return max(2, math.ceil(hot_at * load / workers))


hot_threshold = inner(threshold)


@inner
def _slot(hot: HotState, key: Int) -> Int:
    """The slot of `key`, or a free one; the hash is cheap, as most tuples of a skewed stream end here."""
    return probe(hot.slots, key, np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(32)))


@inner
def hot_find(hot: HotState, key: Int) -> Int:
    """The row of `key`, or MISSING."""
    return hot.slots[_slot(hot, key), HELD] - 1


@inner
def hot_observe(hot: HotState, key: Int, weight: Int) -> Int:
    """Count a tuple of `key`, and return its row, MISSING while it is not hot, or FULL if there is no room."""
    row = hot_find(hot, key)
    if row != MISSING:
        hot.rows[row, COUNT] += weight
        return row
    if hot.meta[FREE] == 0 or hot.meta[LOGGED] == hot.log.shape[0] or counts_full(hot.counts):
        return FULL
    count = counts_add(hot.counts, xxhash64_long(key, SEED), key, weight)
    return MISSING if count < hot.meta[THRESHOLD] else hot_promote(hot, key, count)


@inner
def hot_peak(hot: HotState, row: Int) -> Int:
    """The larger of a hot key's counts in this window and the last."""
    return max(hot.rows[row, COUNT], hot.rows[row, LAST_COUNT])


@inner
def hot_promote(hot: HotState, key: Int, count: Int) -> Int:
    """Give `key` a row; there must be a free one, and room in the log.

    No more than workers / hot_at keys can be hot at the same time. Where more are, the load is far above that of the
    window before, and the threshold follows.
    """
    rows, meta = hot.rows, hot.meta
    hot.log[meta[LOGGED]] = key
    meta[LOGGED] += 1
    meta[PROMOTED] += 1
    if meta[PROMOTED] * hot.hot_at > 2 * hot.workers + 1:
        meta[PROMOTED] = 0
        meta[THRESHOLD] *= 2
    meta[FREE] -= 1
    row = rows[meta[FREE], FREE_ROW]
    rows[row, KEY] = key
    rows[row, COUNT] = count
    rows[row, LAST_COUNT] = 0
    rows[row, UNTIL] = meta[WINDOW] + 1
    put(hot.slots, key, row + 1, _slot(hot, key))
    return row


@lean_kernel
def hot_next_window(hot: HotState, load: Int) -> None:
    """End a statistics window of this load: set the threshold from it and release the rows that were not hot again."""
    rows, meta = hot.rows, hot.meta
    ended = meta[WINDOW]
    meta[RELEASED] = 0
    for row in range(rows.shape[0]):
        if rows[row, UNTIL] != MISSING and rows[row, COUNT] >= meta[THRESHOLD]:
            rows[row, UNTIL] = ended + 1
        elif rows[row, UNTIL] == ended:
            _release(hot, row)
    meta[THRESHOLD] = hot_threshold(hot.hot_at, load, hot.workers)
    if meta[RELEASED] > 0:
        _reindex(hot)
    hot_recount(hot)


@lean_kernel
def hot_recount(hot: HotState) -> None:
    """Begin a statistics window; the hot keys stay."""
    rows, meta = hot.rows, hot.meta
    meta[WINDOW] += 1
    meta[STATS_SEEN] = meta[PROMOTED] = 0
    for row in range(rows.shape[0]):
        rows[row, LAST_COUNT] = rows[row, COUNT]
        rows[row, COUNT] = 0
    counts_next_window(hot.counts)


@lean_kernel
def hot_release(hot: HotState, released: Int64Array) -> None:
    """Give back these rows, whose keys are no longer hot."""
    hot.meta[RELEASED] = 0
    for row in released:
        _release(hot, row)
    _reindex(hot)


@inner
def _release(hot: HotState, row: Int) -> None:
    rows, meta = hot.rows, hot.meta
    rows[row, UNTIL] = MISSING
    rows[meta[FREE], FREE_ROW] = row
    rows[meta[RELEASED], RELEASED_ROW] = row
    meta[FREE] += 1
    meta[RELEASED] += 1


@inner
def hot_end(meta: Int64Array, tuples: Int) -> Int:
    """How many of the next tuples belong to the current slide and to the current statistics window."""
    end = slide_end(meta, tuples)
    return end if meta[STATS_LENGTH] < 0 else min(end, meta[STATS_LENGTH] - meta[STATS_SEEN])


@inner
def hot_advance(meta: Int64Array, tuples: Int) -> Int:
    """Count these tuples as routed, and return their number."""
    meta[SEEN] += tuples
    meta[STATS_SEEN] += tuples
    return tuples


@lean_kernel
def _reindex(hot: HotState) -> None:
    for i in range(hot.slots.shape[0]):
        hot.slots[i, HELD] = 0
    for row in range(hot.rows.shape[0]):
        if hot.rows[row, UNTIL] != MISSING:
            key = hot.rows[row, KEY]
            put(hot.slots, key, row + 1, _slot(hot, key))


@lean_kernel
def _find_all(hot: HotState, keys: Int64Array, out: Int64Array) -> None:
    for i in range(keys.shape[0]):
        out[i] = hot_find(hot, keys[i])
