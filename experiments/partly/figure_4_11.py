"""PartLy, Figure 4.11: a scheduler agent and a partitioner agent, against Algorithm 4 with Prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.partly.agents import BLOCKS, SEEDS, TOGETHER, policy
from experiments.partly.setting import SEED
from experiments.picture import legend
from experiments.prompt.rivals import LEARNED, PROMPT, Planned
from experiments.prompt.scheduling import GROUP, divides, lines, measured, setting_of
from experiments.prompt.setting import Setting
from skewless import split
from skewless.core.arrays import FloatArray, Int64Array
from skewless.elastic import Parallelism, Scaler
from skewless.simulate import Followed, GroupAhead, Source, follow, steps
from skewless.simulate.advisor import Advisor, AdvisorWeights
from skewless.simulate.follow import Divides, Follows
from skewless.simulate.map_reduce import Partitioner
from skewless.split import BlockPlan
from skewless.workload import Zipf

AGENTS, ALGORITHM = "agents", "Algorithm 4, Prompt"
SCHEDULER, PARTITIONER = "scheduler agent, Prompt", "Algorithm 4, partitioner agent"
LEVELS = (1, 2, 4, 8, 4, 2, 1)
LASTS: dict[Scale, int] = {"small": 16, "full": 40}  # micro-batches of a level
FIRST = 1.5  # map tasks' work of an interval at level 1
KEYS, EXPONENTS = 1_000, (0.5, 1.0)
LEAST, MOST = Parallelism(2, 4), Parallelism(BLOCKS, 4)
HOT = 64  # keys that a partitioner agent places one by one
STRIDES = {"straight": 1, "one": 1}  # of Algorithm 4, with the micro-batches that a decision needs


@dataclass(frozen=True)
class Learned:
    """Divides by a partitioner agent; its buckets are Algorithm 3's."""

    splitter: split.PartLy
    setting: Setting

    def __call__(self, tasks: Parallelism) -> Partitioner:
        """For these numbers of tasks."""
        splitter = self.splitter.again(workers=tasks.map)

        def plan(keys: Int64Array, counts: Int64Array, blocks: int) -> BlockPlan:
            return splitter._divide(keys, counts, None)

        made = replace(self.setting, blocks=tasks.map, reducers=tasks.reduce)
        return Planned(plan, made, allocated=True, a_key=LEARNED * HOT / KEYS)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Let the rate rise to the eightfold and fall, with the agents of each seed, and with Algorithm 4."""
    setting, lasts = setting_of(scale), LASTS[scale]
    found: dict[tuple[str, float], list[Followed]] = {}
    for z in EXPONENTS:
        for seed in SEEDS:
            tell(f"agents of seed {seed}, z = {z:g}")
            partitioner = split.PartLy(hot=HOT, weights=policy(seed, "partitioner"))
            with np.load(policy(seed, "scheduler"), allow_pickle=False) as layers:
                weights = AdvisorWeights({name: layers[name] for name in layers.files})
            learned, prompt = Learned(partitioner, setting), divides(PROMPT, setting)
            arms: dict[str, tuple[Divides, Follows]] = {
                AGENTS: (learned, Advisor(weights, LEAST, MOST)),
                SCHEDULER: (prompt, Advisor(weights, LEAST, MOST)),
                PARTITIONER: (learned, Scaler(LEAST, MOST, d=1)),
            }
            for name, (divide, follows) in arms.items():
                found.setdefault((name, z), []).append(_followed(divide, follows, setting, z, lasts))
        for stride, d in STRIDES.items():
            tell(f"Algorithm 4, {stride}, z = {z:g}")
            scaler = Scaler(LEAST, MOST, stride=stride, d=d)
            found[_named(stride), z] = [_followed(divides(PROMPT, setting), scaler, setting, z, lasts)]
    ours, theirs = _all(found, AGENTS), _all(found, _named("straight"))
    alone = {name: _all(found, name) for name in (SCHEDULER, PARTITIONER)}
    why = (
        f"Late are {_mean(alone[SCHEDULER], _late):.1%} with the scheduler agent and Prompt, and "
        f"{_mean(alone[PARTITIONER], _late):.1%} with Algorithm 4 and the partitioner agent, where both together have "
        f"{_mean(ours, _late):.1%} and neither has {_mean(theirs, _late):.1%}. Algorithm 4 works out the number of "
        "tasks that the last micro-batch would have needed, and the scheduler has seven factors to choose from."
    )
    checks = (
        Check(
            "violations of the agents, over those of Algorithm 4 with Prompt",
            _mean(ours, _late) / max(_mean(theirs, _late), 1e-9),
            high=1.0,
            why=why,
        ),
        Check(
            "distance of W from the zone between 0.8 and 0.9, the agents over Algorithm 4 with Prompt",
            _mean(ours, _off) / max(_mean(theirs, _off), 1e-9),
            high=1.0,
            why=f"It is {_mean(alone[SCHEDULER], _off):.2f} with the scheduler agent and Prompt, and "
            f"{_mean(alone[PARTITIONER], _off):.2f} with Algorithm 4 and the partitioner agent.",
        ),
        Check(
            "map tasks of the agents, over those of Algorithm 4 with Prompt",
            _mean(ours, _tasks) / _mean(theirs, _tasks),
            high=1.1,
        ),
        Check(
            "violations of the agents, over those of Algorithm 4 that adds one task at a time",
            _mean(ours, _late) / max(_mean(_all(found, _named("one")), _late), 1e-9),
            high=1.0,
            essential=False,
        ),
    )
    return Outcome(
        (
            *lines(scale, setting),
            Scaled("blocks that are advised", "not said", f"{LEAST.map} to {MOST.map}; {MOST.reduce} reduce tasks"),
            Scaled(
                "load",
                "not said",
                f"levels 1, 2, 4, 8, 4, 2, 1 of {lasts} micro-batches; at level 1 the work of {FIRST:g} map tasks; "
                f"{KEYS:,} keys, Zipf {' and '.join(f'{z:g}' for z in EXPONENTS)}",
            ),
            Scaled("scheduling", "not said", f"group-ahead, G = {GROUP}, intervals of 1 s"),
            Scaled(
                "training",
                "not said",
                f"Algorithm 5, {TOGETHER} rounds of 64 micro-batches, {len(SEEDS)} seeds; loads and keys are drawn, "
                "and none of this stream",
            ),
        ),
        f"{_mean(ours, _late):.1%} of the micro-batches are late with the agents, {_mean(theirs, _late):.1%} with "
        f"Algorithm 4 and Prompt; the mean W is {_mean(ours, _ratio):.2f} and {_mean(theirs, _ratio):.2f}, with "
        f"{_mean(ours, _tasks):.1f} and {_mean(theirs, _tasks):.1f} map tasks.",
        checks,
        tuple(
            Table(
                f"Zipf {z:g}",
                ("who decides", "late micro-batches", "mean W", "distance of W from 0.8 to 0.9", "map tasks"),
                tuple(
                    (
                        name,
                        *(
                            Measured.of([value(each) for each in found[name, z]])
                            for value in (_late, _ratio, _off, _tasks)
                        ),
                    )
                    for name in (AGENTS, SCHEDULER, PARTITIONER, *map(_named, STRIDES))
                ),
            )
            for z in EXPONENTS
        ),
        lambda figure: _draw(figure, found),
    )


def _named(stride: str) -> str:
    return ALGORITHM if stride == "straight" else f"{ALGORITHM}, {stride} at a time"


def _followed(divides: Divides, follows: Follows, setting: Setting, z: float, lasts: int) -> Followed:
    cost, rate = measured().cost, FIRST / setting.costs.tuple
    source = Source(Zipf(z, KEYS, SEED), steps(*((float(at * lasts), rate * level) for at, level in enumerate(LEVELS))))
    scheduler = GroupAhead(cost, follows.parallelism, GROUP)
    seconds = float(lasts * len(LEVELS))
    return follow(source, divides, scheduler, setting.costs, 1.0, seconds, tasks=follows.parallelism, scaler=follows)


def _all(found: Mapping[tuple[str, float], list[Followed]], name: str) -> list[Followed]:
    return [each for z in EXPONENTS for each in found[name, z]]


def _mean(found: list[Followed], value: Callable[[Followed], float]) -> float:
    return float(np.mean([value(each) for each in found]))


def _late(found: Followed) -> float:
    return found.violations


def _ratio(found: Followed) -> float:
    return float(found.ratios.mean())


def _off(found: Followed) -> float:
    off: FloatArray = np.maximum(found.ratios - 0.9, 0) + np.maximum(0.8 - found.ratios, 0)
    return float(off.mean())


def _tasks(found: Followed) -> float:
    return float(found.map_tasks.mean())


VALUES = (_late, _ratio, _off, _tasks)


def _draw(figure: Any, found: Mapping[tuple[str, float], list[Followed]]) -> None:
    axes = figure.subplots(2, 1, sharex=True)
    shown = {name: found[name, EXPONENTS[-1]][0] for name in (AGENTS, *map(_named, STRIDES))}
    for name, each in shown.items():
        at = np.arange(1, len(each.ratios) + 1)
        axes[0].plot(at, np.minimum(each.ratios, 4), linewidth=0.9, label=name)
        axes[1].plot(at, each.map_tasks, linewidth=0.9, label=name)
    for level in (0.8, 0.9):
        axes[0].axhline(level, color="0.6", linewidth=0.6)
    axes[0].set_ylabel("W, at most 4")
    axes[1].set_ylabel("map tasks")
    axes[1].set_xlabel("micro-batch")
    legend(figure, axes[0])


FIGURE = Figure(
    "partly-4.11",
    "A scheduler agent and a partitioner agent",
    "A scheduler agent that advises the number of blocks and a partitioner agent that fills them, trained together, do "
    "the work of Algorithm 4 and of Prompt.",
    run,
)
