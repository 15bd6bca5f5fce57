"""Dalton's Algorithm 1 in plain Python."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from skewless.core.home import homes
from skewless.core.random_bits import below, draw, gap, gap_scale


class PlainDalton:
    """Algorithm 1 with dictionaries, one tuple at a time, and the same random draws."""

    def __init__(
        self,
        workers,
        *,
        slide,
        slides,
        epsilon,
        hot_at,
        choices,
        max_split,
        seed,
        stats=None,
        gamma=0.1,
        p1=0.5,
        p2=0.5,
    ):
        self.n, self.slide, self.hot_at, self.choices, self.seed = workers, slide, hot_at, choices, seed
        self.max_split, self.gamma, self.p1, self.p2 = max_split, gamma, p1, p2
        self.scale = gap_scale(epsilon)
        self.drawn = 0
        self.wait = gap(self._draw(), self.scale)
        self.q, self.until, self.peak = {}, {}, {}
        self.window = deque([[]], maxlen=slides)  # slides of (key or None, worker)
        self.holders = {}  # key -> holders in the order in which they came, as the library lists them
        self.counts, self.last_counts = Counter(), Counter()
        self.number = self.seen = 0
        self.stats = stats  # tuples in a statistics window; a slide if not given
        known = stats or slide
        self.threshold = max(2, int(np.ceil(hot_at * known / workers))) if known else float("inf")

    def _draw(self):
        self.drawn += 1
        return draw(self.seed, self.drawn - 1)

    def route(self, keys):
        return [self.one(int(key)) for key in keys]

    def one(self, key):
        if self.seen == self.slide:
            self.end_slide()
        if self.stats and sum(self.counts.values()) == self.stats:
            self.end_stats()
        self.seen += 1
        home = int(homes(np.array([key]), self.n)[0])
        self.counts[key] += 1
        if key not in self.q and self.counts[key] < self.threshold:
            self.window[-1].append((None, home))
            return home
        if key not in self.q:
            self.q[key] = [-2.0] * self.n
            self.until[key] = self.number + 1
            self.holders[key] = []
        worker = self.choose(key, home)
        self.window[-1].append((key, worker))
        if worker not in self.holders[key]:
            self.holders[key].append(worker)
        loads = self.loads()
        average = sum(loads) / self.n
        imbalance = (loads[worker] - average) / max(loads[worker], average)
        reward = -(self.p1 * imbalance + self.p2 * len(self.holders[key]) / self.n)
        self.q[key][worker] += self.gamma * (reward - self.q[key][worker])
        return worker

    def choose(self, key, home):
        if self.wait > 0:
            self.wait -= 1
            around = [(home + arm) % self.n for arm in range(self.n)]
            return max(around, key=lambda worker: (self.q[key][worker], -around.index(worker)))
        limit = self.max_split
        if limit == "share":
            peak = max(self.counts[key], self.last_counts[key])
            limit = int(np.ceil(4 * peak * self.hot_at / self.threshold)) + 2
        loads, least = self.loads(), None
        for _ in range(self.choices):
            bits = self._draw()
            held = self.holders[key]
            worker = held[below(bits, len(held))] if limit and len(held) >= limit else below(bits, self.n)
            if least is None or loads[worker] < loads[least]:
                least = worker
        self.wait = gap(self._draw(), self.scale)
        return least

    def loads(self):
        counted = Counter(worker for slide in self.window for _, worker in slide)
        return [counted[worker] for worker in range(self.n)]

    def end_slide(self):
        if not self.stats:
            self.end_stats()
        self.seen = 0
        self.window.append([])
        for key, held in self.holders.items():
            left = [w for w in held if any((key, w) in slide for slide in self.window)]
            for worker in sorted(set(held) - set(left)):  # the last takes the place of one that goes
                held[held.index(worker)] = held[-1]
                held.pop()

    def end_stats(self):
        for key in list(self.q):
            if self.counts[key] >= self.threshold:
                self.until[key] = self.number + 1
            elif self.until[key] == self.number:
                del self.q[key], self.holders[key]
                for slide in self.window:  # a key that is hot no longer leaves no fragments behind
                    slide[:] = [(None if k == key else k, worker) for k, worker in slide]
        self.number += 1
        self.last_counts = Counter({key: count for key, count in self.counts.items() if key in self.q})
        self.threshold = max(2, int(np.ceil(self.hot_at * sum(self.counts.values()) / self.n)))
        self.counts = Counter()
