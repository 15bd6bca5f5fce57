"""Prompt, Figure 2.8: how much the times of reduce tasks vary, by time-based blocks and by Prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.prompt.rivals import EXTRA, PROMPT, partitioner
from experiments.prompt.setting import AMPLITUDE, PERIOD, Setting, cluster_lines, tweets
from experiments.prompt.throughput import sustained_all
from skewless.core.arrays import FloatArray
from skewless.simulate import EarlyRelease, Source, sine
from skewless.simulate.map_reduce import process

TIME_BASED = "time-based"
SHOWN = (TIME_BASED, PROMPT, "shuffle", "hash", EXTRA)
BATCHES: dict[Scale, int] = {"small": 180, "full": 1200}
SIZE: dict[Scale, float] = {"small": 1.0, "full": 4.0}  # times that all work takes longer, for runs that end
INTERVAL = 1.0
LOAD = 0.9  # of the rate that time-based blocks sustain
DRAWN = 60  # micro-batches


@dataclass(frozen=True, eq=False)
class Spread:
    """Times of reduce tasks: micro-batches x tasks, in seconds."""

    times: FloatArray

    @property
    def means(self) -> FloatArray:
        """Of each micro-batch on average, as the thesis reports them."""
        means: FloatArray = self.times.mean(axis=1)
        return means

    @property
    def across(self) -> float:
        """The standard deviation of these from micro-batch to micro-batch."""
        return float(self.means.std())

    @property
    def within(self) -> float:
        """The standard deviation among the tasks of a micro-batch, on average."""
        return float(self.times.std(axis=1).mean())

    @property
    def width(self) -> float:
        """From the shortest to the longest average time of a micro-batch."""
        return float(self.means.max() - self.means.min())


def run(scale: Scale, tell: Tell) -> Outcome:
    """Process the same stream, at a rate that time-based blocks sustain, in several ways."""
    setting, words, batches = Setting(scale, slower=SIZE[scale]), tweets(scale), BATCHES[scale]
    rate = LOAD * sustained_all((TIME_BASED,), words, setting, INTERVAL, tell)[TIME_BASED]
    found, steady = {}, {}
    for name in SHOWN:
        tell(f"{name}, {batches} micro-batches")
        found[name] = _spread(name, setting, sine(rate, AMPLITUDE * rate, PERIOD), batches)
    for name in (TIME_BASED, PROMPT):
        steady[name] = _spread(name, setting, rate, batches // 6)
    old, new = found[TIME_BASED], found[PROMPT]
    checks = (
        Check(
            "standard deviation from micro-batch to micro-batch of the average reduce time, time-based over Prompt",
            old.across / new.across,
            low=2.0,
        ),
        Check(
            "from the shortest to the longest average reduce time of a micro-batch, time-based over Prompt",
            old.width / new.width,
            low=2.0,
        ),
        Check(
            "standard deviation among the reduce tasks of a micro-batch, time-based over Prompt",
            old.within / new.within,
            low=2.0,
        ),
        Check(
            "standard deviation over the mean, from micro-batch to micro-batch, time-based over Prompt",
            _relative(old) / _relative(new),
            low=1.0,
            essential=False,
            why="Both follow the rate: a micro-batch with more tuples has more keys, and more fragments of them.",
        ),
    )
    return Outcome(
        (
            *cluster_lines(scale, SIZE[scale]),
            Scaled("micro-batches", "thousands", f"{batches:,} of {INTERVAL:g} s"),
            Scaled("stream", "not said", f"words of tweets, {words.words:,} of them"),
            Scaled(
                "rate",
                "not said",
                f"a sine with a mean of {rate:,.0f} tuples a second, {LOAD:.0%} of what time-based blocks sustain",
            ),
        ),
        f"The average reduce time of a micro-batch is {1000 * old.means.min():.0f} to {1000 * old.means.max():.0f} ms "
        f"by time-based blocks and {1000 * new.means.min():.0f} to {1000 * new.means.max():.0f} ms by Prompt; among "
        f"the tasks of a micro-batch it deviates by {1000 * old.within:.1f} and {1000 * new.within:.1f} ms. From "
        "micro-batch to micro-batch it follows the rate: at a constant one it deviates by "
        f"{1000 * steady[TIME_BASED].across:.1f} and {1000 * steady[PROMPT].across:.1f} ms only.",
        checks,
        (
            _table("Reduce times in ms, the rate follows a sine", found),
            _table("Reduce times in ms at a constant rate", steady),
        ),
        lambda figure: _draw(figure, old, new),
    )


def _spread(name: str, setting: Setting, rate: Any, batches: int) -> Spread:
    release = EarlyRelease(INTERVAL) if name == PROMPT else None
    source, divide = Source(tweets(setting.scale), rate), partitioner(name, setting)
    done = process(source, divide, setting.engine(INTERVAL), setting.costs, batches * INTERVAL, release)
    return Spread(done.reduce_times)


def _relative(spread: Spread) -> float:
    return spread.across / float(spread.means.mean())


def _table(title: str, found: dict[str, Spread]) -> Table:
    return Table(
        title,
        (
            "technique",
            "average",
            "least average of a micro-batch",
            "most",
            "deviation across",
            "the same over the average",
            "deviation among the tasks of one",
            "longest task",
        ),
        tuple(
            (
                name,
                1000 * float(each.means.mean()),
                1000 * float(each.means.min()),
                1000 * float(each.means.max()),
                1000 * each.across,
                _relative(each),
                1000 * each.within,
                1000 * float(each.times.max()),
            )
            for name, each in found.items()
        ),
    )


def _draw(figure: Any, old: Spread, new: Spread) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    for axes, spread, title in ((panels[0], old, "a: time-based blocks"), (panels[1], new, "b: Prompt")):
        shown = 1000 * spread.times[:DRAWN]
        at = np.arange(1, len(shown) + 1)
        axes.fill_between(at, shown.min(axis=1), shown.max(axis=1), alpha=0.3, label="all reduce tasks")
        axes.plot(at, shown.mean(axis=1), marker="o", label="average")
        axes.set_xlabel("micro-batch")
        axes.set_title(title, fontsize=9)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("reduce time, ms")
    panels[0].legend(frameon=False, fontsize=7)


FIGURE = Figure(
    "prompt-2.8",
    "Spread of reduce times",
    "The average time of the reduce tasks of a micro-batch is highly variable with time-based blocks; with Prompt "
    "there is little between its upper and lower bounds.",
    run,
)
