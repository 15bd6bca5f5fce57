"""Dalton: a contextual bandit learns where the hot keys go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skewless.core.arguments import check_whole
from skewless.core.arrays import Float, FloatArray, Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.core.policy import Policy
from skewless.core.random_bits import below, draw, gap, gap_scale
from skewless.split.argmax import new_tree, tree_best, tree_fill, tree_get, tree_set, tree_values
from skewless.split.base import QUANTA, check_share
from skewless.split.held import HEAD, HOLDER, LOAD, TOTAL, WindowState, window_clear, window_fragment, window_slide
from skewless.split.hot import (
    COUNT,
    FULL,
    MISSING,
    RELEASED,
    RELEASED_ROW,
    STATS_LENGTH,
    STATS_SEEN,
    THRESHOLD,
    WITH_SLIDE,
    HotState,
    hot_advance,
    hot_end,
    hot_observe,
    hot_peak,
)
from skewless.split.hot_splitter import HeldSplitter, held_next_stats
from skewless.split.sliding import LENGTH, SEEN
from skewless.split.two_choices import candidate

if TYPE_CHECKING:
    from typing_extensions import Self

INITIAL = -2.0  # below any reward, so that a worker is tried again only where exploring has shown it to be better
BY_SHARE = 0  # in place of a fixed limit on how far a key may be split
SPARE, MORE = 4, 2  # a key may be split over SPARE times the workers that its share fills, and MORE
CRUMB = 0.02  # least load of a lane, as a share of a worker's fair load
REHEARSALS = 60  # warm-up passes before the lanes are recorded

# What `random` holds: the seed, the draws so far, and the hot tuples until the next exploration.
RANDOM_SEED, DRAWN, WAIT = range(3)

# What `buffered` holds for a worker: the rewards in it make KEPT Q + EARNED of a value Q.
KEPT, EARNED = range(2)


class Bandit(NamedTuple):
    """The learner, to be handed to kernels."""

    tree: Int64Array  # row x worker: Q, in a form that knows its maximum; workers are counted from the key's home
    home: Int64Array  # per row: the key's home; MISSING until the row is first used
    random: Int64Array
    learns: bool  # whether a reward changes Q at once
    buffered: FloatArray  # row x worker x (KEPT, EARNED): rewards kept back, or noted beside; nothing without rows
    max_split: int
    choices: int
    gap_scale: float
    gamma: float
    p1: float
    p2: float


class Dalton(HeldSplitter):
    """Learns for each hot key which workers serve it best; the tail goes to its home.

    Each hot key has a row of values Q, one for each worker. A tuple goes to the worker with the largest value, and this
    value moves towards the reward R = -(p1 CI + p2 CA), where CI is how far that worker now is above the average load,
    and CA is the share of the workers that hold the key. Once in 1 / epsilon hot tuples, another worker is tried
    instead. Loads and fragments are those of the sliding window.

    Three defaults differ from the paper, for faster learning with fewer fragments (`docs/split.md` has the
    measurements). An exploration draws `choices` workers and tries the least loaded, while the paper draws one. A key
    explores new workers only while it is on fewer than four times as many as its share of the load fills, plus two;
    beyond that, it explores only among those that hold it. And keys are hot from a tenth of a worker's fair load.
    `as_printed` has the paper's own parameters; the better balance than `DAGreedy`'s comes from these defaults.

    Memory is O(workers^2 / hot_at) plus the statistics; it does not grow with the stream.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide, slides
        Tuples in a slide, and slides in the window of the loads and fragments. Without a number of tuples, a slide ends
        with a call of `end_slide`, as slides of time do, or with a micro-batch that is routed by `route_batch`.
    epsilon, gamma, p1, p2
        The bandit's exploration rate and step size, and the weights of imbalance and fragments in the reward.
    max_split
        Workers that a key may explore: "share" as above, a number, or None for no limit, as in the paper.
    statistics
        How keys are counted: "exact", "countmin", or "switch" between them according to the number of keys.
    seed
        The seed of the exploration.
    hot_at
        Share of a worker's fair load from which a key is hot. The paper's 1.0 leaves keys just below it unbalanced; a
        lower share costs a row of Q values for each of up to workers / hot_at keys.
    choices
        The number of workers drawn for an exploration.
    stats_window
        Tuples in a statistics window, the paper's STATS_WIN: a key is hot by its count in one, until the end of the
        next. "slide" if every slide is one, None if they end with calls of `end_stats_window`.
    in_task
        Whether on Spark each task learns from its own rows as they come, instead of going by a policy that was learned
        from the micro-batches before.

    Examples
    --------
    >>> keys = np.random.default_rng(1).zipf(1.5, 200_000)
    >>> splitter = Dalton(8, slide=10_000)
    >>> loads = np.bincount(splitter.route(keys)[-100_000:], minlength=8)
    >>> float(round(loads.max() / loads.mean(), 2))
    1.0
    >>> splitter.hot_keys
    10

    References
    ----------
    E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 2022.
    """

    name: ClassVar[str] = "dalton"

    def __init__(
        self,
        workers: int = 1,
        *,
        slide: int | None = 100_000,
        slides: int = 10,
        epsilon: float = 0.1,
        gamma: float = 0.1,
        p1: float = 0.5,
        p2: float = 0.5,
        max_split: int | str | None = "share",
        statistics: str = "switch",
        seed: int = 0,
        hot_at: float = 0.1,
        choices: int = 2,
        stats_window: int | str | None = "slide",
        in_task: bool = False,
    ) -> None:
        super().__init__(
            workers, slide=slide, slides=slides, hot_at=hot_at, statistics=statistics, stats_window=stats_window
        )
        self.in_task = self.batches_in_task = in_task
        check_whole("choices", choices)
        check_whole("seed", seed, least=0)
        for name, value in (("epsilon", epsilon), ("gamma", gamma), ("p1", p1), ("p2", p2)):
            check_share(name, value)
        rows = self.hot.capacity
        self.bandit = Bandit(
            tree=new_tree(rows, workers),
            home=np.full(rows, MISSING, dtype=np.int64),
            random=np.array([seed, 0, 0], dtype=np.int64),
            learns=True,
            buffered=np.zeros((0, workers, 2)),
            max_split=_limit(max_split, workers),
            choices=choices,
            gap_scale=gap_scale(epsilon),
            gamma=float(gamma),
            p1=float(p1),
            p2=float(p2),
        )
        self._tail: Int64Array = np.zeros(workers, dtype=np.int64)

    @classmethod
    def as_printed(cls, workers: int = 1, **options: Any) -> Self:
        """Dalton with the parameters of the paper; further options as for the class.

        A key is hot from the whole fair load of a worker, an exploration draws one worker out of all, and a key may be
        on any number of them.

        >>> Dalton.as_printed(8, slide=None, stats_window=50_000).hot.state.hot_at
        1.0
        """
        printed: dict[str, Any] = {"epsilon": 0.1, "gamma": 0.1, "p1": 0.5, "p2": 0.5}
        printed |= {"hot_at": 1.0, "choices": 1, "max_split": None}
        return cls(workers, **{**printed, **options})

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch with counts like `seen`; only its hot keys have lanes."""
        fair = seen.total / self.workers
        return super().plan(seen.heavier_than(self.hot.state.hot_at * fair, self.workers))

    def values(self, key: int) -> FloatArray:
        """The learned value of each worker for a hot key; empty for any other key."""
        row = self._row(key)
        if row == MISSING or self.bandit.home[row] == MISSING:
            return np.zeros(0)
        return np.roll(tree_values(self.bandit.tree, row, self.workers), int(self.bandit.home[row]))

    def fragments(self, key: int) -> int:
        """The number of workers that hold tuples of a hot key in the window; 0 for any other key."""
        row = self._row(key)
        return 0 if row == MISSING else int(self.window.fragments[row])

    def _row(self, key: int) -> int:
        return int(self.hot.rows(np.array([key], dtype=np.int64))[0])

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        return int(_route(self.bandit, self.hot.state, self.window, keys, weights, out))

    def _end_stats_window(self) -> None:
        _next_stats(self.bandit, self.hot.state, self.window)

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        close_rows(self.bandit, self.hot.state)
        self._tail = seen.tail_loads(self.workers)

    def _assign_batch(self, keys: Int64Array, weights: Int64Array) -> Int32Array:
        """Route the micro-batch again and again, as a stream that the window slides over, and keep the last window."""
        window_clear(self.window, np.zeros_like(self._tail))
        out = np.empty((REHEARSALS + self.slides, len(keys)), dtype=np.int32)
        for turn in out:
            window_slide(self.window)
            self.window.loads[LOAD] += self._tail
            self.window.meta[TOTAL] += self._tail.sum()
            self.hot.state.rows[:, COUNT] = 0
            self._assign(keys, weights, turn)
        return out[REHEARSALS:].ravel()

    def _policy(self, keys: Int64Array, workers: Int32Array) -> Policy:
        """Omit the lanes that only exploration has used: each would be a fragment with almost no load."""
        which = np.unique(keys, return_inverse=True)[1]
        lane = which * self.workers + workers
        worth = np.bincount(lane)[lane] >= CRUMB * QUANTA * self.slides if len(lane) else np.zeros(0, dtype=bool)
        # A key without any other lane goes to its home.
        return super()._policy(keys[worth], workers[worth])

    def _make_room(self, needed: int = 1) -> None:
        super()._make_room(needed)
        added = self.hot.capacity - len(self.bandit.home)
        if added:
            tree = np.pad(self.bandit.tree, ((0, added), (0, 0)))
            home = np.pad(self.bandit.home, (0, added), constant_values=MISSING)
            self.bandit = self.bandit._replace(tree=tree, home=home)


