"""Prompt, Figure 1.4: what the time of a micro-batch goes to on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Table, Tell
from experiments.prompt.scheduling import data, measured
from experiments.prompt.shares import PARTS, Rounds, lines, longest, rounds

LEAST = 0.6  # of a micro-batch, in the thesis


def run(scale: Scale, tell: Tell) -> Outcome:
    """Read what was measured; both scales are the same."""
    found = rounds()
    plain = [each for (way, _), each in found.items() if way == "spark"]
    moved = {rows: each for (way, rows), each in found.items() if way == "moved"}
    until = longest(plain, LEAST)
    fixed = measured()
    stateless = float(np.interp(2 * data()["workers"], fixed.tasks, fixed.seconds * 1e3))
    enough = [f"{each.rows:,} rows (in the rounds {_range(each)})" for each in plain if each.overhead >= LEAST]
    upto = f"of {len(plain)} sizes, the median of the rounds is at least 60 % at {' and '.join(enough) or 'none'}"
    checks = (
        Check(
            f"scheduling and communication in a micro-batch of {plain[0].rows:,} rows",
            plain[0].overhead,
            low=LEAST,
            why=f"In the rounds they are {_range(plain[0])}. With as many tasks and next to no rows, without state, a "
            f"micro-batch takes {stateless:.0f} ms; here it takes {plain[0].total:.0f} ms, of which "
            f"{plain[0].execution:.0f} ms are execution."
            + "".join(_moved(moved[each], plain) for each in moved if each == plain[0].rows),
        ),
        Check(
            f"scheduling and communication in a micro-batch of {plain[-1].rows:,} rows",
            plain[-1].overhead,
            low=LEAST,
            essential=False,
            why=f"With {plain[-1].rows // plain[0].rows:,} times the rows a micro-batch takes {plain[-1].total:.0f} ms "
            f"instead of {plain[0].total:.0f} ms, and its execution {plain[-1].execution:.0f} ms instead of "
            f"{plain[0].execution:.0f} ms, so that {min(1.0, plain[0].execution / plain[-1].execution):.0%} of it are "
            "there whatever the rows. The thesis does not say "
            f"how long its micro-batches are; here {upto}.",
        ),
        Check(
            "seconds up to which scheduling and communication are 60 % of a micro-batch",
            until,
            low=1.0,
            essential=False,
            why="The intervals of the thesis are 1 to 3 s. Here they are "
            + ", ".join(
                f"{each.overhead:.1%} ({_range(each)}) of {each.total / 1e3:.2f} s at {each.rows:,} rows"
                for each in plain
            )
            + ".",
        ),
        Check(
            "fixed cost of a micro-batch with 64 tasks over one with 2",
            float(fixed.seconds[-1] / fixed.seconds[0]),
            low=1.2,
        ),
    )
    return Outcome(
        lines(),
        f"Scheduling and communication are {plain[0].overhead:.1%} of a micro-batch of {plain[0].rows:,} rows "
        f"({plain[0].total / 1e3:.2f} s; in the rounds {_range(plain[0])}) and {plain[-1].overhead:.1%} of one of "
        f"{plain[-1].rows:,} rows ({plain[-1].total / 1e3:.2f} s); {upto} (the thesis: at least 60 %). With next "
        "to no "
        f"rows a micro-batch takes {fixed.cost.message * 1e3:.0f} ms and {fixed.cost.task * 1e3:.1f} ms more for "
        "each task.",
        checks,
        (
            Table(
                "Milliseconds of a micro-batch, Spark's own windows",
                ("rows", "in all", *PARTS, "scheduling and communication", "in the rounds"),
                tuple((each.rows, each.total, *map(each.ms, PARTS), each.overhead, _range(each)) for each in plain),
            ),
            *(
                Table(
                    "Milliseconds of a micro-batch, the same rows moved by key, without state",
                    ("rows", "in all", *PARTS, "scheduling and communication", "in the rounds"),
                    tuple(
                        (rows, each.total, *map(each.ms, PARTS), each.overhead, _range(each))
                        for rows, each in moved.items()
                    ),
                )
                for _ in range(bool(moved))
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


def _moved(moved: Rounds, plain: Sequence[Rounds]) -> str:
    return (
        f" The same rows moved by key, without state, take {moved.total:.0f} ms, of which {moved.execution:.0f} ms are "
        f"execution: the other {plain[0].execution - moved.execution:.0f} ms of it go to state and aggregates."
    )


def _range(each: Rounds) -> str:
    """The least and the most overhead of a round."""
    overheads = each.all(lambda one: one.overhead)
    return f"{min(overheads):.1%} to {max(overheads):.1%}"


def bars(axes: Any, found: Sequence[Rounds], names: Sequence[str]) -> None:
    """A bar of the three shares for each; as medians they may add up to a little more or less than all."""
    at, below = np.arange(len(found)), np.zeros(len(found))
    for number, part in enumerate(PARTS):
        heights = np.array([100 * each.share(part) for each in found])
        axes.bar(at, heights, 0.6, bottom=below, label=part, color=f"C{number}")
        below += heights
    axes.set_xticks(at, names)
    axes.set_ylabel("% of a micro-batch")
    axes.set_ylim(0, 100)


def _draw(figure: Any, plain: Sequence[Rounds]) -> None:
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
