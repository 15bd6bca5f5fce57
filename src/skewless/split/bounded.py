"""Bounded: no worker gets more than a little above the average, whatever the keys do."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from skewless.core.arguments import check_whole
from skewless.core.arrays import Bool, Float, Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.kernel import inner, lean_kernel
from skewless.core.policy import Policy
from skewless.sketch.open_addressing import HELD, find, is_full, probe, put, roomier
from skewless.split.fill import fill
from skewless.split.held import LOAD, TOTAL, WindowState, new_window, window_slide
from skewless.split.sliding import LENGTH, SEEN, SlidingSplitter, advance, slide_end

# Columns of the table of keys that left home, after its KEY and HELD.
LEFT = 2  # the last slide in which a tuple went elsewhere than home
AT = 3  # the worker of its last tuple
SINCE = 4  # the slide in which that was noted among the fragments
REACH = 5  # how many workers of its probe order it has been sent to, at most
COLUMNS = 6

LAST = 2  # column of the table of fragments: the last slide that sent the key to the worker

# What `meta` holds after SEEN and LENGTH.
SLIDE = 2  # number of the current slide, from 1
GONE = 3  # the last slide that has left the window
KEYS = 4  # keys that left home
FRAGMENTS = 5  # their fragments away from home
HOT_LIMIT = 6  # the load from which a worker takes no tuple of a hot key
TAIL_LIMIT = 7  # and none at all
DUE = 8  # tuples of the slide after which the limit for hot keys is set anew
META = 9

# Columns of `votes`.
KEY, LEAD = 0, 1  # the key that took most of a worker's reserve, and by how many tuples more than the others
CAUGHT = 16  # the lead at which the key is sent away, before it takes all of the reserve

STEPS = 32  # in which the limit for hot keys rises within a slide
SHORTEST = 2  # tuples of each worker by which limits look ahead at least, where the length of a slide is not known
AHEAD = 32  # one in so many tuples of the slide so far is the most by which they do

MOST_EPSILON = 1000


class BoundedState(NamedTuple):
    """The arrays of the splitter, to be handed to kernels."""

    keys: Int64Array
    fragments: Int64Array
    steps: Int64Array  # all steps by which a probe order meets every worker
    votes: Int64Array  # worker x (KEY, LEAD)
    meta: Int64Array


class Bounded(SlidingSplitter):
    """Sends each tuple home while there is room; else to the next worker of the key's probe order that has some.

    Room is what a worker's load in the window lacks to (1 + 2 epsilon) of the average. A key that left home within the
    window is hot: for its tuples room ends at (1 + epsilon) already, so that hot keys give way before others do. What
    is between the two is a worker's reserve; a key that takes most of it is found by a majority vote and has to leave,
    for otherwise a key that becomes hot would drive all the others of its home away. Of the workers with room, one
    that holds the key comes first. The probe order is a permutation of all workers that only the key determines, so
    that several partitioners, each for itself, split a key over the same workers; and as each of them is balanced, so
    is their sum.

    At the end of every slide no worker is above (1 + 2 epsilon) of the average of the window, or the average rounded
    up, if that is more; and between two ends by a slide's share more. Where slides are of time, which may be long or
    short, each is balanced by itself, and so is every window of them: at any moment no worker is above (1 + 2 epsilon)
    of the average of the slide so far, or by two tuples more, while a worker has less than 64 on average. Nothing is
    learned, drawn or sent. The memory is that of the keys that left home.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide, slides
        Tuples in a slide, and slides in the window. With None a slide ends with a call of `end_slide`, as slides of
        time do; without calls all tuples are one slide. A key stays where it is for the length of the window.
    epsilon
        How far above the average a worker may be: by so much for hot keys, by twice as much for others.
    in_task
        Whether on Spark each task routes its own rows as they come. None does so in streams and where rows are
        aggregated, and has a batch repartitioned by a plan from its counts. True is for these too. False goes by plans
        everywhere, which in a stream are two micro-batches late.

    Examples
    --------
    >>> keys = np.random.default_rng(1).zipf(1.5, 100_000)
    >>> loads = np.bincount(Bounded(8, slide=10_000).route(keys), minlength=8)
    >>> bool(loads.max() <= 1.1 * loads.mean())
    True
    """

    name: ClassVar[str] = "bounded"

    def __init__(
        self,
        workers: int = 1,
        *,
        slide: int | None = 100_000,
        slides: int = 10,
        epsilon: float = 0.05,
        in_task: bool | None = None,
    ) -> None:
        super().__init__(workers)
        self.in_task, self.batches_in_task = in_task is not False, in_task is True
        check_whole("slides", slides)
        if slide is not None:
            check_whole("slide", slide)
        if not (isinstance(epsilon, (int, float)) and 0 <= epsilon <= MOST_EPSILON):
            raise SkewlessError(f"epsilon is {epsilon!r}; give a number from 0 to {MOST_EPSILON}, such as 0.04")
        self.slide, self.slides, self.epsilon = slide, slides, epsilon
        # Where nobody knows how long a slide will be, limits look ahead by this share of it, at the cost of epsilon.
        self._ahead = 0.0 if slide else min(1 / AHEAD, float(epsilon))
        self._excess = ((1 + 2 * epsilon) / (1 + self._ahead) - 1) / 2
        self.window: WindowState = new_window(workers, slides if slide else 1, rows=0)
        meta = np.zeros(META, dtype=np.int64)
        meta[[SLIDE, LENGTH]] = 1, slide or SHORTEST * workers
        numbers = np.arange(1, max(2, workers), dtype=np.int64)
        steps = numbers[np.gcd(numbers, workers) == 1]
        keys, fragments = np.zeros((1 << 8, COLUMNS), dtype=np.int64), np.zeros((1 << 8, LAST + 1), dtype=np.int64)
        self.state = BoundedState(keys, fragments, steps, np.zeros((workers, 2), dtype=np.int64), meta)
        self._last = Policy.of(workers)

    @property
    def loads(self) -> Int64Array:
        """Tuples on each worker that limits go by: those of the window, or of the slide where slides are of time."""
        loads: Int64Array = self.window.loads[LOAD]
        return loads

    @property
    def hot_keys(self) -> int:
        """Keys that left home in the window."""
        table = self.state.keys
        return int(((table[:, HELD] != 0) & (table[:, LEFT] > self.state.meta[GONE])).sum())

    def for_task(self) -> Bounded:
        """One like this for the rows of one task, which are one window unless slides were asked for."""
        slide = self.slide if self.was_given("slide") else None
        return self.again(workers=self.workers, slide=slide)

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch with just these counts: whole keys, largest first, where they were or at home.

        A key that fits nowhere is divided over what room there is, so that there are at most as many fragments as keys
        and workers. No worker is above 1.02 of the average unless the keys that were not told apart bring it there.
        """
        self.version += 1
        self._last = fill(seen, self.workers, self._last, self.version)
        return self._last

    @property
    def _progress(self) -> Int64Array:
        return self.state.meta

    def _begin_slide(self) -> None:
        meta = self.state.meta
        if self.slide is None and meta[SEEN] == meta[LENGTH]:  # it is only longer than expected
            meta[LENGTH] += max(SHORTEST * self.workers, int(self._ahead * self.window.meta[TOTAL]))
        super()._begin_slide()

    def _end_slide(self) -> None:
        window_slide(self.window)
        meta = self.state.meta
        meta[SEEN] = meta[DUE] = 0
        meta[SLIDE] += 1
        meta[GONE] = max(0, meta[SLIDE] - self.slides)
        self.state.votes[:] = 0
        if self.slide is None:
            meta[LENGTH] = SHORTEST * self.workers

    def _make_room(self) -> None:
        keys, fragments, _steps, _votes, meta = self.state
        if is_full(keys, meta[KEYS]) or is_full(fragments, meta[FRAGMENTS]):
            keys, meta[KEYS] = roomier(keys, keys[:, LEFT] > meta[GONE])
            fragments, meta[FRAGMENTS] = roomier(fragments, fragments[:, LAST] > meta[GONE])
            self.state = self.state._replace(keys=keys, fragments=fragments)

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        meta = self.state.meta
        ahead = int(self.window.meta[TOTAL] + meta[LENGTH] - meta[SEEN])  # the window's tuples when the slide ends
        meta[TAIL_LIMIT] = _limit(ahead, self.workers, 2 * self._excess)
        return int(_route(self.state, self.window, self._excess, keys, out))


