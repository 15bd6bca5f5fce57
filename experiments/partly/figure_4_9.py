"""PartLy, Figure 4.9: the throughput while the distribution and the batch interval change, and the spread of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.partly.lessons import LESSONS, NOISE, SEEDS, policy
from experiments.partly.setting import BLOCKS, SEED, TUPLES
from experiments.picture import legend
from experiments.prompt.rivals import EXTRA, LEARNED, PARTLY, PROMPT, best_candidates, learned, partitioner
from experiments.prompt.setting import Setting
from experiments.prompt.throughput import sustained
from skewless import split
from skewless.simulate.map_reduce import Divided, Partitioner
from skewless.workload import Zipf

TAUGHT = {f"{PARTLY} {seed}": policy(seed) for seed in SEEDS}
"""Policies that went on learning from the times of tasks."""
NAMES = (PARTLY, PROMPT, "cAM", "PK5", "hash", "shuffle", EXTRA)
EXPONENTS: dict[Scale, tuple[float, ...]] = {
    "small": (0.5, 1.0, 1.5, 2.0),
    "full": (0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 1.8, 2.0),
}
INTERVALS: dict[Scale, tuple[float, ...]] = {"small": (1.0, 3.0), "full": (1.0, 2.0, 3.0)}
MIDDLE = 1.0  # the exponent at which the interval changes
KEYS = 2_000


def technique(name: str, setting: Setting, candidates: int) -> Partitioner:
    """What divides micro-batches under this name; PartLy's plans are timed, and its buckets are Algorithm 3's."""
    if name != PARTLY and name not in TAUGHT:
        return partitioner(name, setting, candidates)
    return learned(split.PartLy(setting.blocks, weights=TAUGHT.get(name)), setting)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Search the highest rate of each technique for every exponent and interval."""
    setting = Setting(scale, blocks=BLOCKS, reducers=BLOCKS)
    by_skew = {z: _rates(Zipf(z, KEYS, SEED), setting, INTERVALS[scale][0], tell) for z in EXPONENTS[scale]}
    by_interval = {each: _rates(Zipf(MIDDLE, KEYS, SEED), setting, each, tell) for each in INTERVALS[scale]}
    found = [*by_skew.values(), *by_interval.values()]
    spreads = {z: _variances(z, setting, TUPLES[scale]) for z in EXPONENTS[scale]}
    less = {z: 1 - each[PARTLY] / each[PROMPT] for z, each in spreads.items()}
    taught = [float(np.mean([1 - each[policy] / each[PROMPT] for each in spreads.values()])) for policy in TAUGHT]
    rivals = [name for name in NAMES if name not in (PARTLY, PROMPT, EXTRA)]
    checks = (
        Check(
            "throughput of PartLy over that of Prompt, the least",
            min(each[PARTLY] / each[PROMPT] for each in found),
            low=0.95,
        ),
        Check(
            "throughput of PartLy over the best of cAM, PK5, hash and shuffle, the least",
            min(each[PARTLY] / max(each[name] for name in rivals) for each in found),
            low=1.0,
        ),
        Check(
            "throughput of PartLy over that of bounded, the least",
            min(each[PARTLY] / each[EXTRA] for each in found),
            low=1.0,
            essential=False,
            why="bounded splits more keys, and what that costs depends on what merging costs.",
        ),
        Check(
            "variance of reduce times saved against Prompt after learning from times, the mean of the exponents and of "
            "the seeds (thesis: 0.12)",
            float(np.mean(taught)),
            low=0.12,
            why="No run says why; the shipped policy has a larger variance than Prompt's at some exponents.",
        ),
        Check("the same, the seed that saves the least", min(taught), low=0.12, essential=False),
        Check(
            "the same, beyond what the shipped policy saves, which has learned by the cost model alone",
            float(np.mean(taught) - np.mean(list(less.values()))),
            low=0.0,
            essential=False,
            why="The larger variance is the reward, and that of map times is the larger one in most plans, so that "
            "lessons need not lower that of reduce times.",
        ),
    )
    return Outcome(
        (
            Scaled("cluster", "5 nodes of 8 cores, 24 blocks", f"{BLOCKS} blocks and reduce tasks, simulated"),
            Scaled("keys", "few hundreds to thousands", f"{KEYS:,}, Zipf"),
            Scaled("rate", "not said", "constant, the highest that is sustained"),
            Scaled(
                "learning from times",
                "not said",
                f"{LESSONS} lessons on simulated times with {NOISE:.0%} of noise, {len(SEEDS)} seeds",
            ),
            Scaled("planning", "measured", f"{1e6 * LEARNED:g} µs a key by PartLy, {1:g} µs by Prompt"),
        ),
        f"PartLy sustains {min(e[PARTLY] / e[PROMPT] for e in found):.2f} to "
        f"{max(e[PARTLY] / e[PROMPT] for e in found):.2f} times the rate of Prompt. The variance of its reduce times "
        f"differs from Prompt's by {-max(less.values()):+.0%} to {-min(less.values()):+.0%}, by "
        f"{-np.mean(list(less.values())):+.0%} on average; after learning from the times of tasks it is "
        f"{min(taught):.0%} to {max(taught):.0%} less.",
        checks,
        (
            _table(f"tuples a second, intervals of {INTERVALS[scale][0]:g} s", "z", by_skew),
            _table(f"tuples a second, z = {MIDDLE:g}", "interval, s", by_interval),
            Table(
                "variance of reduce times over their squared mean",
                ("z", PARTLY, *(f"after lessons, seed {seed}" for seed in SEEDS), PROMPT, "saved as shipped"),
                tuple(
                    (f"{z:g}", each[PARTLY], *(each[policy] for policy in TAUGHT), each[PROMPT], less[z])
                    for z, each in spreads.items()
                ),
            ),
        ),
        lambda figure: _draw(figure, by_skew),
    )


