"""The half of Figure 7 that was measured on Spark: checks, tables and plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figure import Check, Measured, Scaled, Table
from experiments.picture import lines
from experiments.sliding.calls import Calls
from experiments.sliding.measured import KEYED, LEVEL, SLOWER, TUNER, Spark
from experiments.sliding.model import RATIO
from experiments.sliding.partition import ByBatch
from skewless.chop.tuner import first_batch
from skewless.core.windows import Windows

NODES = (1, 2, 3, 4)
ROW = 1 / 40_000  # seconds of the paper's cheapest row
GIVEN = "by construction"
"""Of points that follow from the costs that went in, so that the claim does not stand with them."""
ROAD_WORKERS, SPARKS_OWN = 2, "Spark's groupBy(window)"
PAPER_SHARES = {"window": 0.12, "batch 50": 0.27}
"""Of a core, for the paper's split: with 4 nodes by window, where it says below, and at most by batches of 50."""


@dataclass(frozen=True)
class OnSpark:
    """What was measured, as parts of a figure.

    Parameters
    ----------
    spark
        What was measured on Spark.
    calls
        What the functions of Linear Road's statistics cost without Spark.
    """

    spark: Spark
    calls: Calls | None = None

    @property
    def tuners(self) -> dict[str, str]:
        """The streams whose batches were tuned, by parts; parts are measured one at a time."""
        names = {TUNER: "without a key", KEYED: "with eight keys"}
        return {part: name for part, name in names.items() if part in self.spark.found}

    def checks(self) -> Iterator[Check]:
        """Of the paper's points, of the split, and of what is chosen and merged."""
        rates, apply = self.spark.rates("scale"), self.spark.rates("apply")
        window, pane = rates["window"], rates["pane"]
        two, ten, more, most = (rates[f"batch {batch}"][4] for batch in (2, 10, 33, 50))
        yield Check("Spark: rows/s by window, 2 nodes over 1", window[2] / window[1], high=0.2)
        yield Check("Spark: rows/s by pane over linear, the least", _over_linear(pane), low=0.85)
        # Nodes wait for costs of which these two points are a multiple: they say what Spark adds, and no more.
        further = (window[4] - window[2]) / 2
        yield Check(f"Spark, {GIVEN}: rows/s by window on two nodes", window[2], 680, 920, essential=False)
        yield Check(f"Spark, {GIVEN}: rows/s by window that a further node adds", further, 340, 460, essential=False)
        yield Check("Spark: gain from B = 2 to 10 on 4 nodes, rows/s", ten - two, low=5_500, high=7_500)
        yield Check("Spark: gain from B = 33 to 50 on 4 nodes, rows/s", most - more, low=900, high=1_500)
        yield Check("Spark: rows/s by `apply` by pane over linear, the least", _over_linear(apply["pane"]), low=0.85)
        shares = self.spark.split_share(RATIO)
        busiest = max(share for way, points in shares.items() if way != "pane" for share in points.values())
        yield Check("Spark: share of a core of the split by window and by batch, the most", busiest, high=0.3)
        yield self._split_check()
        for part, name in self.tuners.items():
            gain = self.spark.tuned(part)[1] / max(self.spark.fixed(part).values())
            yield Check(f"Spark: rows/s of the tuner over those of the best fixed B, {name}", gain, 0.85)
        yield from self._merge_checks()
        yield from self._road_checks()

    def _split_check(self) -> Check:
        """Whether the split is busier by batches of 50 than by window, as it is where a row costs more than a copy."""
        ways = {"window": 1, "batch 50": 50}
        copies = {way: ByBatch(RATIO, 1, batch).replication for way, batch in ways.items()}
        rates = {way: self.spark.rates("scale")[way][4] for way in ways}
        shares = {way: self.spark.split_share(RATIO)[way][4] for way in ways}
        row, copy = _row_and_copy([(rates[way], rates[way] * copies[way], 1e6 * PAPER_SHARES[way]) for way in ways])
        took = {way: 1e6 * each[RATIO] for way, each in self.spark.split().items()}
        thousands = {way: rates[way] * copies[way] / 1e3 for way in ways}
        return Check(
            "Spark: share of a core of the split on 4 nodes, batch 50 over window",
            shares["batch 50"] / shares["window"],
            low=1.0,
            essential=False,
            why=f"The paper has {PAPER_SHARES['batch 50']:.0%} and under {PAPER_SHARES['window']:.0%}. At the rows/s "
            f"measured here, {row:.1f} us a row and {copy:.2f} us a copy would make such shares: batches of 50 have "
            f"{rates['batch 50'] / rates['window']:.0f} times the rows. The split measured here takes "
            f"{took['window']:.2f} us for a row with its {copies['window']:.0f} copies by window, "
            f"{took['batch 50']:.2f} us for one with {copies['batch 50']:.2f} by batch, and {took['pane']:.2f} us for "
            f"one with a single copy by pane. That is {took['window'] / copies['window']:.2f}, "
            f"{took['batch 50'] / copies['batch 50']:.2f} and {took['pane']:.2f} us a copy: the row itself costs "
            f"next to nothing, and the share goes by copies, {thousands['window']:.0f} thousand a second by window and "
            f"{thousands['batch 50']:.0f} by batch.",
        )

    def _merge_checks(self) -> Iterator[Check]:
        """What a merge costs, and whether more nodes change that by more than rounds differ."""
        merge, handed = self.spark.merge(), self.spark.together()
        dearest = max(each.mean for points in merge.values() for each in points.values())
        yield Check("merge of a result over the paper's cheapest row, the most", dearest / ROW, high=1.0)
        most = max(merge[LEVEL])
        free, ordered, level = (self.spark.merge_ratio(name, most) for name in ("in any order", "in order", LEVEL))
        yield Check(
            f"merge in any order, {most} nodes over 1, and twice its standard error more",
            free.mean + 2 * free.error,
            high=1.0,
            essential=False,
            why="In the paper more nodes mean more results in a scheduling step, and that makes one of them cheaper. "
            f"Here 1,000 are handed in at a time however many nodes there are. With {most} nodes a result takes "
            f"{_micro(handed[1])} us handed in alone and {_micro(handed[1000])} us as one of 1,000. At 1,000 the ratio "
            f"is {_spread(free)}; with nodes that are never ahead of each other, where both have the same results in "
            f"the same order, it is {_spread(level)}. So results that come further out of order are dearer to merge.",
        )
        gain = handed[1000].mean / handed[1].mean
        yield Check("merge in any order, 1,000 results at a time over one", gain, high=1.0, essential=False)
        yield Check(
            f"merge in order, {most} nodes over 1, and twice its standard error less",
            ordered.mean - 2 * ordered.error,
            low=1.0,
            high=1.5,
            essential=False,
            why=f"The ratio is {_spread(ordered)}; with nodes that are never ahead of each other, where both have the "
            f"same results in the same order, it is {_spread(level)}.",
        )

    def _road_checks(self) -> Iterator[Check]:
        """Whether `apply` is worth it for functions that do no more than Spark's own aggregates, and in which order."""
        rates = self._road_rates()
        best = max(rate for way, rate in rates.items() if way.startswith("apply"))
        name = "Linear Road: rows/s of the best of `apply`'s ways over Spark's own groupBy(window)"
        yield Check(name, best / rates[SPARKS_OWN], low=1.0)
        window, batch, pane = (rates[f"apply by {way}"] for way in ("window", "batch", "pane"))
        yield Check(
            "Linear Road: rows/s of `apply` by batch over by window",
            batch / window,
            low=1.0,
            essential=False,
            why=f"With {ROAD_WORKERS} workers `apply` chooses batches of {_road_batch()} window: by any small batch "
            "each worker needs all rows. So both are the same plan, functions and rows, and the ratio is what one "
            "measurement differs from another: rates of Linear Road are not known better than that.",
        )
        yield Check(
            "Linear Road: rows/s of `apply` by pane over by batch",
            pane / batch,
            low=1.0,
            essential=False,
            why="By pane there is a call for every few rows, besides one for each window. " + self._road_calls(),
        )

    def _road_rates(self) -> dict[str, float]:
        return {way: rate for way, (_seconds, rate) in self.spark.road().items()}

    def _road_calls(self) -> str:
        """What is called by window and by pane, in words."""
        if self.calls is None:
            return ""
        window, pane, merge = self.calls.window, self.calls.pane, self.calls.merge
        rates = self._road_rates()
        apart = {way: 1e6 * ROAD_WORKERS / rates[f"apply by {way}"] for way in ("window", "pane")}
        return (
            f"Without Spark a call takes {1e6 * window.seconds:.0f} us for a window of {window.given:.0f} rows, "
            f"{1e6 * pane.seconds:.0f} us for a pane of {pane.given:.1f}, whose answer is pickled, and "
            f"{1e6 * merge.seconds:.0f} us for the {merge.given:.0f} answers of a window's panes. For a row of the "
            f"stream there are {window.calls:.2f} windows and {pane.calls:.2f} panes, so the functions take "
            f"{1e6 * window.of_row:.0f} us a row by window and {1e6 * (pane.of_row + merge.of_row):.0f} by pane. On "
            f"Spark a row took {apart['window']:.0f} us of two cores together by window and {apart['pane']:.0f} by "
            "pane."
        )

    def setup(self) -> Iterator[Scaled]:
        """What was run."""
        waiting, runs = self.spark.least_waiting("scale"), self.spark.found["scale"]
        counts = [each["rows"] for points in runs.values() for each in points.values()]
        least, most, few = min(counts), max(counts), runs["window"]["2"]["rows"]
        yield Scaled(
            "cluster on Spark",
            "a machine for the split and for each node",
            f"tasks of one process; nodes wait for the costs above times {SLOWER}, since two cores cannot hold four "
            f"busy nodes; rates are shown times {SLOWER}. By these costs, at least {waiting:.0%} of every run is "
            "waiting, so the checks say how little Spark adds to the paper's costs, not what rows cost on Spark",
        )
        yield Scaled(
            "queries on Spark",
            "count, min, max, avg of position reports",
            "the same over Linear Road's speeds, slide 1 row (panes: 10), windows checked against Spark's own; "
            f"{least:,} to {most:,} rows a run, by window on two nodes {few:,}",
        )

        if self.tuners:
            yield Scaled(
                "batches of windows on Spark",
                "no micro-batches",
                "400 windows end in a micro-batch. Batches of fixed sizes are counted from another window than these, "
                "so that micro-batches cut them; those of the tuner begin where its change takes effect, and may fit",
            )

    def said(self) -> str:
        """What was found, in a sentence."""
        rates, share = self.spark.rates("scale"), self.spark.split_share(RATIO)
        tuned = ""
        for part, name in self.tuners.items():
            size, rate = self.spark.tuned(part)
            best = max(self.spark.fixed(part).values())
            tuned += f" {name.capitalize()} the tuner ends at B = {size}, with {rate / best:.2f} of the best fixed B's."
        rows = self._road_rates()
        road = {way: f"{rate / 1e3:,.0f} k" for way, rate in rows.items()}
        turned = rows["apply by window"] > rows["apply by batch"] > rows["apply by pane"]
        order = " That is the paper's order turned round." if turned else ""
        return (
            f"On Spark by pane {rates['pane'][1]:,.0f} on one node and {rates['pane'][4]:,.0f} on four; by window "
            f"{rates['window'][1]:,.0f}, {rates['window'][2]:,.0f} on two and {rates['window'][4]:,.0f} on four; the "
            f"split by window takes {share['window'][2]:.1%} of a core on two nodes; `apply`, which copies a row once "
            f"to each worker, does {self.spark.rates('apply')['window'][4]:,.0f} by window on four.{tuned} "
            "Of Linear Road's statistics, which are work and no waiting, `apply` does "
            f"{road['apply by window']} rows/s by window, {road['apply by batch']} by batch and "
            f"{road['apply by pane']} by pane, and Spark's own groupBy(window) {road[SPARKS_OWN]}.{order}"
        )

    def tables(self) -> Iterator[Table]:
        """The numbers."""
        rates, apply, share = self.spark.rates("scale"), self.spark.rates("apply"), self.spark.split_share(RATIO)
        yield Table(
            f"Rows/s on Spark, the paper's split: a copy for every window or batch; times {SLOWER}",
            ("nodes", *rates),
            tuple((n, *(each.get(n, "") for each in rates.values())) for n in NODES),
        )
        yield Table(
            f"Rows/s on Spark, `apply` of windows of rows without a key: a copy for every worker; times {SLOWER}",
            ("workers", *apply),
            tuple((n, *(each[n] for each in apply.values())) for n in apply["pane"]),
        )
        yield Table(
            f"Share of a core that the split stage takes at these rates{self._nearest_split(share)}",
            ("nodes", *share),
            tuple((n, *(each.get(n, "") for each in share.values())) for n in NODES),
        )
        yield from self._sizes()
        merge, handed = self.spark.merge(), self.spark.together()
        yield Table(
            "Merge on the driver, us of a processor for a result, 1,000 handed in at a time",
            ("nodes that results come from", *merge),
            tuple((nodes, *(_in_micro(each[nodes]) for each in merge.values())) for nodes in merge["in order"]),
        )
        yield Table(
            "Merge in any order of 16 nodes, us of a processor for a result",
            ("results handed in at a time", "us"),
            tuple((many, _in_micro(cost)) for many, cost in handed.items()),
        )
        road = self.spark.road()
        counts = list(next(iter(road.values()))[0])
        yield Table(
            "Linear Road's count, min, max and avg for each expressway, direction and segment, w/s = 100, on two "
            "cores; rows/s are the slope between the two numbers of rows",
            ("", *(f"{rows:,} rows, s" for rows in counts), "rows/s"),
            tuple((way, *seconds.values(), rate) for way, (seconds, rate) in road.items()),
        )
        if self.calls is not None:
            parts = {"window, of its rows": self.calls.window, "pane, of its rows": self.calls.pane}
            parts["window, of the answers for its panes"] = self.calls.merge
            yield Table(
                "Calls of Linear Road's statistics without Spark, us of a processor",
                ("a call for each", "calls for a row", "rows or answers of a call", "us a call", "us a row"),
                tuple(
                    (name, each.calls, each.given, 1e6 * each.seconds, 1e6 * each.of_row)
                    for name, each in parts.items()
                ),
            )

    def _nearest_split(self, ways: Iterable[str]) -> str:
        other = {way: used for way in ways if (used := self.spark.measured_split(way)) != way}
        return "".join(f"; for {way} what {used} takes" for way, used in other.items())

    def _sizes(self) -> Iterator[Table]:
        for part, name in self.tuners.items():
            fixed = self.spark.fixed(part)
            yield Table(
                f"Batches of fixed sizes on Spark, 4 workers, {name}, rows/s",
                ("B", *(str(batch) for batch in fixed)),
                (("rows/s", *fixed.values()),),
            )
        if TUNER not in self.tuners:
            return
        fixed, costs = self.spark.fixed(), self.spark.costs()
        tuned = {name: (self.spark.tuned(part), self.spark.fixed(part)) for part, name in self.tuners.items()}
        yield Table(
            "The tuner on Spark, and B by the paper's inequality 3 with the rate that the tuner measured",
            ("", "B", "rows/s", "of the best fixed B"),
            (
                *(
                    (f"the tuner, {name}", size, rate, rate / max(those.values()))
                    for name, ((size, rate), those) in tuned.items()
                ),
                *(
                    (f"inequality 3, {form}, {kind} costs, without a key", batch, *_nearest(fixed, batch))
                    for kind, each in costs.items()
                    for form, batch in self.spark.equations(each).items()
                ),
            ),
        )
        yield Table(
            "Costs as the tuner measured them without a key, and true ones, which the function waits; us",
            ("", "a window that a row updates", "anything else of a row"),
            tuple((kind, 1e6 * each.update, 1e6 * each.other) for kind, each in costs.items()),
        )

    def draw(self, axes: Any) -> None:
        """Plots into the first one, and into the four after the second."""
        rates, apply = self.spark.rates("scale"), self.spark.rates("apply")
        for number, (name, points) in enumerate((("Spark", rates["pane"]), ("`apply`", apply["pane"])), 1):
            axes[0, 0].plot(
                list(points), list(points.values()), label=name, marker="s^"[number - 1], color=f"C{number}"
            )
        for number, (way, points) in enumerate(rates.items(), 1):
            if way != "pane":
                axes[1, 0].plot(list(points), list(points.values()), label=way, color=f"C{number}", marker="o")
        axes[1, 0].plot(
            list(apply["window"]), list(apply["window"].values()), "k--", label="window, `apply`", marker="x"
        )
        _named(axes[1, 0], "b on Spark", "nodes", "rows/s")
        for number, (way, each) in enumerate(self.spark.split_share(RATIO).items(), 1):
            axes[1, 1].plot(list(each), list(each.values()), label=way, color=f"C{number}", marker="o")
        _named(axes[1, 1], "the split's share of a core", "nodes", "")
        axes[1, 1].yaxis.set_major_formatter("{x:.3f}")
        self._draw_sizes(axes[2, 0])
        merge = self.spark.merge()
        micro = {name: [1e6 * cost.mean for cost in each.values()] for name, each in merge.items()}
        lines(axes[2, 1], list(merge["in order"]), micro, x="nodes", y="us a result", title="the merge")
        axes[2, 1].set_ylim(bottom=0)

    def _draw_sizes(self, axes: Any) -> None:
        if not self.tuners:
            axes.set_axis_off()
            return
        for number, (part, name) in enumerate(self.tuners.items()):
            fixed, (size, rate) = self.spark.fixed(part), self.spark.tuned(part)
            color = f"C{number}"
            axes.plot(list(fixed), list(fixed.values()), label=f"fixed, {name}", color=color, marker="o")
            axes.plot([size], [rate], "*", label=f"the tuner, {name}", color=color, markersize=11)
        _named(axes, "the batch size", "B", "rows/s")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)