@lean_kernel
def _limit(tuples: Int, workers: Int, excess: Float) -> Int:
    """What a worker may have of so many tuples: somebody always has less, as it is no less than the average."""
    return max((tuples + workers - 1) // workers, np.int64((1 + excess) * tuples / workers))


@lean_kernel
def _route(
    state: BoundedState,
    window: WindowState,
    epsilon: Float,
    keys: Int64Array,
    out: Int32Array,
) -> Int:
    """Route to the end of the slide, or until there may be no room for one more key."""
    table, fragments, steps, votes, meta = state
    loads = window.loads
    workers = loads.shape[1]
    end = slide_end(meta, keys.shape[0])
    for i in range(end):
        if meta[SEEN] + i == meta[DUE]:
            # Hot keys fill workers no further than the stream has come: what is left of the slide is for others.
            further = min(max(workers, meta[LENGTH] // STEPS), meta[LENGTH] - meta[DUE])
            meta[HOT_LIMIT] = _limit(window.meta[TOTAL] + further, workers, epsilon)
            meta[DUE] += further
        key = keys[i]
        hashed = xxhash64_long(key, SEED)
        home = pmod(hashed, workers)
        worker = home
        row = probe(table, key, hashed)
        hot = table[row, HELD] != 0 and table[row, LEFT] > meta[GONE]
        if hot or (loads[LOAD, home] >= meta[HOT_LIMIT] and _leaves(votes, home, key, loads[LOAD, home], meta)):
            if is_full(table, meta[KEYS]) or is_full(fragments, meta[FRAGMENTS]):
                return advance(meta, i)
            if not hot:
                if table[row, HELD] == 0:
                    put(table, key, 1, row)
                    meta[KEYS] += 1
                table[row, AT], table[row, SINCE], table[row, REACH] = home, meta[SLIDE], 1
            worker = table[row, AT]
            if loads[LOAD, worker] >= meta[HOT_LIMIT]:
                worker = _next(state, loads, row, hashed, home, steps[pmod(hashed >> 32, steps.shape[0])])
            if worker != table[row, AT] or table[row, SINCE] != meta[SLIDE]:
                table[row, AT], table[row, SINCE] = worker, meta[SLIDE]
                if worker != home:
                    table[row, LEFT] = meta[SLIDE]
                    _hold(fragments, meta, _fragment(hashed, worker))
        loads[LOAD, worker] += 1
        window.meta[TOTAL] += 1
        out[i] = worker
    return advance(meta, end)


@inner
def _leaves(votes: Int64Array, home: Int, key: Int, load: Int, meta: Int64Array) -> Bool:
    """Whether a key must leave its home, which has nothing but its reserve; if not, it takes of that."""
    if load >= meta[TAIL_LIMIT]:
        return True
    if votes[home, KEY] == key:
        votes[home, LEAD] += 1
    elif votes[home, LEAD] > 0:
        votes[home, LEAD] -= 1
    else:
        votes[home, KEY] = key
    return votes[home, KEY] == key and votes[home, LEAD] >= CAUGHT


@inner
def _next(state: BoundedState, loads: Int64Array, row: Int, hashed: Int, home: Int, step: Int) -> Int:
    """The first worker of a key's probe order that has room and holds the key, else the first that has room."""
    table, fragments, _steps, _votes, meta = state
    workers, worker, first = loads.shape[1], home, np.int64(-1)
    for rank in range(workers):
        if loads[LOAD, worker] < meta[HOT_LIMIT]:
            if rank == 0 or fragments[find(fragments, _fragment(hashed, worker)), LAST] > meta[GONE]:
                return worker
            if first < 0:
                first = worker
                table[row, REACH] = max(table[row, REACH], rank + 1)
        if first >= 0 and rank + 1 >= table[row, REACH]:
            return first
        worker += step
        if worker >= workers:
            worker -= workers
    return first  # somebody has room, as the limit is no less than the average


@inner
def _fragment(hashed: Int, worker: Int) -> Int:
    """A number for a key, by its hash, on a worker: two fragments have the same once in 2^64."""
    return xxhash64_long(hashed, worker)


@inner
def _hold(fragments: Int64Array, meta: Int64Array, fragment: Int) -> None:
    """Record that the key was sent to the worker in this slide."""
    row = find(fragments, fragment)
    if fragments[row, HELD] == 0:
        put(fragments, fragment, 1, row)
        meta[FRAGMENTS] += 1
    fragments[row, LAST] = meta[SLIDE]
