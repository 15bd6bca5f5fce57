"""Prompt, Figure 6.2: what the time of a micro-batch goes to with Prompt, Prompt+ and PartLy, and with two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.prompt.figure_1_4 import bars
from experiments.prompt.scheduling import data
from experiments.prompt.shares import PARTS, Paired, Rounds, Shares, lines, longer, rounds

ROWS, MANY, NEXT_TO_NONE = 10_000, 1_000_000, 100
"""Rows of a micro-batch: of the figure, where they are most of the time, and where they are next to none of it."""
IN_TASKS = (
    "Prompt's blocks are planned in the tasks that read the rows, in Python, where by hash there is no Python; even "
    "blocks save less than that when rows are few."
)
ON_DRIVER = (
    "PartLy's plan is made on the driver, and takes no time of tasks. What makes execution longer with it was not "
    "measured, and stays unexplained."
)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Read what was measured; both scales are the same."""
    found, group = rounds(), int(data()["group"])
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
    neither = shown["Python, hash"]
    compared = {
        **{("share of execution", name): Paired.of(each, neither, _execution) for name, each in shown.items()},
        **{("time of a micro-batch", name): Paired.of(each, neither, _total) for name, each in shown.items()},
        **{
            ("time a row", name): Paired.of(each, neither, _a_row)
            for name, each in shown.items()
            if each.rows != neither.rows
        },
    }
    spark = Paired.of(found["spark", group * ROWS], found["spark", ROWS], _execution)
    each_of_both = [Paired.of(shown["both"], shown[one], _execution).ratios for one in ("Prompt", "Prompt+")]
    both = Paired(tuple(map(min, *each_of_both)))
    larger = {
        rows: Paired.of(found["prompt", rows], found["hash", rows], _total)
        for rows in (MANY, group * MANY)
        if ("prompt", rows) in found
    }
    many = [
        Paired.of(found["hash", group * MANY], found["hash", MANY], _execution)
        for _ in range(("hash", group * MANY) in found)
    ]
    checks = (
        Check(
            f"share of execution with Prompt+, over that without, {ROWS:,} rows",
            compared["share of execution", "Prompt+"].median,
            low=1.0,
            why=f"{compared['share of execution', 'Prompt+'].said} {_fixed(found, neither, shown['Prompt+'], group)}",
        ),
        *(
            Check(f"the same where rows are more of the time, {MANY:,} rows", each.median, low=1.0, why=each.told)
            for each in many
        ),
        *(
            Check(
                f"share of execution with {said}, over that with neither",
                compared["share of execution", name].median,
                low=1.0,
                why=compared["share of execution", name].told,
            )
            for name, said in (("both", "both"), ("PartLy, Prompt+", "PartLy and Prompt+"))
        ),
        *(
            check
            for name, planned in (("Prompt", IN_TASKS), ("PartLy", ON_DRIVER))
            for check in (
                Check(
                    f"share of execution with {name}, over that without",
                    compared["share of execution", name].median,
                    low=1.0,
                    essential=False,
                    why=compared["share of execution", name].told,
                ),
                Check(
                    f"time of a micro-batch with {name}, over that without",
                    compared["time of a micro-batch", name].median,
                    high=1.0,
                    why=f"Execution takes {shown[name].execution:.0f} ms instead of {neither.execution:.0f} ms"
                    f"{_rowless(found, name)}, in medians of rounds, where a micro-batch by hash takes "
                    f"{neither.total:.0f} ms. With {name} it takes {longer(shown[name], neither)}. So a larger share "
                    f"of execution is no gain here. {planned} {compared['time of a micro-batch', name].told}",
                ),
            )
        ),
        *(
            Check(
                f"time a row with {name}, over that with neither",
                compared["time a row", name].median,
                high=1.0,
                essential=False,
                why=compared["time a row", name].told,
            )
            for name in ("Prompt+", "both", "PartLy, Prompt+")
        ),
        *(
            Check(
                f"time of a micro-batch with Prompt, over that without, {rows:,} rows",
                ratio.median,
                high=1.0,
                essential=False,
                why=f"{ratio.told} A micro-batch takes {longer(found['prompt', rows], found['hash', rows])}. Execution "
                "has Prompt's planning in it, in Python; how much of this that is was not measured here."
                if min(ratio.ratios) > 1
                else ratio.told,
            )
            for rows, ratio in larger.items()
        ),
        Check(
            "share of execution with both, over the most of one of them",
            both.median,
            low=1.0,
            essential=False,
            why=both.told,
        ),
        Check(
            "Spark's own windows: share of execution with Prompt+, over that without",
            spark.median,
            low=1.0,
            why=spark.told,
        ),
    )
    ratios = {
        **{f"{what} with {name}, over that with neither": each for (what, name), each in compared.items()},
        **{f"share of execution with Prompt+, over that without, {MANY:,} rows": each for each in many},
        **{
            f"time of a micro-batch with Prompt, over that without, {rows:,} rows": each
            for rows, each in larger.items()
        },
        "share of execution with both, over the most of one of them": both,
        "share of execution of Spark's own windows with Prompt+, over that without": spark,
    }
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
        f"{execution['PartLy, Prompt+']:.0%} with PartLy and Prompt+. These are medians of rounds; over that by hash, "
        "round by round, the time of a micro-batch is "
        f"{_spread(compared['time of a micro-batch', 'Prompt'])} with Prompt and "
        f"{_spread(compared['time of a micro-batch', 'PartLy'])} with PartLy. If {group} micro-batches paid for one "
        f"message, execution would be {neither.median(lambda one: _together(one, group)):.0%} by hash; that is "
        "computed, not measured.",
        checks,
        (
            Table(
                "Milliseconds of a micro-batch",
                ("", "rows", "in all", *PARTS, "share of execution"),
                tuple(
                    (name, each.rows, each.total, *map(each.ms, PARTS), execution[name]) for name, each in shown.items()
                ),
            ),
            Table(
                "Ratios round by round",
                ("", "median", "least", "most"),
                tuple(
                    (what, each.median, min(each.ratios), max(each.ratios))
                    for what, each in ratios.items()
                    if set(each.ratios) != {1.0}
                ),
            ),
            Table(
                f"Share of execution if {group} micro-batches paid for one message together and each for its own "
                "execution: computed, not measured",
                ("", "rows of a micro-batch", "each with its message", f"{group} under one message"),
                tuple(
                    (each.way, each.rows, each.share("execution"), each.median(lambda one: _together(one, group)))
                    for each in found.values()
                ),
            ),
            Table(
                "All that was measured: medians of rounds",
                ("", "rows", "in all, ms", "least", "most", *(f"{part}, share" for part in PARTS)),
                tuple(
                    (
                        each.way,
                        each.rows,
                        each.total,
                        min(each.all(_total)),
                        max(each.all(_total)),
                        *map(each.share, PARTS),
                    )
                    for each in found.values()
                ),
            ),
        ),
        lambda figure: _draw(figure, shown),
    )