def _road_batch() -> int:
    """The batch size that `apply` chose for Linear Road."""
    return first_batch(Windows.of(f"{RATIO} seconds", "1 second"), ROAD_WORKERS)


def _row_and_copy(points: list[tuple[float, float, float]]) -> tuple[float, float]:
    """What a row and what a copy costs, from two points with numbers of rows and of copies and their cost together.

    >>> _row_and_copy([(1, 100, 102), (1, 3, 5)])
    (2.0, 1.0)
    """
    row, copy = np.linalg.solve([point[:2] for point in points], [point[2] for point in points]).tolist()
    return round(row, 9), round(copy, 9)


def _micro(seconds: Measured) -> str:
    return f"{1e6 * seconds.mean:.2f}"


def _in_micro(seconds: Measured) -> Measured:
    return Measured(1e6 * seconds.mean, 1e6 * seconds.error)


def _spread(ratio: Measured) -> str:
    return f"{ratio.mean:.3f} with a standard error of {ratio.error:.3f}"


def _over_linear(points: dict[int, float]) -> float:
    """The least share of what as many nodes, each as fast as one alone, would do."""
    return min(rate / (nodes * points[1]) for nodes, rate in points.items())


def _nearest(fixed: dict[int, float], batch: int) -> tuple[str, str]:
    """Rows/s of the fixed size that is nearest, and the share of the best."""
    near = min(fixed, key=lambda size: abs(size - batch))
    words = "" if near == batch else f" at B = {near}"
    return f"{fixed[near]:,.0f}{words}", f"{fixed[near] / max(fixed.values()):.2f}{words}"


def _named(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