def _limit(max_split: int | str | None, workers: int) -> int:
    if max_split == "share":
        return BY_SHARE
    if max_split is None:
        return workers + 1  # never reached, so that a draw means the same worker however a key is split
    if not isinstance(max_split, int) or max_split < 1:
        raise SkewlessError(f"max_split is {max_split!r}; give 'share', a number of at least 1, or None for no limit")
    return max_split


@lean_kernel
def _route(
    bandit: Bandit, hot: HotState, window: WindowState, keys: Int64Array, weights: Int64Array, out: Int32Array
) -> Int:
    """Route slide by slide until all is done or the next tuple may have no room; return how many were routed."""
    if bandit.random[DRAWN] == 0:  # the first exploration is drawn like any other
        bandit.random[WAIT] = gap(_draw(bandit), bandit.gap_scale)
    done = 0
    while True:
        # The loop over tuples is a function of its own so that the compiler keeps the registers for it.
        done = _route_slide(bandit, hot, window, keys, weights, out, done)
        if done == keys.shape[0]:
            return done
        if hot.meta[SEEN] == hot.meta[LENGTH]:
            _next_slide(bandit, hot, window)
        elif hot.meta[STATS_SEEN] == hot.meta[STATS_LENGTH]:
            _next_stats(bandit, hot, window)
        else:
            return done


