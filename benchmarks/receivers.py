"""How even Prompt's blocks are where each task is a receiver: on many micro-batches that nothing was tuned on.

Claims tested: in a stream whose hot keys change in every micro-batch, the blocks of 1, 2 and 8 tasks that never talk
have a BSI of at most 2 % of a block, a KSR of at most 1.05 and a BCI of at most hashing's, where shuffling passes only
the first (Prompt, section 2.4). Then other streams, where they do not; one receiver; batch DataFrames, of which only
the most frequent keys are known; and the memory of a task. No clock is read.

`make bench-blocks` runs this after `benchmarks.blocks`, and writes docs/results/receivers.md.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.prompt.setting import tpch, trips
from skewless import metrics, split
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.metrics import PromptCosts
from skewless.spark.observe import MOST_TOLD
from skewless.split.receiver import Receiver
from skewless.workload import Zipf, new_hot_keys

ROWS, KEYS, BLOCKS, TASKS, SKEWS = 200_000, 10_000, 24, (1, 2, 8), (0.6, 1.0, 1.5)
BATCHES, SEED = 200, 2  # the tests have seed 1
OTHER_BATCHES, OTHER_BLOCKS = 3, (24, 64)
MORE_TASKS = (8, 16, 32)
BATCH_ROWS = 1_000_000
BATCH_ZIPF = ((0.6, 60_000), (1.0, 200_000), (0.6, 1_000_000))  # exponents and keys
ALONE = 10_000, 100_000, 1_000_000  # rows of tasks whose memory is measured
SHUFFLE = "shuffle"


@dataclass(frozen=True)
class Batch:
    """What a way to divide made of one micro-batch, and hashing of the same."""

    number: int
    way: int | str
    here: PromptCosts
    hashed: PromptCosts

    @property
    def over(self) -> float:
        """BCI over hashing's."""
        return self.here.bci / self.hashed.bci

    @property
    def above(self) -> tuple[bool, bool, bool]:
        """Whether BSI, KSR and BCI are above their bounds."""
        return self.here.bsi > 0.02 * ROWS / BLOCKS, self.here.ksr > 1.05, self.over > 1


def main() -> None:
    """Run all parts and write the results."""
    target = Path("docs/results/receivers.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-blocks` does")
    lines = ["# Prompt in tasks", "", "Made by `make bench-blocks`."]
    for part in (alone, held_out, more_tasks, others, batches, memory):
        lines.append("")
        for line in part():
            print(line)
            lines.append(line)
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def alone() -> Iterator[str]:
    """Algorithm 2 with all rows."""
    yield "## One receiver"
    yield ""
    yield f"`Prompt.partition` of {ROWS:,} rows of {KEYS:,} keys in {BLOCKS} blocks."
    yield ""
    yield "| | BSI, tuples | BCI, keys | KSR | BCI of hashing | BCI of shuffling |"
    yield "|---|---|---|---|---|---|"
    for skew in SKEWS:
        keys = xxhash64(Zipf(skew, KEYS).take(ROWS))
        found = metrics.prompt_costs(keys, split.Prompt(BLOCKS).partition(keys), BLOCKS)
        hashed, shuffled = (metrics.bci(keys, split.make(way, BLOCKS).route(keys), BLOCKS) for way in ("hash", SHUFFLE))
        yield (
            f"| Zipf {skew:.1f} | {found.bsi:.1f} | {found.bci:.1f} | {found.ksr:.3f} | {hashed:.1f} | {shuffled:.1f} |"
        )


def held_out() -> Iterator[str]:
    """Many micro-batches with other keys in each, as tasks that never talk divide them."""
    yield "## Micro-batches held out"
    yield ""
    yield f"{len(SKEWS) * BATCHES} micro-batches of {ROWS:,} rows of {KEYS:,} keys in {BLOCKS} blocks, with other keys"
    yield f"in each and other hot ones, {BATCHES} for each exponent, and neither the keys nor the seed of the tests."
    yield "Each is divided by 1, 2 and 8 tasks. The bounds are a BSI of 2 % of a block, a KSR of 1.05, and hashing's"
    yield "BCI; the last three columns have how many micro-batches are above each."
    yield ""
    yield "| | | most BSI, % of a block | most KSR | BCI over hashing's, mean | most | above in BSI | KSR | BCI |"
    yield "|---|---|---|---|---|---|---|---|---|"
    outside: list[tuple[float, Batch, float]] = []
    for skew in SKEWS:
        found = list(_held_out(skew))
        usual = float(np.mean([each.hashed.bci for each in found]))
        for way in (*TASKS, SHUFFLE):
            ours = [each for each in found if each.way == way]
            above = [sum(each.above[i] for each in ours) for i in range(3)]
            label = way if isinstance(way, str) else f"{way} task{'s' * (way > 1)}"
            over = np.array([each.over for each in ours])
            bsi = max(each.here.bsi for each in ours) / (ROWS / BLOCKS)
            yield (
                f"| Zipf {skew:.1f} | {label} | {bsi:.2%} | {max(each.here.ksr for each in ours):.3f} | "
                f"{over.mean():.2f} | {over.max():.2f} | {' | '.join(map(str, above))} |"
            )
            outside += [(skew, each, usual) for each in ours if any(each.above) and way != SHUFFLE]
    yield ""
    yield f"Of {len(SKEWS) * len(TASKS) * BATCHES:,} divisions by tasks these {len(outside)} are above a bound:"
    yield ""
    yield "| | micro-batch | tasks | BSI, % of a block | KSR | BCI | hashing's | hashing's, mean | over hashing's |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for skew, each, usual in outside:
        yield (
            f"| Zipf {skew:.1f} | {each.number} | {each.way} | {each.here.bsi / (ROWS / BLOCKS):.2%} | "
            f"{each.here.ksr:.3f} | {each.here.bci:.1f} | {each.hashed.bci:.1f} | {usual:.1f} | {each.over:.2f} |"
        )


