"""Prompt+, Figure 3.7: what group-ahead scheduling gains in throughput, and how often micro-batches are late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.figure import Cell, Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import lines
from experiments.prompt.rivals import ALL, OTHERS, PROMPT, best_candidates
from experiments.prompt.scheduling import (
    AHEAD,
    GROUP,
    GROUPS,
    ONE,
    SCHEDULERS,
    Case,
    expected,
    measured,
    setting_of,
)
from experiments.prompt.scheduling import lines as setup_lines
from experiments.prompt.setting import tweets
from skewless.core.arrays import FloatArray, Int64Array
from skewless.elastic import Parallelism, Scaler
from skewless.simulate import Followed, Source, steps
from skewless.simulate.arrivals import Keys, Rate

SHARES = (0.1, 0.25, 0.5, 0.65, 0.77)  # of the interval that scheduling takes: so intervals are
SIZES = (2, 5, 10, 20)  # of groups
STREAMS = ("keys that come once", "words")
FACTOR = 4.0
INTERVAL = 1.0
BATCHES = 200  # of each run of 3.7b
SEEDS = tuple(range(1, 9))  # of the times of its spikes
MUCH = 0.75  # late micro-batches over those of another scheduler, at which they are much fewer
LOADS = (0.45, 0.6, 0.9)  # of the highest rate of one at a time; spikes of the first are within it
BEYOND = LOADS[1:]
EVERY, LASTS, TIMES = 20, 4, 2.0  # micro-batches between spikes on average, and of a spike; how high it is
THRES = 0.9
EXACT = 0.002  # of a rate; a hundredth would be three at the shortest interval, where work is a quarter of the time
UNPAID = (
    "Nobody waits for a message that is sent ahead, so that the gain is 1 / (1 - o) whatever G is: more than the "
    "formula, and the more so the larger o / G is."
)
EVERYONE = (*ALL, *OTHERS)
Rates = Mapping[str, float]
Runs = tuple[Followed, ...]


class Once:
    """Keys of which none comes twice, so that the work of a micro-batch is proportional to its tuples."""

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""
        return (np.arange(start, min(n, start + block)) for start in range(0, n, block))


def run(scale: Scale, tell: Tell) -> Outcome:
    """Search for rates by scheduler, partitioner, interval and size of a group, and count late micro-batches."""
    setting = setting_of(scale)
    words, cost = tweets(scale), measured().cost
    tasks = Parallelism(setting.blocks, setting.reducers)
    base = Case(words, setting, PROMPT, INTERVAL, tasks, cost)
    candidates = best_candidates(words.take(int(setting.start * INTERVAL)), setting)
    matrix: dict[str, Rates] = {}
    for name in EVERYONE:
        tell(f"{name}, intervals of {INTERVAL:g} s")
        matrix[name] = _rates(replace(base, technique=name, candidates=candidates), setting.start)
    gains = {name: matrix[name][AHEAD] / matrix[name][ONE] for name in EVERYONE}
    streams: dict[str, Keys] = dict(zip(STREAMS, (Once(), words), strict=True))
    swept = {
        (stream, share): _swept(replace(base, keys=keys, interval=cost.seconds(tasks) / share), tell)
        for stream, keys in streams.items()
        for share in SHARES
    }
    proportional = {share: swept[STREAMS[0], share] for share in SHARES}
    once, many = STREAMS

    def off(stream: str, name: str, sizes: Sequence[int]) -> float:
        return max(
            abs(_over(swept[stream, share], name, size) / expected(share, size) - 1)
            for share in SHARES
            for size in sizes
        )

    unpaid = max(
        abs(_over(found, AHEAD, size) * (1 - share) - 1) for share, found in proportional.items() for size in SIZES
    )
    tell("no scheduling window")
    case = replace(base, keys=streams[STREAMS[0]], interval=cost.seconds(tasks) / SHARES[-1], lead=0.0)
    found = proportional[SHARES[-1]]
    without = case.highest(AHEAD, found[GROUPS, GROUP], tolerance=EXACT) / found[GROUPS, GROUP]
    at_ten = {stream: [_gain(swept[stream, share]) for share in SHARES] for stream in STREAMS}
    fourfold = {
        stream: cost.seconds(tasks) / float(np.interp(FACTOR, gained, SHARES)) for stream, gained in at_ten.items()
    }
    violations: dict[float, dict[str, Runs]] = {}
    for load in LOADS:
        tell(f"late micro-batches at {load:.0%}")
        violations[load] = {name: lates(base, name, load * matrix[PROMPT][ONE]) for name in SCHEDULERS}
    soon = lates(replace(base, adjust=0.0), AHEAD, LOADS[0] * matrix[PROMPT][ONE])
    own = {name: lates(base, name, LOADS[0] * matrix[PROMPT][name]) for name in SCHEDULERS}
    over = {
        (load, name): fewer(violations[load][AHEAD], violations[load][name]) for load in LOADS for name in (ONE, GROUPS)
    }
    checks = (
        Check(
            f"3.7a, {once}: gain of groups over (1 - o/G) / (1 - o), the largest deviation of all intervals and G",
            off(once, GROUPS, SIZES),
            high=0.1,
        ),
        Check(
            f"3.7a, {once}: gain of group-ahead over (1 - o/G) / (1 - o) at G = {GROUP}, the largest deviation",
            off(once, AHEAD, (GROUP,)),
            high=0.1,
            why=UNPAID,
        ),
        Check(
            f"3.7a, {once}: the same at all G",
            off(once, AHEAD, SIZES),
            high=0.1,
            essential=False,
            why=UNPAID,
        ),
        *(
            Check(
                f"3.7a, {many}: gain of {name} over (1 - o/G) / (1 - o){where}, the largest deviation",
                off(many, name, sizes),
                high=0.1,
                essential=False,
                why="The formula takes work to be proportional to tuples. A micro-batch of words emits one partial "
                "result for each key of a block, and a larger micro-batch has fewer of them a tuple. Without the "
                "message there is time for a larger micro-batch, so that the gain is more than that of the formula, "
                f"which holds with {once}.",
            )
            for name, sizes, where in ((GROUPS, SIZES, ""), (AHEAD, (GROUP,), f" at G = {GROUP}"))
        ),
        Check(
            f"3.7a, {once}: gain of group-ahead over 1 / (1 - o), as nobody waits for a message: the largest deviation "
            "of all intervals and G",
            unpaid,
            high=0.02,
            essential=False,
        ),
        Check(
            f"3.7a, {once}: rate of group-ahead without a scheduling window over that of groups, at the shortest "
            f"interval and G = {GROUP}",
            without,
            low=0.99,
            high=1.01,
            essential=False,
        ),
        Check(
            f"3.7a: largest gain of group-ahead over its least among all partitioners, intervals of {INTERVAL:g} s",
            max(gains.values()) / min(gains.values()),
            high=1.25,
        ),
        Check("3.7a: gain of group-ahead, the least of all partitioners", min(gains.values()), low=1.05),
        Check(
            "3.7a: rate of group-ahead over that of groups, the least of both streams, all intervals and G",
            min(found[AHEAD, size] / found[GROUPS, size] for found in swept.values() for size in SIZES),
            low=0.99,
        ),
        Check(
            "3.7a: gain of group-ahead at the shortest interval, the least of both streams",
            min(each[-1] for each in at_ten.values()),
            low=FACTOR,
        ),
        *(
            Check(
                f"3.7b: late micro-batches at {load:.0%} of the highest rate of one at a time, group-ahead over {name} "
                "plus two standard errors",
                over[load, name].mean + 2 * over[load, name].error,
                high=1.0,
                essential=load in BEYOND,
                why=reason(violations[load], violations[LOADS[0]], soon),
            )
            for load in LOADS
            for name in (ONE, GROUPS)
        ),
        *(
            Check(
                f"3.7b: late micro-batches at {load:.0%}, group-ahead over the better of the two, much fewer",
                max(over[load, name].mean for name in (ONE, GROUPS)),
                high=MUCH,
                essential=load in BEYOND,
                why=reason(violations[load], violations[LOADS[0]], soon),
            )
            for load in LOADS
        ),
        Check(
            f"3.7b: group-ahead over one at a time, if each has {LOADS[0]:.0%} of its own highest rate",
            fewer(own[AHEAD], own[ONE]).mean,
            high=1.0,
            essential=False,
            why="One at a time then has less to do, and acts a micro-batch sooner: group-ahead gives fewer "
            "violations at "
            f"the same rate, not at {matrix[PROMPT][AHEAD] / matrix[PROMPT][ONE]:.2f} times the rate.",
        ),
    )
    o = base.share
    return Outcome(
        (
            *setup_lines(scale, setting),
            Scaled("tasks", "20 nodes of 16 cores", f"{tasks.map} map and {tasks.reduce} reduce tasks"),
            Scaled(
                "intervals",
                "not said",
                f"{INTERVAL:g} s for all partitioners, where scheduling is {o:.0%} of it; then "
                + ", ".join(f"{cost.seconds(tasks) / share:.2f}" for share in SHARES)
                + " s",
            ),
            Scaled(
                "highest throughput", "before back-pressure", "rate at which the micro-batches of a group take its time"
            ),
            Scaled(
                "stream of 3.7b",
                "not said",
                f"words, {BATCHES} micro-batches, {len(SEEDS)} seeds of the times of spikes; spikes "
                f"of {TIMES:g} times the rate for {LASTS}, one in {EVERY} on average; "
                "numbers of tasks follow with our step, d = 1, up to all of the cluster",
            ),
            Scaled(
                "streams of 3.7a",
                "all of chapter 2",
                f"words of tweets, {words.words:,}; and keys that come once, where work is proportional to tuples, "
                "as the "
                "formula has it",
            ),
            Scaled("late", "latency is violated", "not done when the next micro-batch is complete"),
        ),
        f"At intervals of {INTERVAL:g} s, of which scheduling takes {o:.0%}, group-ahead sustains "
        f"{min(gains.values()):.2f} "
        f"to {max(gains.values()):.2f} times the rate of one at a time, whatever the partitioner; it is {FACTOR:g} "
        "times at "
        f"intervals of {fourfold[STREAMS[0]]:.2f} s where work is proportional to tuples, and "
        f"{fourfold[STREAMS[1]]:.2f} s "
        "with words (the thesis: up to 5 times, at intervals that it does not say). At "
        + "; at ".join(
            f"{load:.0%} of the highest rate of one at a time {_percent(found[AHEAD])} of its micro-batches are late, "
            f"{_percent(found[GROUPS])} of those in groups and {_percent(found[ONE])} one at a time"
            for load, found in violations.items()
        )
        + ".",
        checks,
        (
            Table(
                f"3.7a: highest rate in 1,000 tuples a second, intervals of {INTERVAL:g} s, groups of {GROUP}",
                ("partitioner", *SCHEDULERS, "group-ahead over one at a time"),
                tuple((name, *(matrix[name][each] / 1e3 for each in SCHEDULERS), gains[name]) for name in EVERYONE),
            ),
            *(
                Table(
                    f"3.7a: gain over one at a time, Prompt, {stream}",
                    (
                        "interval, s",
                        "scheduling o",
                        *(f"{each}, G = {size}" for each in (GROUPS, AHEAD) for size in SIZES),
                        f"(1 - o/{GROUP}) / (1 - o)",
                    ),
                    tuple(
                        (
                            cost.seconds(tasks) / share,
                            share,
                            *(_over(swept[stream, share], each, size) for each in (GROUPS, AHEAD) for size in SIZES),
                            expected(share, GROUP),
                        )
                        for share in SHARES
                    ),
                )
                for stream in STREAMS
            ),
            Table(
                f"3.7b: share of micro-batches that are late, {len(SEEDS)} seeds",
                ("rate", *SCHEDULERS, *(f"tasks on average, {name}" for name in SCHEDULERS)),
                (
                    *(_row(f"{load:.0%} of the highest of one at a time", violations[load]) for load in LOADS),
                    _row(f"{LOADS[0]:.0%} of its own highest", own),
                    _row(f"{LOADS[0]:.0%} of the highest of one at a time, no adjustment window", {AHEAD: soon}),
                ),
            ),
        ),
        lambda figure: _draw(figure, at_ten, cost.seconds(tasks), violations),
    )


def _over(found: Mapping[tuple[str, int], float], name: str, size: int) -> float:
    return found[name, size] / found[ONE, 1]


def _gain(found: Mapping[tuple[str, int], float]) -> float:
    return _over(found, AHEAD, GROUP)


def _rates(case: Case, start: float) -> Rates:
    found: dict[str, float] = {}
    for name in SCHEDULERS:
        found[name] = start = case.highest(name, start)
    return found


def _swept(case: Case, tell: Tell) -> dict[tuple[str, int], float]:
    """The rates of one at a time, and of both kinds of groups of several sizes, all over as many micro-batches."""
    tell(f"{case.technique}, intervals of {case.interval:.2f} s")
    found = {(ONE, 1): case.highest(ONE, case.setting.start * (1 - case.share), tolerance=EXACT)}
    for size in SIZES:
        grouped = replace(case, group=size)
        for name in (GROUPS, AHEAD):
            found[name, size] = grouped.highest(name, found[ONE, 1] * expected(case.share, size), tolerance=EXACT)
    return found


def reason(found: Mapping[str, Runs], calm: Mapping[str, Runs], soon: Runs) -> str:
    """Why group-ahead has not fewer late ones, or not many fewer."""
    return (
        "What counts is how soon tasks are added, and how many are there when a spike comes. One at a time acts a "
        f"micro-batch sooner: at {LOADS[0]:.0%} of its highest rate {_percent(calm[ONE])} of its micro-batches are "
        f"late and {_percent(calm[AHEAD])} of group-ahead's, but {_percent(soon)} of these without an adjustment "
        f"window. Here group-ahead has {_tasks(found[AHEAD]):.0f} tasks on average, and one at a time "
        f"{_tasks(found[ONE]):.0f}."
    )


def lates(case: Case, name: str, rate: float) -> Runs:
    """A run for each of the seeds."""
    return tuple(late(case, name, rate, BATCHES, seed) for seed in SEEDS)


def fewer(ours: Sequence[Followed], theirs: Sequence[Followed]) -> Measured:
    """Late micro-batches of all runs over those of others with the same seeds; its error is that of the jackknife."""
    pairs = np.array([(a.violations, b.violations) for a, b in zip(ours, theirs, strict=True)])
    all_of_them = pairs.sum(axis=0)
    ratio = _ratio(all_of_them)
    without = np.array([_ratio(all_of_them - pair) for pair in pairs])
    error = np.sqrt((len(pairs) - 1) / len(pairs) * ((without - without.mean()) ** 2).sum())
    return Measured(ratio, float(error))


def _ratio(pair: FloatArray) -> float:
    return float(pair[0] / max(1e-9, pair[1]))


def late(case: Case, name: str, rate: float, batches: int, seed: int) -> Followed:
    """A stream with spikes at random times, the same ones for all, with numbers of tasks that follow."""
    quarter = Parallelism(case.tasks.map // 4, case.tasks.reduce // 4)
    scaler = Scaler(quarter, case.tasks, case.tasks, d=1, thres=THRES)
    return case.run(name, Source(case.keys, spikes(rate, case.interval, batches, seed)), batches, scaler)


def spikes(rate: float, interval: float, batches: int, seed: int) -> Rate:
    """A rate that is higher for some micro-batches, from random ones on."""
    random = np.random.default_rng(seed)
    begins = np.flatnonzero(random.random(batches) < 1 / EVERY)
    high = np.zeros(batches + 1, bool)
    for begin in begins:
        high[begin : begin + LASTS] = True
    high[:5] = False  # at first everybody finds its numbers
    changes = np.flatnonzero(np.diff(high, prepend=~high[:1]))
    return steps(*((float(at * interval), TIMES * rate if high[at] else rate) for at in changes))


def _percent(found: Runs) -> str:
    return f"{_late(found).mean:.1%}".replace("%", " %")


def _late(found: Runs) -> Measured:
    return Measured.of([each.violations for each in found])


def _row(what: str, found: Mapping[str, Runs]) -> tuple[Cell, ...]:
    late_ones = (_late(found[name]) if name in found else "" for name in SCHEDULERS)
    return (what, *late_ones, *(_tasks(found[name]) if name in found else "" for name in SCHEDULERS))


def _tasks(found: Runs) -> float:
    return float(np.mean([(each.map_tasks + each.reduce_tasks).mean() for each in found]))


def _draw(
    figure: Any, gains: Mapping[str, Sequence[float]], cost: float, violations: Mapping[float, Mapping[str, Runs]]
) -> None:
    left, right = figure.subplots(1, 2)
    shown = {f"group-ahead, {stream}": gained for stream, gained in gains.items()}
    shown["(1 - o/G) / (1 - o)"] = [expected(share, GROUP) for share in SHARES]
    lines(left, [cost / share for share in SHARES], shown, x="interval, s", y="times the rate of one at a time")
    left.set_xscale("log")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=7)
    width = 0.8 / len(SCHEDULERS)
    for number, name in enumerate(SCHEDULERS):
        shares = [_late(violations[load][name]) for load in LOADS]
        heights, errors = ([100 * each for each in part] for part in zip(*shares, strict=True))
        at = np.arange(len(LOADS)) + (number - 1) * width
        right.bar(at, heights, width, yerr=errors, label=name, color=f"C{number}")
    right.set_xticks(range(len(LOADS)), [f"{load:.0%}" for load in LOADS])
    right.set_xlabel("rate, of the highest of one at a time")
    right.set_ylabel("late micro-batches, %")
    right.legend(frameon=False, fontsize=7)


FIGURE = Figure(
    "prompt-3.7",
    "Group-ahead scheduling and latency guarantees",
    "Group-ahead scheduling increases the throughput up to 5 times, whatever the partitioner; latency is violated much "
    "less often than in groups or one at a time.",
    run,
)
