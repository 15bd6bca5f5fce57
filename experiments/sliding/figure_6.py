"""Sliding windows, Figure 6: what the split stage costs, against how much windows overlap."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines
from experiments.sliding.measured import Spark
from experiments.sliding.split import ROAD, partitioners, speeds

ROWS: dict[Scale, int] = {"small": 200_000, "full": 1_000_000}
REPEATS: dict[Scale, int] = {"small": 5, "full": 25}
RATIOS = (1, 10, 30, 100, 300, 1000)
BATCHES = (2, 5, 10)
NAMES = tuple(partitioners(1, BATCHES))


def run(scale: Scale, tell: Tell) -> Outcome:
    """Measure how many rows one core deals in a second, by every partitioner and ratio, beside Spark."""
    shapes = {(ratio, name): each for ratio in RATIOS for name, each in partitioners(ratio, BATCHES).items()}
    found = speeds(ROAD.take(ROWS[scale]), shapes, REPEATS[scale], tell)
    rows = {name: [found[ratio, name] for ratio in RATIOS] for name in NAMES}
    measured = Spark.read().split()
    spark = {name: [1 / measured[name][ratio] for ratio in RATIOS] for name in NAMES}
    last, far = ({name: each[name][-1] for name in NAMES} for each in (rows, spark))
    checks = (
        *_checks(rows, ""),
        Check("rows/s by batch of 2 over by window, w/s = 1000", last["batch 2"] / last["window"], low=1.5, high=2.5),
        Check("rows/s by batch of 10 over by window, w/s = 1000", last["batch 10"] / last["window"], low=6, high=12),
        Check("rows/s by pane over by batch of 10, w/s = 1000", last["pane"] / last["batch 10"], low=10),
        *_checks(spark, "Spark: "),
        Check("Spark: rows/s by batch of 2 over by window, w/s = 1000", far["batch 2"] / far["window"], 1.5, 2.5),
        Check("Spark: rows/s by batch of 10 over by window, w/s = 1000", far["batch 10"] / far["window"], 6, 12),
        Check("Spark: rows/s by pane over by batch of 10, w/s = 1000", far["pane"] / far["batch 10"], low=10),
    )
    return Outcome(
        (
            Scaled("stream", "Linear Road", "Linear Road, a thousand reports a second, slide 1 s"),
            Scaled("rows", "not said", f"up to {ROWS[scale]:,} a measurement, best of {REPEATS[scale]}"),
            Scaled("w/s", "a curve without numbers in the text", f"{RATIOS[0]} to {RATIOS[-1]}"),
            Scaled("batch sizes B", "2, 5, 10", "2, 5, 10"),
            Scaled(
                "split stage", "a node of Borealis", "one core: partition and worker of every copy, two columns copied"
            ),
            Scaled(
                "split stage on Spark",
                "until a node is saturated",
                "one task: a copy of every row for every partition, packed and shuffled to 16 nodes; rows in a second "
                f"of a processor, in Python plus in the JVM's thread (`make bench-sliding`){_cold(spark['window'])}",
            ),
        ),
        f"From w/s = 10 to 1000 the split by pane goes from {rows['pane'][1] / 1e6:.0f} to {last['pane'] / 1e6:.0f} M "
        f"rows/s, by batch of 10 from {rows['batch 10'][1] / 1e6:.1f} to {last['batch 10'] / 1e6:.2f} and by window "
        f"from {rows['window'][1] / 1e6:.1f} to {last['window'] / 1e6:.2f}; on Spark by pane from "
        f"{spark['pane'][1] / 1e3:,.0f} to {far['pane'] / 1e3:,.0f} k rows/s, by batch of 10 from "
        f"{spark['batch 10'][1] / 1e3:,.0f} to {far['batch 10'] / 1e3:,.1f} and by window from "
        f"{spark['window'][1] / 1e3:,.0f} to {far['window'] / 1e3:,.2f}.",
        checks,
        (
            Table(
                "M rows in a second of one core",
                ("w/s", *NAMES),
                tuple((ratio, *(rows[name][i] / 1e6 for name in NAMES)) for i, ratio in enumerate(RATIOS)),
            ),
            Table(
                "On Spark, k rows in a second of a processor",
                ("w/s", *NAMES),
                tuple((ratio, *(spark[name][i] / 1e3 for name in NAMES)) for i, ratio in enumerate(RATIOS)),
            ),
        ),
        lambda figure: _draw(figure, rows, spark),
    )


def _checks(rows: dict[str, list[float]], where: str) -> Iterator[Check]:
    """That panes do not depend on overlap, that the others cost in proportion, and that windows cost the most."""
    overlap = rows["pane"][1:]
    yield Check(
        f"{where}rows/s by pane from w/s = 10 on, the most over the least", max(overlap) / min(overlap), high=1.4
    )
    for name in NAMES[:-1]:
        power = _power(rows[name])
        yield Check(f"{where}cost of a row by {name}, its power of w/s from 100 to 1000", power, low=0.8, high=1.15)
    yield Check(
        f"{where}rows/s by window over those of every other from w/s = 10 on, the most",
        max(rows["window"][i] / rows[name][i] for name in NAMES[1:] for i in range(1, len(RATIOS))),
        high=0.8,
    )


def _cold(window: list[float]) -> str:
    """Whether the point that is measured first is a bad one: one copy cannot cost less than a tenth of ten."""
    if window[0] <= RATIOS[1] * window[1]:
        return ""
    return (
        f". The first point, by window at w/s = 1, is more than {RATIOS[1]} times as fast as that at {RATIOS[1]}: it "
        "was measured while the JVM was cold, and is too fast"
    )


def _power(rows: list[float]) -> float:
    return log10(rows[RATIOS.index(100)] / rows[-1])


def _draw(figure: Any, rows: dict[str, list[float]], spark: dict[str, list[float]]) -> None:
    left, right = figure.subplots(1, 2)
    for axes, each, title in ((left, rows, "the partitioner alone"), (right, spark, "the split stage on Spark")):
        lines(axes, RATIOS, each, x="w/s", y="rows/s of one core" if axes is left else "", title=title)
        axes.set_xscale("log")
        axes.set_yscale("log")
    legend(figure, left)


FIGURE = Figure(
    "sliding-6",
    "Throughput of the split stage",
    "The split by pane does not depend on how much windows overlap; the cost of the others rises in proportion to it, "
    "most by window, and less the larger the batch.",
    run,
)
