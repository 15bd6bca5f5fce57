"""Prompt, Figure 2.6: how even blocks are in tuples and in keys, relative to hashing and to shuffling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend
from experiments.prompt.rivals import IN_TASKS, PACKINGS, PAPERS, PROMPT, TASKS, WITH_TASKS, partitioner
from experiments.prompt.setting import CORES, Setting, submissions, tpch, trips, tweets
from skewless.core.arrays import Int64Array
from skewless.simulate.map_reduce import Divided
from skewless.split import best_cam

BATCHES = 5
TUPLES: dict[Scale, int] = {"small": 500_000, "full": 5_000_000}  # of a micro-batch
FEWER = 32  # blocks, as on two nodes
EVEN_IN_TUPLES = ("shuffle", "time-based", PROMPT)
EVEN_IN_KEYS = ("hash", PROMPT)
SLACK = (
    "A block may be 1 % above its share in each task, and a row more: with that room tasks that never talk agree on "
    "more keys. Where keys are equally frequent hash is nearly even, and 1 % of a share is more than 1 % of its "
    "imbalance."
)
ALONE = (
    "Tasks that never talk disagree about the rows that a block has more than its share by chance, which are about the "
    "root of the share, and each task makes up for the keys that it sees. One receiver has all rows."
)


@dataclass(frozen=True)
class Imbalance:
    """BSI and BCI of the micro-batches of a stream, and their fragments a key."""

    bsi: Measured
    bci: Measured
    ksr: Measured


Found = Mapping[str, Imbalance]


def imbalances(stream: Int64Array, batches: int, setting: Setting, tell: Tell) -> dict[str, Imbalance]:
    """Divide a stream of a fixed rate by each technique; cAM has the candidates with the least MPI in the first."""
    parts = np.array_split(stream, batches)
    candidates = candidates_of_cam(stream, batches, setting)
    found = {}
    for name in WITH_TASKS:
        tell(f"{name}, {setting.blocks} blocks")
        divide = partitioner(name, setting, candidates)
        divided = [divide(keys, np.linspace(i, i + 1, len(keys), False), i, 1.0) for i, keys in enumerate(parts)]
        distinct = [len(np.unique(keys)) for keys in parts]
        found[name] = Imbalance(
            Measured.of([_over_average(each.sizes) for each in divided]),
            Measured.of([_over_average(each.keys) for each in divided]),
            Measured.of([_fragments(each) / keys for each, keys in zip(divided, distinct, strict=True)]),
        )
    return found


def candidates_of_cam(stream: Int64Array, batches: int, setting: Setting) -> int:
    """The candidates with the least MPI in the first micro-batch."""
    return best_cam(np.array_split(stream, batches)[0], setting.blocks)[0]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Divide micro-batches of all workloads, into as many blocks as the paper has cores, and two also into fewer."""
    setting, fewer = (Setting(scale, blocks=blocks, reducers=1) for blocks in (CORES, FEWER))
    tuples = TUPLES[scale]
    streams = {"tweets": tweets(scale).take(BATCHES * tuples), "TPC-H": tpch(scale).take(BATCHES * tuples)}
    found = {name: imbalances(stream, BATCHES, setting, tell) for name, stream in streams.items()}
    more = {"taxis": trips().take(BATCHES * tuples), "jobs": submissions().take(BATCHES * tuples)}
    everywhere = {**found, **{name: imbalances(stream, BATCHES, setting, tell) for name, stream in more.items()}}
    candidates = {name: candidates_of_cam(stream, BATCHES, setting) for name, stream in {**streams, **more}.items()}
    at_fewer = {name: imbalances(stream, BATCHES, fewer, tell) for name, stream in streams.items()}
    words, parts = found["tweets"], found["TPC-H"]
    distinct = {name: len(np.unique(stream)) for name, stream in streams.items()}
    checks = (
        Check("BSI of Prompt over that of hash, the most of the four streams", _most(everywhere, "bsi"), high=0.01),
        Check("BCI of Prompt over that of hash, the most of the four streams", _most(everywhere, "bci"), high=1.0),
        Check(
            "tweets: BSI of shuffle, time-based and Prompt, the most, over the least of the others",
            _apart(words, "bsi", EVEN_IN_TUPLES),
            high=1.0,
        ),
        Check(
            "TPC-H: BSI of shuffle, time-based and Prompt, the most, over the least of the others",
            _apart(parts, "bsi", EVEN_IN_TUPLES),
            high=1.0,
        ),
        Check(
            "tweets: BCI of hash and Prompt, the more, over the least of the others",
            _apart(words, "bci", EVEN_IN_KEYS),
            high=1.0,
        ),
        Check(
            "TPC-H: BCI of hash and Prompt, the more, over the least of the others",
            _apart(parts, "bci", EVEN_IN_KEYS),
            high=1.0,
            why=f"It is hash that fails; Prompt alone has {_apart(parts, 'bci', (PROMPT,)):.2f} of the least of the "
            f"others. Hash puts keys into blocks by chance: {distinct['TPC-H']:,} keys thrown at random into {CORES} "
            f"blocks have a BCI of {_thrown(distinct['TPC-H'], CORES):.1f}, whatever their frequencies, and hash has "
            f"{parts['hash'].bci.mean:.1f}. The parts of TPC-H are equally frequent, so that cAM, which evens out "
            f"tuples without splitting keys, evens out keys too ({parts['cAM'].bci.mean:.1f}; with {FEWER} blocks "
            f"{at_fewer['TPC-H']['cAM'].bci.mean:.0f} against {at_fewer['TPC-H']['hash'].bci.mean:.0f}). On tweets, "
            "where frequencies differ, the order is that of the thesis.",
        ),
        Check(
            f"BSI of Prompt in {TASKS} tasks over that of hash, the most of the four streams",
            _most(everywhere, "bsi", IN_TASKS),
            high=0.01,
            essential=False,
            why=SLACK,
        ),
        Check(
            f"BCI of Prompt in {TASKS} tasks over that of hash, the most of the four streams",
            _most(everywhere, "bci", IN_TASKS),
            high=1.0,
            essential=False,
            why=f"{ALONE} With {FEWER} blocks, and ten times as many tuples of a task for each, it is at most "
            f"{_most(at_fewer, 'bci', IN_TASKS):.2f} of hash's.",
        ),
        Check(
            "BCI of Prompt over the lesser of the packings of Figure 2.3, the more of both streams",
            max(each[PROMPT].bci.mean / min(each[name].bci.mean for name in PACKINGS) for each in found.values()),
            high=1.0,
        ),
    )
    return Outcome(
        (
            Scaled("blocks", "at most the cores, 20 nodes of 16", f"{CORES}, and {FEWER} to compare"),
            Scaled("tuples of a micro-batch", "up to millions", f"{tuples:,}, {BATCHES} micro-batches"),
            Scaled("Tweets", "a sample of 2015", f"{distinct['tweets']:,} words, the first 2.69 % of all, Zipf"),
            Scaled(
                "TPC-H, query 1",
                "not said",
                f"{distinct['TPC-H']:,} parts, equally frequent, as the benchmark has them",
            ),
            Scaled("DEBS taxis, Google cluster", "not in this figure", "taxis of trips, and jobs of submitted tasks"),
            Scaled("rate", "fixed", "fixed"),
            Scaled(
                "candidates of cAM",
                "the best for each workload",
                "of 2, 3, 5, 10 and all: " + ", ".join(f"{number} on {name}" for name, number in candidates.items()),
            ),
            Scaled(
                IN_TASKS,
                "one receiver",
                f"as streams on Spark: {TASKS} receivers that never talk, with {tuples // TASKS // CORES:,} tuples for "
                f"each of {CORES} blocks",
            ),
        ),
        f"Prompt's BSI is {_relative(words, 'bsi', PROMPT, 'hash'):.3%} of hash's on tweets and "
        f"{_relative(parts, 'bsi', PROMPT, 'hash'):.3%} on TPC-H; its BCI is "
        f"{_relative(words, 'bci', PROMPT, 'hash'):.1%} "
        f"and {_relative(parts, 'bci', PROMPT, 'hash'):.1%} of hash's, and "
        f"{_relative(words, 'bci', PROMPT, 'shuffle'):.1%} and {_relative(parts, 'bci', PROMPT, 'shuffle'):.1%} of "
        f"shuffle's. As {TASKS} tasks of a stream Prompt has {_relative(words, 'bsi', IN_TASKS, 'hash'):.2%} and "
        f"{_relative(parts, 'bsi', IN_TASKS, 'hash'):.2%} of hash's BSI, and "
        f"{_relative(words, 'bci', IN_TASKS, 'hash'):.0%} and {_relative(parts, 'bci', IN_TASKS, 'hash'):.0%} of its "
        "BCI.",
        checks,
        (
            *(_table(f"{name}, {CORES} blocks", each) for name, each in everywhere.items()),
            *(_table(f"{name}, {FEWER} blocks", each) for name, each in at_fewer.items()),
        ),
        lambda figure: _draw(figure, found),
    )