def more_tasks() -> Iterator[str]:
    """The first of the micro-batches held out, divided by more tasks."""
    yield "## More tasks"
    yield ""
    yield f"The first {OTHER_BATCHES} of these micro-batches for each exponent, by more tasks: the most of each cost."
    yield ""
    yield "| | rows of a task for each block | BSI, % of a block | KSR | BCI over hashing's |"
    yield "|---|---|---|---|---|"
    for skew in SKEWS:
        micro_batches = list(_fresh(skew, OTHER_BATCHES))
        for tasks in MORE_TASKS:
            found = [_divided(keys, tasks, BLOCKS) for keys in micro_batches]
            bsi = max(here.bsi for here, _ in found) / (ROWS / BLOCKS)
            ksr, over = max(here.ksr for here, _ in found), max(here.bci / hashed.bci for here, hashed in found)
            rows = ROWS / BLOCKS / tasks
            yield f"| Zipf {skew:.1f}, {tasks} tasks | {rows:,.0f} | {bsi:.2%} | {ksr:.3f} | {over:.2f} |"


def others() -> Iterator[str]:
    """Streams with fewer keys, or with equally frequent ones."""
    yield "## Other streams"
    yield ""
    yield f"The worst of {OTHER_BATCHES} micro-batches of {ROWS:,} rows: fragments a key, and BCI over hashing's."
    yield ""
    heads = [f"{blocks} blocks: {n} task{'s' * (n > 1)}" for blocks in OTHER_BLOCKS for n in TASKS]
    yield f"| keys of a micro-batch | {' | '.join(heads)} | most BSI, % of a block |"
    yield "|---" * (len(heads) + 2) + "|"
    for name, micro_batches in _streams():
        cells, bsi = [], 0.0
        for blocks in OTHER_BLOCKS:
            for tasks in TASKS:
                found = [_divided(keys, tasks, blocks) for keys in micro_batches]
                over = max(here.bci / hashed.bci for here, hashed in found)
                cells.append(f"{max(here.ksr for here, _ in found):.3f}, {over:.2f}")
                bsi = max(bsi, *(here.bsi / (ROWS / blocks) for here, _ in found))
        yield f"| {len(np.unique(micro_batches[-1])):,} {name} | {' | '.join(cells)} | {bsi:.2%} |"


def batches() -> Iterator[str]:
    """Batch DataFrames, with the counts as the driver gets them, but on arrays."""
    yield "## Batch DataFrames"
    yield ""
    yield f"{BATCH_ROWS:,} rows in {BLOCKS} blocks. Of the {MOST_TOLD:,} most frequent keys the driver has the counts,"
    yield "and of the others how many rows and keys each home has. Measured on arrays."
    yield ""
    yield "| | keys | BCI of a batch DataFrame | of hashing | of a plan of all keys | BSI, % of a block |"
    yield "|---|---|---|---|---|---|"
    streams = [(f"Zipf {skew}", Zipf(skew, keys).take(BATCH_ROWS)) for skew, keys in BATCH_ZIPF]
    for name, rows in (*streams, ("TPC-H, all parts about equally frequent", tpch("full").take(BATCH_ROWS))):
        keys = xxhash64(rows)
        seen = _told(keys)
        block = split.Prompt(BLOCKS).plan(seen).route(keys)
        bcis = [metrics.bci(keys, each, BLOCKS) for each in (block, homes(keys, BLOCKS))]
        of_all = metrics.bci(keys, split.Prompt(BLOCKS).partition(keys), BLOCKS)
        bsi = metrics.bsi(block, BLOCKS) / (BATCH_ROWS / BLOCKS)
        yield f"| {name} | {seen.distinct:,} | {bcis[0]:.1f} | {bcis[1]:.1f} | {of_all:.1f} | {bsi:.2%} |"