def _rates(keys: Zipf, setting: Setting, interval: float, tell: Tell) -> dict[str, float]:
    candidates = best_candidates(keys.take(int(setting.start * interval)), setting)
    found = {}
    for name in NAMES:
        tell(f"{name}, z = {keys.s:g}, intervals of {interval:g} s")
        divides = partial(technique, name, setting, candidates)
        found[name] = sustained(divides, name in (PARTLY, PROMPT), keys, setting, interval, amplitude=0.0)
    return found


def _variances(z: float, setting: Setting, tuples: int) -> dict[str, float]:
    """The variance of the reduce times of a micro-batch, relative to the square of their mean."""
    keys = Zipf(z, KEYS, SEED).take(tuples)
    found = {}
    for name in (PARTLY, PROMPT, *TAUGHT):
        divided: Divided = technique(name, setting, 2)(keys, np.zeros(0), 0.0, 1.0)
        times = divided.reduce_times(setting.costs)
        found[name] = float(times.var() / times.mean() ** 2)
    return found


def _table(title: str, first: str, found: Mapping[float, Mapping[str, float]]) -> Table:
    rows: list[tuple[Cell, ...]] = [(f"{at:g}", *(round(each[name]) for name in NAMES)) for at, each in found.items()]
    return Table(title, (first, *NAMES), tuple(rows))


def _draw(figure: Any, found: Mapping[float, Mapping[str, float]]) -> None:
    axes = figure.subplots()
    for name in NAMES:
        axes.plot(list(found), [each[name] for each in found.values()], marker="o", label=name)
    axes.set_yscale("log")
    axes.set_xlabel("z")
    axes.set_ylabel("tuples a second")
    legend(figure, axes)


FIGURE = Figure(
    "partly-4.9",
    "Throughput of a learned policy",
    "PartLy keeps a competitive throughput while the distribution of the keys and the batch interval change; learning "
    "from the times of tasks lowers the variance of reduce times by 12 % against Prompt.",
    run,
)
