from __future__ import annotations

import math
from collections import Counter, deque
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.split import DAGreedy


def shifting(seed: int) -> list[int]:
    """A skewed stream long enough for slides to leave, whose hot keys change half way."""
    return [int(key) % 40 + 3 * (i > 80) for i, key in enumerate(np.random.default_rng(seed).zipf(1.4, 160))]


class FullScan:
    """The state of the algorithm in sets and lists; a hot tuple scores every worker."""

    def __init__(self, workers: int, slide: int, slides: int, hot_at: float) -> None:
        self.workers, self.slide = workers, slide
        self.threshold = max(2, math.ceil(hot_at * slide / workers))
        self.window: deque[list[tuple[int, int, bool]]] = deque([[]], maxlen=slides)  # key, worker, whether hot then
        self.counts: list[Counter[int]] = [Counter(), Counter()]  # of the slide before and the current one
        self.tuples = 0

    def is_hot(self, key: int) -> bool:
        return max(each[key] for each in self.counts) >= self.threshold

    def arrive(self, key: int) -> None:
        if self.tuples and self.tuples % self.slide == 0:
            hot_before = {k for each in self.counts for k in each if self.is_hot(k)}
            self.counts = [self.counts[1], Counter()]
            cooled = {k for k in hot_before if not self.is_hot(k)}
            for sent in self.window:
                sent[:] = [(k, w, hot and k not in cooled) for k, w, hot in sent]
            self.window.append([])
        self.tuples += 1
        self.counts[1][key] += 1

    def loads(self) -> list[int]:
        counts = Counter(worker for sent in self.window for _, worker, _ in sent)
        return [counts[w] for w in range(self.workers)]

    def scores(self, key: int) -> list[Fraction]:
        loads = self.loads()
        holders = {w for sent in self.window for k, w, hot in sent if k == key and hot}
        average = Fraction(sum(loads), self.workers)
        half = Fraction(1, 2)
        return [
            half * (w in holders) - (half * (loads[w] - average) / average if average else 0)
            for w in range(self.workers)
        ]

    def send(self, key: int, worker: int) -> None:
        self.window[-1].append((key, worker, self.is_hot(key)))


@given(
    st.one_of(st.lists(st.integers(0, 6), max_size=60), st.integers(0, 10**6).map(shifting)),
    st.integers(1, 8),
    st.integers(1, 40),
    st.integers(1, 4),
    st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=80)
def test_a_hot_tuple_goes_where_a_full_scan_finds_the_best_score(
    keys: list[int], workers: int, slide: int, slides: int, hot_at: float
) -> None:
    splitter = DAGreedy(workers, slide=slide, slides=slides, hot_at=hot_at, statistics="exact")
    routed = splitter.route(np.array(keys, dtype=np.int64)).tolist()
    scan = FullScan(workers, slide, slides, hot_at)
    for key, worker in zip(keys, routed, strict=True):
        scan.arrive(key)
        if scan.is_hot(key):
            scores = scan.scores(key)
            assert scores[worker] == max(scores)
        else:
            assert worker == homes(np.array([key]), workers)[0]
        scan.send(key, worker)
    assert splitter.loads.tolist() == scan.loads()


def test_a_holder_keeps_the_key_until_it_is_an_average_load_above_the_least() -> None:
    # The only key: it fills worker after worker, each up to the average that its own tuples raise.
    splitter = DAGreedy(4, slide=1_000, hot_at=0.01, statistics="exact")
    routed = splitter.route(np.full(20, 7))
    home = int(homes(np.array([7]), 4)[0])
    assert routed[:2].tolist() == [home, home]  # the first is not hot yet, and what it left is no fragment of a hot key
    # From here (2, 0, 0, 0): a holder at 2 is 2 above the least, and the average is 1/2.
    assert len(set(routed.tolist())) == 4


def test_the_tail_goes_home() -> None:
    keys = np.random.default_rng(1).permutation(5_000)
    assert DAGreedy(8, slide=1_000).route(keys).tolist() == homes(keys, 8).tolist()


def test_a_key_that_fits_a_worker_is_not_split() -> None:
    # Four keys of a fourth each on four workers.
    keys = np.tile(np.arange(4), 2_500)
    routed = DAGreedy(4, slide=1_000, hot_at=0.5, statistics="exact").route(keys)[5_000:]
    fragments = set(zip(keys[5_000:].tolist(), routed.tolist(), strict=True))
    assert len(fragments) <= 6


def test_a_plan_starts_from_the_tail() -> None:
    tail = np.array([0, 900, 900, 900])
    policy = DAGreedy(4).plan(Counts(np.array([7]), np.array([900]), total=3_600, tail=tail))
    assert policy.lanes_of(7).tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slides": 0}, "slides is 0; give a whole number from 1"),
        ({"slide": -1}, "slide is -1 tuples; give a whole number from 1"),
        ({"hot_at": 0}, "hot_at is 0; give a share of the fair load from 1e-06 on"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        DAGreedy(4, **options)