def memory() -> Iterator[str]:
    """What a task needs for rows that each have a key of their own, of all homes and of one."""
    yield "## Memory of a task"
    yield ""
    yield f"{BLOCKS} blocks, and rows that each have a key of their own: bytes a row at most, the hashes of the rows"
    yield "and their blocks included."
    yield ""
    yield "| rows of a task | keys of all homes | of half of them | of one |"
    yield "|---|---|---|---|"
    for rows in ALONE:
        own = xxhash64(np.arange(rows * BLOCKS))
        home = homes(own, BLOCKS)
        cells = [f"{_peak(own[home < shared][:rows], BLOCKS):.0f}" for shared in (BLOCKS, BLOCKS // 2, 1)]
        yield f"| {rows:,} | {' | '.join(cells)} |"


def _held_out(skew: float) -> Iterator[Batch]:
    """For each micro-batch what tasks make of it, and shuffling."""
    for number, keys in enumerate(_fresh(skew, BATCHES)):
        hashed = metrics.prompt_costs(keys, homes(keys, BLOCKS), BLOCKS)
        for tasks in TASKS:
            yield Batch(number, tasks, metrics.prompt_costs(keys, _blocks(keys, tasks, BLOCKS), BLOCKS), hashed)
        shuffled = metrics.prompt_costs(keys, split.Shuffle(BLOCKS).route(keys), BLOCKS)
        yield Batch(number, SHUFFLE, shuffled, hashed)


def _fresh(skew: float, batches: int) -> Iterator[Int64Array]:
    """Micro-batches as hashes of keys, with other keys in each."""
    stream = new_hot_keys(skew, every=ROWS, keys=KEYS, seed=SEED)
    for number, rows in enumerate(stream.blocks(batches * ROWS, ROWS)):
        yield xxhash64(rows + number * KEYS)  # no key is in two micro-batches


def _blocks(keys: Int64Array, tasks: int, blocks: int) -> Int32Array:
    """Blocks by so many receivers, each of which has a part of the rows."""
    receiver = Receiver(blocks)
    return np.concatenate([receiver.for_task().partition(part) for part in np.array_split(keys, tasks)])


def _divided(keys: Int64Array, tasks: int, blocks: int) -> tuple[PromptCosts, PromptCosts]:
    """The costs by so many tasks, and those of hashing."""
    ways = _blocks(keys, tasks, blocks), homes(keys, blocks)
    here, hashed = (metrics.prompt_costs(keys, way, blocks) for way in ways)
    return here, hashed


def _streams() -> Iterator[tuple[str, list[Int64Array]]]:
    """Other streams by name, as hashes of the keys of some micro-batches."""
    for name, skew, keys in (
        ("keys, Zipf 1.0", 1.0, KEYS),
        ("keys, Zipf 1.5", 1.5, KEYS),
        ("keys, Zipf 2.0", 2.0, KEYS),
    ):
        stream = new_hot_keys(skew, every=ROWS, keys=keys, seed=SEED)
        yield name, [xxhash64(rows) for rows in stream.blocks(OTHER_BATCHES * ROWS, ROWS)]
    for name, column in (("taxis", trips()), ("parts, about equally frequent", tpch("small"))):
        rows = column.take(OTHER_BATCHES * ROWS)
        yield name, [xxhash64(part) for part in np.array_split(rows, OTHER_BATCHES)]
    few = new_hot_keys(1.5, every=ROWS, keys=100, seed=SEED)
    yield "keys, Zipf 1.5", [xxhash64(rows) for rows in few.blocks(OTHER_BATCHES * ROWS, ROWS)]


def _told(keys: Int64Array) -> split.Counts:
    """What the driver knows of a batch DataFrame, as `observe.all_counts` has it."""
    every = split.Counts.of(keys)
    told, rest = slice(None, MOST_TOLD), slice(MOST_TOLD, None)
    home = homes(every.keys[rest], BLOCKS)
    return split.Counts(
        every.keys[told],
        every.counts[told],
        len(keys),
        np.bincount(home, every.counts[rest], BLOCKS).astype(np.int64),
        len(every.keys),
        np.bincount(home, minlength=BLOCKS),
    )


def _peak(keys: Int64Array, blocks: int) -> float:
    """Bytes a row that a task needs at most."""
    receiver = Receiver(blocks)
    receiver.partition(keys[:1000])
    tracemalloc.start()
    receiver.take(keys.copy())
    receiver.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak / len(keys))


if __name__ == "__main__":
    main()