def _execution(one: Shares) -> float:
    return one.share("execution")


def _total(one: Shares) -> float:
    return one.total


def _a_row(one: Shares) -> float:
    return one.total / one.rows


def _together(one: Shares, group: int) -> float:
    """The share of execution if a group of micro-batches paid for one message, and each for its own execution."""
    return one.execution / (one.execution + one.communication + one.scheduling / group)


def _spread(ratio: Paired) -> str:
    return f"{ratio.median:.2f} ({min(ratio.ratios):.2f} to {max(ratio.ratios):.2f})"


def _fixed(found: Mapping[tuple[str, int], Rounds], plain: Rounds, grouped: Rounds, group: int) -> str:
    """Why a message for a group does not make execution a larger share."""
    few = found.get((plain.way, NEXT_TO_NONE))
    none = "" if few is None else f" With {NEXT_TO_NONE} rows execution takes {few.execution:.0f} ms."
    return (
        f"{group} times the rows take {grouped.total / plain.total:.2f} times as long, and their execution "
        f"{grouped.execution:.0f} ms instead of {plain.execution:.0f} ms: what is called execution is a fixed cost of "
        f"tasks, state and Python here, which one large micro-batch saves as it saves scheduling.{none} If {group} "
        f"micro-batches paid for one message together and each for its own execution, the share would be "
        f"{plain.median(lambda one: _together(one, group)):.0%}; that is computed, not measured."
    )


def _rowless(found: Mapping[tuple[str, int], Rounds], name: str) -> str:
    few = {way: found.get((way, NEXT_TO_NONE)) for way in ("hash", name.lower())}
    if None in few.values():
        return ""
    ours, plain = few[name.lower()], few["hash"]
    assert ours is not None
    assert plain is not None
    return f"; with {NEXT_TO_NONE} rows it takes {ours.execution:.0f} ms instead of {plain.execution:.0f} ms"


def _draw(figure: Any, shown: dict[str, Rounds]) -> None:
    axes = figure.subplots()
    bars(axes, list(shown.values()), list(shown))
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


FIGURE = Figure(
    "prompt-6.2",
    "A micro-batch's time with all techniques",
    "With Prompt, with Prompt+, with PartLy and with all of them, a larger share of a micro-batch's time is execution.",
    run,
)
