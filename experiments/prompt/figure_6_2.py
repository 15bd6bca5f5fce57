"""Prompt, Figure 6.2: what the time of a micro-batch goes to with Prompt, Prompt+ and PartLy, and with two of them."""

from __future__ import annotations

from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.prompt.figure_1_4 import bars
from experiments.prompt.scheduling import data
from experiments.prompt.shares import PARTS, Shares, lines, shares

ROWS = 10_000


def run(scale: Scale, tell: Tell) -> Outcome:
    """Read what was measured; both scales are the same."""
    found, group = shares(), int(data()["group"])
    shown = {
        "Spark": found["spark", ROWS],
        "Python, hash": found["hash", ROWS],
        "Prompt": found["prompt", ROWS],
        "Prompt+": found["hash", group * ROWS],
        "both": found["prompt", group * ROWS],
        "PartLy": found["partly", ROWS],
        "PartLy, Prompt+": found["partly", group * ROWS],
    }
    execution = {name: each.share("execution") for name, each in shown.items()}
    plain = execution["Python, hash"]
    spark = (found["spark", ROWS], found["spark", group * ROWS])
    checks = (
        Check("share of execution with Prompt+, over that without", execution["Prompt+"] / plain, low=1.0),
        Check("share of execution with both, over that with neither", execution["both"] / plain, low=1.0),
        Check(
            "share of execution with PartLy and Prompt+, over that with neither",
            execution["PartLy, Prompt+"] / plain,
            low=1.0,
        ),
        *(
            Check(
                f"share of execution with {name}, over that without",
                execution[name] / plain,
                low=1.0,
                essential=False,
                why="Equal tasks are done sooner, and what is not execution stays: a partitioner makes the micro-batch "
                f"shorter by {1 - shown[name].total / shown['Python, hash'].total:.0%}, and not its scheduling.",
            )
            for name in ("Prompt", "PartLy")
        ),
        Check(
            "the same with both, over the most of one of them",
            execution["both"] / max(execution["Prompt"], execution["Prompt+"]),
            low=1.0,
            essential=False,
            why="Prompt's tasks are done sooner, so that what is not execution is a larger share.",
        ),
        Check(
            "Spark's own windows: share of execution with Prompt+, over that without",
            spark[1].share("execution") / spark[0].share("execution"),
            low=1.0,
        ),
    )
    return Outcome(
        (
            *lines(),
            Scaled(
                "Prompt+",
                "group-ahead scheduling",
                f"the rows of {group} micro-batches under one schedule. Spark's scheduler cannot be replaced from "
                "outside, so "
                f"that these are one micro-batch of {group * ROWS:,} rows: its share is that of {group} under one "
                "message, "
                "its latency is not",
            ),
            Scaled("rows of a micro-batch", "not said", f"{ROWS:,}"),
            Scaled(
                "PartLy",
                "is part of the figure",
                "by its plan on the driver, from the counts of the micro-batch before",
            ),
        ),
        f"Execution is {execution['Spark']:.0%} of a micro-batch of Spark's own windows, {plain:.0%} of the same "
        f"windows in Python by hash, {execution['Prompt']:.0%} with Prompt, {execution['Prompt+']:.0%} with Prompt+, "
        f"{execution['both']:.0%} with both, {execution['PartLy']:.0%} with PartLy and "
        f"{execution['PartLy, Prompt+']:.0%} with PartLy and Prompt+.",
        checks,
        (
            Table(
                "Milliseconds of a micro-batch",
                ("", "rows", "in all", *PARTS, "share of execution"),
                tuple(
                    (name, each.rows, each.total, *(getattr(each, part) for part in PARTS), execution[name])
                    for name, each in shown.items()
                ),
            ),
            Table(
                "All that was measured",
                ("", "rows", "in all, ms", *(f"{part}, share" for part in PARTS)),
                tuple(
                    (each.way, each.rows, each.total, *(each.share(part) for part in PARTS)) for each in found.values()
                ),
            ),
        ),
        lambda figure: _draw(figure, shown),
    )


def _draw(figure: Any, shown: dict[str, Shares]) -> None:
    axes = figure.subplots()
    bars(axes, list(shown.values()), list(shown))
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


FIGURE = Figure(
    "prompt-6.2",
    "A micro-batch's time with all techniques",
    "With Prompt, with Prompt+, with PartLy and with all of them, a larger share of a micro-batch's time is execution.",
    run,
)
