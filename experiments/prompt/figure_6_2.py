"""Prompt, Figure 6.2: what the time of a micro-batch goes to with Prompt, Prompt+ and PartLy, and with two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.prompt.figure_1_4 import bars
from experiments.prompt.scheduling import data
from experiments.prompt.shares import PARTS, Shares, lines, shares

ROWS, MANY, NEXT_TO_NONE = 10_000, 1_000_000, 100
"""Rows of a micro-batch: of the figure, where they are most of the time, and where they are next to none of it."""
IN_TASKS = (
    " Prompt's blocks are planned in the tasks that read the rows, in Python, where by hash there is no Python; even "
    "blocks save less than that when rows are few."
)


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
    neither = shown["Python, hash"]
    checks = (
        Check(
            f"share of execution with Prompt+, over that without, {ROWS:,} rows",
            execution["Prompt+"] / plain,
            low=1.0,
            why=_fixed(found, neither, shown["Prompt+"], group),
        ),
        *(
            Check(
                f"the same where rows are more of the time, {MANY:,} rows",
                found["hash", group * MANY].share("execution") / found["hash", MANY].share("execution"),
                low=1.0,
            )
            for _ in range(("hash", group * MANY) in found)
        ),
        Check("share of execution with both, over that with neither", execution["both"] / plain, low=1.0),
        Check(
            "share of execution with PartLy and Prompt+, over that with neither",
            execution["PartLy, Prompt+"] / plain,
            low=1.0,
        ),
        *(
            check
            for name, planned in (("Prompt", IN_TASKS), ("PartLy", ""))
            for check in (
                Check(
                    f"share of execution with {name}, over that without",
                    execution[name] / plain,
                    low=1.0,
                    essential=False,
                ),
                Check(
                    f"time of a micro-batch with {name}, over that without",
                    shown[name].total / neither.total,
                    high=1.0,
                    why=f"Execution takes {shown[name].execution:.0f} ms instead of {neither.execution:.0f} ms"
                    f"{_rowless(found, name)}. So a larger share of it is no gain here.{planned}",
                ),
            )
        ),
        *(
            Check(
                f"time a row with {name}, over that with neither",
                (shown[name].total / shown[name].rows) / (neither.total / neither.rows),
                high=1.0,
            )
            for name in ("Prompt+", "both", "PartLy, Prompt+")
        ),
        *(
            Check(
                f"time of a micro-batch with Prompt, over that without, {rows:,} rows",
                found["prompt", rows].total / found["hash", rows].total,
                high=1.0,
                essential=False,
                why=f"Execution takes {found['prompt', rows].execution:,.0f} ms instead of "
                f"{found['hash', rows].execution:,.0f} ms.",
            )
            for rows in (MANY, group * MANY)
            if ("prompt", rows) in found
        ),
        Check(
            "share of execution with both, over the most of one of them",
            execution["both"] / max(execution["Prompt"], execution["Prompt+"]),
            low=1.0,
            essential=False,
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
                f"that these are one micro-batch of {group * ROWS:,} rows. It pays the fixed part of execution once, "
                f"and not {group} times as {group} micro-batches under one message would; its latency is not theirs "
                "either",
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


def _fixed(found: Mapping[tuple[str, int], Shares], plain: Shares, grouped: Shares, group: int) -> str:
    """Why a message for a group does not make execution a larger share."""
    few = found.get((plain.way, NEXT_TO_NONE))
    none = "" if few is None else f" With {NEXT_TO_NONE} rows execution takes {few.execution:.0f} ms."
    work = plain.execution + plain.communication
    return (
        f"{group} times the rows take {grouped.total / plain.total:.2f} times as long, and their execution "
        f"{grouped.execution:.0f} ms instead of {plain.execution:.0f} ms: what is called execution is a fixed cost of "
        f"tasks, state and Python here, which one large micro-batch saves as it saves scheduling.{none} If {group} "
        f"micro-batches paid for one message together and each for its own execution, the share would be "
        f"{plain.execution / (work + plain.scheduling / group):.0%}; that is computed, not measured."
    )


def _rowless(found: Mapping[tuple[str, int], Shares], name: str) -> str:
    few = {way: found.get((way, NEXT_TO_NONE)) for way in ("hash", name.lower())}
    if None in few.values():
        return ""
    ours, plain = few[name.lower()], few["hash"]
    assert ours is not None
    assert plain is not None
    return f"; with {NEXT_TO_NONE} rows it takes {ours.execution:.0f} ms instead of {plain.execution:.0f} ms"


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
