"""Prompt, Figure 1.4: what the time of a micro-batch goes to on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Table, Tell
from experiments.prompt.scheduling import data, measured
from experiments.prompt.shares import PARTS, Shares, lines, longest, shares

LEAST = 0.6  # of a micro-batch, in the thesis


def run(scale: Scale, tell: Tell) -> Outcome:
    """Read what was measured; both scales are the same."""
    plain = [each for (way, _), each in sorted(shares().items()) if way == "spark"]
    until = longest(plain, LEAST)
    fixed = measured()
    stateless = float(np.interp(2 * data()["workers"], fixed.tasks, fixed.seconds * 1e3))
    upto = f"they are 60 % up to {until:.2f} s" if until else "they are 60 % at no size"
    checks = (
        Check(
            f"scheduling and communication in a micro-batch of {plain[0].rows:,} rows",
            plain[0].overhead,
            low=LEAST,
            why=f"With as many tasks and neither rows nor state, a micro-batch takes {stateless:.0f} ms. Here it takes "
            f"{plain[0].total:.0f} ms, and what tasks do for the state of windows is counted as execution.",
        ),
        Check(
            f"scheduling and communication in a micro-batch of {plain[-1].rows:,} rows",
            plain[-1].overhead,
            low=LEAST,
            essential=False,
            why=f"It takes {plain[-1].total / 1e3:.1f} s, most of which is work on rows. The thesis does not say how "
            "long "
            f"its micro-batches are; here {upto}.",
        ),
        Check(
            "seconds up to which scheduling and communication are 60 % of a micro-batch",
            until,
            low=1.0,
            essential=False,
            why="The intervals of the thesis are 1 to 3 s.",
        ),
        Check(
            "fixed cost of a micro-batch with 64 tasks over one with 2",
            float(fixed.seconds[-1] / fixed.seconds[0]),
            low=1.2,
        ),
    )
    return Outcome(
        lines(),
        f"Scheduling and communication are {plain[0].overhead:.0%} of a micro-batch of {plain[0].rows:,} rows "
        f"({plain[0].total / 1e3:.2f} s) and {plain[-1].overhead:.0%} of one of {plain[-1].rows:,} rows "
        f"({plain[-1].total / 1e3:.2f} s); {upto} (the thesis: at least 60 %). With next "
        "to no "
        f"rows a micro-batch takes {fixed.cost.message * 1e3:.0f} ms and {fixed.cost.task * 1e3:.1f} ms more for "
        "each task.",
        checks,
        (
            Table(
                "Milliseconds of a micro-batch, Spark's own windows",
                ("rows", "in all", *PARTS, "scheduling and communication"),
                tuple(
                    (each.rows, each.total, *(getattr(each, part) for part in PARTS), each.overhead) for each in plain
                ),
            ),
            Table(
                "Fixed cost: a micro-batch with next to no rows, two stages of half of the tasks each",
                ("tasks", "ms", "the line, ms"),
                tuple(
                    (int(tasks), seconds * 1e3, (fixed.cost.message + fixed.cost.task * tasks) * 1e3)
                    for tasks, seconds in zip(fixed.tasks.tolist(), fixed.seconds.tolist(), strict=True)
                ),
            ),
        ),
        lambda figure: _draw(figure, plain),
    )


def bars(axes: Any, found: Sequence[Shares], names: Sequence[str]) -> None:
    """A bar of the three shares for each."""
    at, below = np.arange(len(found)), np.zeros(len(found))
    for number, part in enumerate(PARTS):
        heights = np.array([100 * each.share(part) for each in found])
        axes.bar(at, heights, 0.6, bottom=below, label=part, color=f"C{number}")
        below += heights
    axes.set_xticks(at, names)
    axes.set_ylabel("% of a micro-batch")
    axes.set_ylim(0, 100)


def _draw(figure: Any, plain: Sequence[Shares]) -> None:
    left, right = figure.subplots(1, 2)
    bars(left, plain, [f"{each.rows:,}" for each in plain])
    left.set_xlabel("rows of a micro-batch")
    handles, labels = left.get_legend_handles_labels()
    fixed = measured()
    right.plot(fixed.tasks, fixed.seconds * 1e3, "o", color="C0")
    right.plot(fixed.tasks, (fixed.cost.message + fixed.cost.task * fixed.tasks) * 1e3, color="0.5")
    right.set_xlabel("tasks")
    right.set_ylabel("ms with next to no rows")
    right.set_ylim(bottom=0)
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)


FIGURE = Figure(
    "prompt-1.4",
    "What a micro-batch's time goes to",
    "Scheduling and communication take at least 60 % of the processing time of a micro-batch.",
    run,
)