@lean_kernel
def _route_slide(
    bandit: Bandit,
    hot: HotState,
    window: WindowState,
    keys: Int64Array,
    weights: Int64Array,
    out: Int32Array,
    start: Int,
) -> Int:
    """Algorithm 1 for each tuple from `start` to the next end of a window, or until there may be no room for one."""
    tree, home, workers, head = bandit.tree, bandit.home, hot.workers, window.meta[HEAD]
    share = 1.0 / workers
    total, wait = window.meta[TOTAL], bandit.random[WAIT]
    step = np.int64(weights.shape[0] > 1)
    end = start + hot_end(hot.meta, keys.shape[0] - start)
    for i in range(start, end):
        key, weight = keys[i], weights[i * step]
        row = hot_observe(hot, key, weight)
        if row == FULL:
            end = i
            break
        if row == MISSING:
            worker = candidate(key, 0, workers)
            window.loads[LOAD, worker] += weight
            total += weight
            out[i] = worker
            continue
        if home[row] == MISSING:
            _open_row(bandit, row, key, workers)

        if wait == 0:
            worker = _explore(bandit, hot, window, row)
            wait = gap(_draw(bandit), bandit.gap_scale)
        else:
            wait -= 1
            worker = home[row] + tree_best(tree, row)
            if worker >= workers:
                worker -= workers
        total += weight
        load = window.loads[LOAD, worker] + weight
        window.loads[LOAD, worker] = load
        window_fragment(window, head, row, worker)
        arm = worker - home[row]
        if arm < 0:
            arm += workers
        r = reward(bandit.p1, bandit.p2, float(load), total * share, window.fragments[row] * share)
        if bandit.learns:
            q = tree_get(tree, row, arm)
            tree_set(tree, row, arm, q + bandit.gamma * (r - q))
        if bandit.buffered.shape[0] > 0:
            bandit.buffered[row, arm, KEPT] *= 1 - bandit.gamma
            bandit.buffered[row, arm, EARNED] += bandit.gamma * (r - bandit.buffered[row, arm, EARNED])
        out[i] = worker
    window.meta[TOTAL], bandit.random[WAIT] = total, wait
    hot_advance(hot.meta, end - start)
    return end