def _over_average(values: Int64Array) -> float:
    return float(values.max() - values.mean())


def _fragments(divided: Divided) -> int:
    return int(divided.keys.sum())


def _thrown(keys: int, blocks: int) -> float:
    """The mean BCI of keys that are put into blocks at random."""
    thrown = np.random.default_rng(1).multinomial(keys, np.full(blocks, 1 / blocks), 200)
    return float(thrown.max(axis=1).mean() - keys / blocks)


def _relative(found: Found, cost: str, name: str, to: str) -> float:
    return float(getattr(found[name], cost).mean / getattr(found[to], cost).mean)


def _most(found: Mapping[str, Found], cost: str, name: str = PROMPT) -> float:
    return max(_relative(each, cost, name, "hash") for each in found.values())


def _apart(found: Found, cost: str, best: Sequence[str]) -> float:
    """The worst of those that should be best, over the best of the other techniques of the thesis."""
    others = [getattr(found[name], cost).mean for name in PAPERS if name not in best]
    return float(max(getattr(found[name], cost).mean for name in best) / max(min(others), 1e-9))


def _table(title: str, found: Found) -> Table:
    return Table(
        title,
        ("technique", "BSI, tuples", "BSI over hash's", "BCI, keys", "BCI over shuffle's", "fragments a key"),
        tuple(
            (
                name,
                each.bsi,
                _relative(found, "bsi", name, "hash"),
                each.bci,
                _relative(found, "bci", name, "shuffle"),
                each.ksr,
            )
            for name, each in found.items()
        ),
    )


def _draw(figure: Any, found: Mapping[str, Found]) -> None:
    panels = figure.subplots(1, 2)
    for axes, cost, to in ((panels[0], "bsi", "hash"), (panels[1], "bci", "shuffle")):
        for number, (stream, each) in enumerate(found.items()):
            places = [at + 0.4 * number - 0.2 for at in range(len(WITH_TASKS))]
            heights = [max(1e-5, _relative(each, cost, name, to)) for name in WITH_TASKS]
            axes.bar(places, heights, 0.38, label=stream)
        axes.set_xticks(range(len(WITH_TASKS)), WITH_TASKS, rotation=60, ha="right")
        axes.set_yscale("log")
        axes.set_title(f"{cost.upper()} over that of {to}", fontsize=9)
        axes.axhline(1.0, color="0.5", linewidth=0.8)
    legend(figure, panels[0])


FIGURE = Figure(
    "prompt-2.6",
    "Balance of blocks",
    "Relative to hash, the block size imbalance of shuffle, time-based blocks and Prompt is the least; relative to "
    "shuffle, the cardinality imbalance of hash and Prompt is significantly less than that of all others.",
    run,
)
