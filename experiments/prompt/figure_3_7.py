"""Prompt+, Figure 3.7: what group-ahead scheduling gains in throughput, and how often micro-batches are late."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figure import Figure, Outcome, Scale, Scaled, Tell
from experiments.picture import lines
from experiments.prompt.gains import FACTOR, ONCE, SHARES, WORDS, Gains, fourfold, gains
from experiments.prompt.lateness import (
    BATCHES,
    EVERY,
    LASTS,
    LOADS,
    REPORT,
    SEEDS,
    TIMES,
    WINDOW,
    Lateness,
    late,
    lateness,
)
from experiments.prompt.rivals import LEARNERS, PROMPT, best_candidates
from experiments.prompt.scheduling import GROUP, SCHEDULERS, Case, expected, measured, setting_of
from experiments.prompt.scheduling import lines as setup_lines
from experiments.prompt.setting import tweets
from skewless.core.arrays import Int64Array
from skewless.elastic import Parallelism

INTERVAL = 1.0


def run(scale: Scale, tell: Tell) -> Outcome:
    """Search for rates by scheduler, partitioner, interval and size of a group, and count late micro-batches."""
    setting = setting_of(scale)
    words, cost = tweets(scale), measured().cost
    tasks = Parallelism(setting.blocks, setting.reducers)
    few = words.take(int(setting.start * INTERVAL))
    base = Case(words, setting, PROMPT, INTERVAL, tasks, cost, candidates=best_candidates(few, setting))
    rates = gains(base, tell)
    violated = lateness(base, rates.matrix[PROMPT], tell)
    gained, o = rates.by_partitioner.values(), base.share
    alone = measured("scheduling").cost
    least = alone.seconds(tasks) / INTERVAL
    return Outcome(
        (
            *setup_lines(scale, setting),
            Scaled(
                "scheduling alone",
                "not said",
                f"{alone.message * 1e3:.1f} ms and {alone.task * 1e3:.2f} ms a task of that: the rest is inside of the "
                f"tasks, and no scheduler saves it. Scheduling alone is {least:.0%} of {INTERVAL:g} s where the fixed "
                f"cost is {o:.0%}. With it 1 / (1 - o) is {1 / (1 - least):.2f} instead of {1 / (1 - o):.2f}, and "
                f"{FACTOR:g} at intervals of {fourfold(alone.seconds(tasks)):.2f} s instead of "
                f"{fourfold(cost.seconds(tasks)):.2f} s",
            ),
            Scaled("tasks", "20 nodes of 16 cores", f"{tasks.map} map and {tasks.reduce} reduce tasks"),
            Scaled(
                "partitioners",
                "all of chapter 2",
                f"those, and all others of the library; {', '.join(LEARNERS)} learn from one micro-batch to the next, "
                f"and each micro-batch is a slide. The most frequent word is {_most(few):.1%} of the tuples; to "
                f"dagreedy a key is hot from {1 / setting.blocks:.1%} on, and without hot keys it is hash",
            ),
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
                f"words, {BATCHES} micro-batches, {len(SEEDS)} seeds of the times of spikes; spikes of {TIMES:g} times "
                f"the rate for {LASTS}, one in {EVERY} on average; numbers of tasks follow with our step, d = 1, up to "
                "all of the cluster",
            ),
            Scaled(
                "adjustment window",
                f"about {WINDOW:g} micro-batches",
                f"{cost.seconds(tasks) * 1e3:.0f} ms, a message; none and {WINDOW:g} s in a table",
            ),
            Scaled("reports of workers", "asynchronous", f"at once; {REPORT:g} s late in a table"),
            Scaled(
                "streams of 3.7a",
                "all of chapter 2",
                f"words of tweets, {words.words:,}; and keys that come once, where work is proportional to tuples, as "
                "the formula has it",
            ),
            Scaled("late", "latency is violated", "not done when the next micro-batch is complete"),
        ),
        f"At intervals of {INTERVAL:g} s, of which scheduling takes {o:.0%}, group-ahead sustains {min(gained):.2f} to "
        f"{max(gained):.2f} times the rate of one at a time, whatever the partitioner; it is {FACTOR:g} times at "
        f"intervals of {rates.fourfold[ONCE]:.2f} s where work is proportional to tuples, and "
        f"{rates.fourfold[WORDS]:.2f} s with words (the thesis: up to 5 times, at intervals that it does not say). At "
        f"{violated.said()}.",
        (*rates.checks(), *violated.checks()),
        (*rates.tables(), *violated.tables()),
        lambda figure: _draw(figure, rates, violated),
    )


def _most(keys: Int64Array) -> float:
    """The share of the most frequent key."""
    return float(np.unique(keys, return_counts=True)[1].max() / len(keys))


def _draw(figure: Any, rates: Gains, violated: Lateness) -> None:
    left, right = figure.subplots(1, 2)
    shown = {f"group-ahead, {stream}": gained for stream, gained in rates.at_ten.items()}
    shown["(1 - o/G) / (1 - o)"] = [expected(share, GROUP) for share in SHARES]
    intervals = [rates.message / share for share in SHARES]
    lines(left, intervals, shown, x="interval, s", y="times the rate of one at a time")
    left.set_xscale("log")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=7)
    width = 0.8 / len(SCHEDULERS)
    for number, name in enumerate(SCHEDULERS):
        shares = [late(violated.found[load][name]) for load in LOADS]
        heights, errors = ([100 * each for each in part] for part in zip(*shares, strict=True))
        at = [place + (number - 1) * width for place in range(len(LOADS))]
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
