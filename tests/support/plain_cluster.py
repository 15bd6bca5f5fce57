"""A cluster written out in plain Python: one tuple at a time, with lists of what each server has to do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from skewless.core.hashing import xxhash64
from skewless.simulate import Cluster


@dataclass
class Plain:
    """What `run` measures, from plain loops."""

    latency: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    delay: list[float] = field(default_factory=list)
    partials: list[int] = field(default_factory=list)
    gamma: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    loads: list[list[int]] = field(default_factory=list)


def reducer_of(key: int, reducers: int) -> int:
    return int(xxhash64([key])[0] % reducers)


def simulate(cluster: Cluster, tuples: list[tuple[float, int, int, int]], partitioners: int, steps: int) -> Plain:
    """Tuples are (time, key, partitioner, worker), in the order of time."""
    costs, plain = cluster.costs, Plain()
    # Partitioners: each sends one tuple after the other.
    free = [0.0] * partitioners
    jobs = []  # for combiners: (when, before or after windows that end then, order, what)
    of_slide = defaultdict(list)
    for number, (time, key, partitioner, worker) in enumerate(tuples):
        of_slide[int(time / cluster.slide)].append((number, time, key, partitioner, worker))
    for step in range(steps):
        for number, time, _key, partitioner, worker in of_slide[step]:
            free[partitioner] = max(free[partitioner], time) + costs.route
            jobs.append((free[partitioner], 0 if costs.route else 2, number, ("tuple", time, worker)))
        jobs.append((max((step + 1) * cluster.slide, *free), 1, step, ("end", step, None)))
    # Combiners: jobs in the order in which they come.
    combiners, reducers = [0.0] * cluster.combiners, [0.0] * cluster.reducers
    for when, _, _, (kind, what, worker) in sorted(jobs, key=lambda job: job[:3]):
        if kind == "tuple":
            combiners[worker] = max(combiners[worker], when) + costs.tuple
            plain.latency[int(what / cluster.slide)].append(combiners[worker] - what)
            continue
        window = [each for slide in range(what - cluster.slides + 1, what + 1) for each in of_slide[slide]]
        held = [{key for _, _, key, _, w in window if w == c} for c in range(cluster.combiners)]
        for c in range(cluster.combiners):
            combiners[c] = max(combiners[c], when) + costs.emit * len(held[c])
        everything = set().union(*held)
        merged = [0] * cluster.reducers
        for c in sorted(range(cluster.combiners), key=lambda c: combiners[c]):
            for key in held[c]:
                r = reducer_of(key, cluster.reducers)
                reducers[r] = max(reducers[r], combiners[c]) + costs.partial
                merged[r] += 1
        for key in everything:
            reducers[reducer_of(key, cluster.reducers)] += costs.key
        busy = [reducers[r] for r in range(cluster.reducers) if merged[r]]
        plain.delay.append(max(*combiners, *busy, 0.0) - (what + 1) * cluster.slide)
        plain.partials.append(sum(merged))
        plain.gamma.append(max(merged))
        plain.keys.append(len(everything))
        plain.loads.append([sum(w == c for *_, w in window) for c in range(cluster.combiners)])
    return plain
