"""Prompt's costs of every way to divide a micro-batch, and the memory of a task that plans.

Claims tested: Prompt's blocks are equal in tuples and nearly so in keys, whether one receiver plans them or eight tasks
that do not talk (Prompt, Figures 2.3 and 2.6, with all rivals); and a task needs memory for its rows only, whatever the
number of keys.

`make bench-blocks` runs this and writes docs/results/blocks.md.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.prompt.rivals import PACKINGS
from skewless import metrics, split
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.hashing import xxhash64
from skewless.metrics import PromptCosts
from skewless.simulate import Costs
from skewless.simulate.map_reduce import Divided
from skewless.split.receiver import Receiver
from skewless.workload import Zipf

TUPLES, KEYS, BLOCKS, TASKS = 1_000_000, 100_000, 64, (1, 2, 8)
MANY = 10_000_000
COLUMNS = (
    *("", "BSI", "BCI", "KSR", "MPI", "BSI of hash", "BCI of hash", "MPI of hash"),
    *("BCI of shuffle", "MPI of shuffle", "makespan, ms"),
)
COSTS = Costs(tuple=1e-6, emit=1e-6, partial=1e-6)


def main() -> None:
    """Run both parts and write the results."""
    target = Path("docs/results/blocks.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-blocks` does")
    lines = ["# Blocks by Prompt's costs", "", "Made by `make bench-blocks`.", "", *costs(), "", *memory()]
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def costs() -> Iterator[str]:
    """Every way to divide a micro-batch, by Prompt's costs."""
    yield "## What blocks cost"
    yield ""
    yield f"A micro-batch of {TUPLES:,} tuples of {KEYS:,} keys, Zipf, in {BLOCKS} blocks. BSI is the largest block"
    yield "less the average, in tuples; BCI the same in keys; KSR the fragments a key; MPI the mean of the three."
    yield "Then each over that of hash and of shuffle, as in Figure 2.6, where shuffle has no BSI to compare with. The"
    yield "makespan (eq. 2.1) is the longest map"
    yield f"task and then the longest of {BLOCKS} reduce tasks, at 1 us for a tuple, for emitting and for merging a"
    yield "partial result. cAM is at its best number of candidates (2, 3, 5, 10, all). Time-based blocks see a fixed"
    yield 'rate. "In tasks" are receivers that never talk, as in streams on Spark; `prompt` sees the whole batch.'
    for s in (0.6, 1.0, 1.5):
        keys = Zipf(s, keys=KEYS, seed=7).take(TUPLES)
        ways = dict(_divisions(keys))
        found = {name: metrics.prompt_costs(keys, block, BLOCKS) for name, block in ways.items()}
        yield ""
        yield f"### Zipf {s:g}"
        yield ""
        yield "|" + "|".join(f" {each} ".replace("  ", " ") for each in COLUMNS) + "|"
        yield "|---" * len(COLUMNS) + "|"
        for name, each in found.items():
            row = f"| {name} | {_cells(each, found)} | {1000 * _makespan(keys, ways[name]):.1f} |"
            print(f"{s:g} {row}")
            yield row


def memory() -> list[str]:
    """What a task needs where no key of a stream comes twice."""
    keys = xxhash64(np.arange(MANY))
    Receiver(BLOCKS).partition(keys[:1000])
    tracemalloc.start()
    receiver, start = Receiver(BLOCKS), time.thread_time()
    receiver.take(keys.copy())
    receiver.finish()
    seconds, peak = time.thread_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lines = [
        "## Memory of a task",
        "",
        f"A task with {MANY:,} rows of as many keys needs {peak / MANY:.0f} bytes a row at most, {peak / 1e6:,.0f} MB,",
        f"the hashes of its rows and their blocks included, and {seconds:.1f} s to plan. With fewer keys it is less.",
        "These are keys of all homes; [split.md](../split.md#prompt) says what it is if all of a task have one home.",
    ]
    print("\n".join(lines))
    return lines


def _divisions(keys: Int64Array) -> Iterator[tuple[str, Int32Array]]:
    """Every way to divide a micro-batch, by its name, with a block for each tuple."""
    yield "prompt", split.Prompt(BLOCKS).partition(keys)
    for tasks in TASKS:
        pieces = [Receiver(BLOCKS).partition(part) for part in np.array_split(keys, tasks)]
        yield f"prompt in {tasks} task{'s' * (tasks > 1)}", np.concatenate(pieces)
    for name, label in (("hash", "hash"), ("shuffle", "shuffle"), ("two-choices", "PK2"), ("five-choices", "PK5")):
        yield label, split.make(name, BLOCKS).route(keys)
    candidates, routed = split.best_cam(keys, BLOCKS)
    yield f"cAM, {candidates} candidates", routed
    yield "time-based", split.time_blocks(np.arange(len(keys)), 0, len(keys), BLOCKS)
    seen = split.Counts.of(keys)
    for name, plan in PACKINGS.items():
        yield name, plan(seen.keys, seen.whole, BLOCKS).route(keys)
    yield "bounded", split.Bounded(BLOCKS, slide=None).route(keys)


def _cells(each: PromptCosts, found: dict[str, PromptCosts]) -> str:
    hashed, shuffled = (each.relative_to(found[to]) for to in ("hash", "shuffle"))
    relative = (hashed.bsi, hashed.bci, hashed.mpi, shuffled.bci, shuffled.mpi)
    return f"{each.bsi:,.1f} | {each.bci:,.1f} | {each.ksr:.3f} | {each.mpi:,.1f} | " + " | ".join(
        f"{value:.4f}" if value < 0.1 else f"{value:.2f}" for value in relative
    )


def _makespan(keys: Int64Array, block: Int32Array) -> float:
    divided = Divided.routed(keys, block, BLOCKS, BLOCKS)
    return metrics.makespan(divided.map_times(COSTS), divided.reduce_times(COSTS))


if __name__ == "__main__":
    main()