@inner
def reward(p1: Float, p2: Float, load: Float, average: Float, spread: Float) -> Float:
    """R = -(p1 CI + p2 CA), from the loads including the tuple and the share of the workers that hold the key."""
    return -(p1 * ((load - average) / max(load, average)) + p2 * spread)


@inner
def _draw(bandit: Bandit) -> Int:
    """The next random bits."""
    random = bandit.random
    random[DRAWN] += 1
    return draw(random[RANDOM_SEED], random[DRAWN] - 1)


@lean_kernel
def _explore(bandit: Bandit, hot: HotState, window: WindowState, row: Int) -> Int:
    """The least loaded of a few random workers; if the key is split far enough, only of those that hold it."""
    loads, fragments = window.loads, window.fragments[row]
    limit: Int = bandit.max_split
    if limit == BY_SHARE:
        fair_loads = hot_peak(hot, row) * hot.hot_at / hot.meta[THRESHOLD]
        limit = np.int64(np.ceil(SPARE * fair_loads)) + MORE
    least = np.int64(MISSING)
    for _ in range(bandit.choices):
        drawn = _draw(bandit)
        if fragments >= limit:
            worker = np.int64(window.held[row, HOLDER, below(drawn, fragments)])
        else:
            worker = below(drawn, hot.workers)
        if least == MISSING or loads[LOAD, worker] < loads[LOAD, least]:
            least = worker
    return least


@lean_kernel
def _open_row(bandit: Bandit, row: Int, key: Int, workers: Int) -> None:
    bandit.home[row] = candidate(key, 0, workers)
    tree_fill(bandit.tree, row, workers, INITIAL)


@lean_kernel
def _next_slide(bandit: Bandit, hot: HotState, window: WindowState) -> None:
    if hot.meta[STATS_LENGTH] == WITH_SLIDE:
        _next_stats(bandit, hot, window)
    hot.meta[SEEN] = 0
    window_slide(window)


@lean_kernel
def _next_stats(bandit: Bandit, hot: HotState, window: WindowState) -> None:
    held_next_stats(hot, window)
    close_rows(bandit, hot)


@lean_kernel
def close_rows(bandit: Bandit, hot: HotState) -> None:
    """Forget what was learned in the rows that were released at the end of the last window."""
    for j in range(hot.meta[RELEASED]):
        bandit.home[hot.rows[j, RELEASED_ROW]] = MISSING
