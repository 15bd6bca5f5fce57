"""PartLy, Figure 4.9: the throughput while the distribution and the batch interval change, and the spread of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.figure import Cell, Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.partly.lessons import LESSONS, NOISE, SEEDS, policy
from experiments.partly.setting import BLOCKS, SEED, TUPLES
from experiments.picture import legend
from experiments.prompt.rivals import EXTRA, LEARNED, PARTLY, PROMPT, best_candidates, learned, partitioner
from experiments.prompt.setting import Setting
from experiments.prompt.throughput import sustained
from skewless import split
from skewless.core.arrays import FloatArray
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
MANY = 8  # micro-batches of each exponent whose variances are compared
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
    shipped = {z: saved(each, PARTLY) for z, each in spreads.items()}
    learned = {z: np.mean([saved(each, policy) for policy in TAUGHT], axis=0) for z, each in spreads.items()}
    taught = [float(np.mean([saved(each, policy) for each in spreads.values()])) for policy in TAUGHT]
    gain = Measured.of(np.concatenate([learned[z] - shipped[z] for z in spreads]))
    as_shipped, after = (float(np.mean(list(each.values()))) for each in (shipped, learned))
    worse = [z for z in spreads if learned[z].mean() < 0]
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
            after,
            low=0.12,
            why="By exponent: " + "; ".join(f"{z:g}: {each.mean():.2f}" for z, each in learned.items()) + ".",
        ),
        Check(
            "the same, the seed that saves the least",
            min(taught),
            low=0.12,
            essential=False,
            why="By seed: " + ", ".join(f"{each:.2f}" for each in taught) + ".",
        ),
        Check(
            "variance saved after learning from times beyond what the policy saves as it is shipped, over its standard "
            "error",
            gain.mean / gain.error,
            low=2.0,
            why=f"The gain is {gain.mean:.3f} ± {gain.error:.3f}: the shipped policy, which has learned by the cost "
            f"model alone, saves {as_shipped:.2f} already. The larger variance of map and reduce times is the reward, "
            "and a plan can lower that of map times alone; no lessons with the reduce times alone as the reward were "
            "given.",
        ),
        Check(
            "exponents at which the variance after learning from times is below Prompt's, the share",
            1 - len(worse) / len(spreads),
            low=1.0,
            essential=False,
            why=f"At z = {', '.join(f'{z:g}' for z in worse)} it is larger than Prompt's, on average.",
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
        f"{max(e[PARTLY] / e[PROMPT] for e in found):.2f} times the rate of Prompt. Over {MANY} micro-batches at each "
        f"exponent the variance of its reduce times is {as_shipped:.0%} less than Prompt's as it is shipped, and "
        f"{min(taught):.0%} to {max(taught):.0%} less after learning from the times of tasks. Lessons save "
        f"{gain.mean:.3f} ± {gain.error:.3f} more than none{_except(worse)}.",
        checks,
        (
            _table(f"tuples a second, intervals of {INTERVALS[scale][0]:g} s", "z", by_skew),
            _table(f"tuples a second, z = {MIDDLE:g}", "interval, s", by_interval),
            Table(
                f"variance of reduce times over their squared mean, {MANY} micro-batches; saved against Prompt",
                (
                    *("z", PARTLY, *(f"after lessons, seed {seed}" for seed in SEEDS), PROMPT),
                    *("saved as shipped", "saved after lessons"),
                ),
                tuple(
                    (
                        f"{z:g}",
                        *(Measured.of(each[name]) for name in (PARTLY, *TAUGHT, PROMPT)),
                        *(Measured.of(part[z]) for part in (shipped, learned)),
                    )
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


def _variances(z: float, setting: Setting, tuples: int) -> dict[str, FloatArray]:
    """The variance of the reduce times of each micro-batch, relative to the square of their mean."""
    batches = Zipf(z, KEYS, SEED).take(MANY * tuples).reshape(MANY, tuples)
    found = {}
    for name in (PARTLY, PROMPT, *TAUGHT):
        divides = technique(name, setting, 2)
        divided: list[Divided] = [divides(keys, np.zeros(0), 0.0, 1.0) for keys in batches]
        times = [each.reduce_times(setting.costs) for each in divided]
        found[name] = np.array([each.var() / each.mean() ** 2 for each in times])
    return found


def saved(spreads: Mapping[str, FloatArray], name: str) -> FloatArray:
    """By what part the variance of each micro-batch is below that of Prompt, which has the same micro-batch."""
    part: FloatArray = 1 - spreads[name] / spreads[PROMPT]
    return part


def _except(worse: Sequence[float]) -> str:
    if not worse:
        return ""
    return f"; at z = {', '.join(f'{z:g}' for z in worse)} the variance is larger than Prompt's"


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
