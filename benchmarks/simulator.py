"""How fast one core simulates a cluster: 10^8 tuples through partitioner, combiners and reducers.

Claim tested: a run of 100,000,000 tuples, which the figures at full scale are made of, takes minutes at most, and its
memory does not grow with the number of tuples.

What was learnt: of the 2.1 s that 20,000,000 tuples take with hash, drawing the keys is 0.5 s and routing them 0.1 s;
the rest was not taken apart.

`make bench-simulator` runs this and writes docs/results/simulator.md.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from skewless import split
from skewless.core.windows import Windows
from skewless.simulate import Cluster, Costs, MicroBatches, Source, run
from skewless.split import Splitter
from skewless.workload import Zipf

TUPLES, KEYS, SECONDS = 100_000_000, 100_000, 200.0
COMBINERS, REDUCERS = 56, 8
COSTS = Costs(tuple=50e-6, emit=3e-6, partial=1e-6, route=1e-6)
WINDOWS = Windows.of("60 seconds", "1 second")


def main() -> None:
    """Simulate every way once, and write the results."""
    target = Path("docs/results/simulator.md")
    if not target.parent.is_dir():
        sys.exit(
            "there is no docs/results here; run this from the top of the repository, as `make bench-simulator` does"
        )
    lines = [
        "# The simulator's speed",
        "",
        "Made by `make bench-simulator`, on one core.",
        "",
        f"A run is {TUPLES:,} tuples of {KEYS:,} keys, Zipf 1, in {SECONDS:g} s of simulated time: one partitioner,",
        f"{COMBINERS} combiners, {REDUCERS} reducers, windows of 60 s that slide by 1 s. Seconds are those of the",
        "processor, drawing the keys included; memory is the most that the process had so far; the last column is of",
        "the last window.",
        "",
        "| splitter | engine | tuples | seconds | tuples a second | memory, MB | busiest combiner over the mean |",
        "|---|---|---|---|---|---|---|",
    ]
    ways = {
        "hash": lambda: split.Hash(COMBINERS),
        "dalton": lambda: split.Dalton(COMBINERS, slide=None, slides=60),
        "bounded": lambda: split.Bounded(COMBINERS, slide=None, slides=60),
    }
    for name, make in ways.items():
        for way, engine in (("tuple at a time", None), ("micro-batches", MicroBatches(1.0))):
            _simulate(make(), engine, TUPLES // 1000)  # kernels are compiled
            row = f"| {name} | {way} | {_simulate(make(), engine, TUPLES)} |"
            print(row)
            lines.append(row)
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def _simulate(splitter: Splitter, engine: MicroBatches | None, tuples: int) -> str:
    cluster = Cluster(COMBINERS, REDUCERS, WINDOWS, COSTS, engine=engine)
    start = time.process_time()
    found = run(cluster, Source(Zipf(1.0, KEYS, seed=1), tuples / SECONDS), splitter, SECONDS)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert found.tuples.sum() == tuples
    load = found.loads[-1]
    return f"{tuples:,} | {seconds:.1f} | {tuples / seconds:,.0f} | {memory:,.0f} | {load.max() / load.mean():.2f}"


if __name__ == "__main__":
    main()
