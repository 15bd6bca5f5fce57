"""The half of Figure 7 that was measured on Spark: checks, tables and plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from experiments.figure import Check, Scaled, Table
from experiments.picture import lines
from experiments.sliding.measured import SLOWER, Spark
from experiments.sliding.model import RATIO

NODES = (1, 2, 3, 4)
ROW = 1 / 40_000  # seconds of the paper's cheapest row


@dataclass(frozen=True)
class OnSpark:
    """What was measured, as parts of a figure."""

    spark: Spark

    @property
    def tuner(self) -> bool:
        """Whether the tuner was measured; parts are measured one at a time."""
        return "tuner" in self.spark.found

    def checks(self) -> Iterator[Check]:
        """Of the paper's points, of the split, and of what is chosen and merged."""
        rates, apply = self.spark.rates("scale"), self.spark.rates("apply")
        window, pane = rates["window"], rates["pane"]
        two, ten, more, most = (rates[f"batch {batch}"][4] for batch in (2, 10, 33, 50))
        yield Check("Spark: rows/s by window, 2 nodes over 1", window[2] / window[1], high=0.2)
        yield Check("Spark: rows/s by pane over linear, the least", _over_linear(pane), low=0.85)
        yield Check("Spark: rows/s by window on two nodes", window[2], low=680, high=920)
        yield Check("Spark: rows/s by window that a further node adds", (window[4] - window[2]) / 2, low=340, high=460)
        yield Check("Spark: gain from B = 2 to 10 on 4 nodes, rows/s", ten - two, low=5_500, high=7_500)
        yield Check("Spark: gain from B = 33 to 50 on 4 nodes, rows/s", most - more, low=900, high=1_500)
        yield Check("Spark: rows/s by `apply` by pane over linear, the least", _over_linear(apply["pane"]), low=0.85)
        shares = self.spark.split_share(RATIO)
        busiest = max(share for way, points in shares.items() if way != "pane" for share in points.values())
        yield Check("Spark: share of a core of the split by window and by batch, the most", busiest, high=0.3)
        if self.tuner:
            gain = self.spark.tuned()[1] / max(self.spark.fixed().values())
            name = "Spark: rows/s of the tuner over those of the best fixed B"
            yield Check(name, gain, low=0.85, essential=False, why=self._why_slower())
        merge = self.spark.found["merge"]
        dearest = max(seconds for each in merge.values() for seconds in each.values())
        yield Check("merge of a result over the paper's cheapest row, the most", dearest / ROW, high=1.0)
        ordered, unordered = ([each[str(n)] for n in (1, 16)] for each in (merge["in order"], merge["in any order"]))
        handed = self.spark.found["together"]
        yield Check(
            "merge in any order, 16 nodes over 1",
            unordered[1] / unordered[0],
            high=1.05,
            essential=False,
            why="In the paper more nodes mean more results in a scheduling step, and that makes one of them cheaper. "
            f"Here a micro-batch hands in 1,000 however many nodes there are. With 16 nodes a result takes "
            f"{1e6 * handed['1']:.2f} us handed in alone and {1e6 * handed['1000']:.2f} us as one of 1,000.",
        )
        gain = handed["1000"] / handed["1"]
        yield Check("merge in any order, 1,000 results at a time over one", gain, high=1.0, essential=False)
        yield Check("merge in order, 16 nodes over 1", ordered[1] / ordered[0], low=1.0, high=1.5, essential=False)

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

    def said(self) -> str:
        """What was found, in a sentence."""
        rates, share = self.spark.rates("scale"), self.spark.split_share(RATIO)
        tuned = ""
        if self.tuner:
            size, rate = self.spark.tuned()
            best = max(self.spark.fixed().values())
            tuned = f" The tuner ends at B = {size} with {rate / best:.2f} of the best fixed size's rows/s."
        return (
            f"On Spark by pane {rates['pane'][1]:,.0f} on one node and {rates['pane'][4]:,.0f} on four; by window "
            f"{rates['window'][1]:,.0f}, {rates['window'][2]:,.0f} on two and {rates['window'][4]:,.0f} on four; the "
            f"split by window takes {share['window'][2]:.1%} of a core on two nodes; `apply`, which copies a row once "
            f"to each worker, does {self.spark.rates('apply')['window'][4]:,.0f} by window on four.{tuned}"
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
        if self.tuner:
            yield from self._sizes()
        merge = self.spark.found["merge"]
        yield Table(
            "Merge on the driver, us of a processor for a result",
            ("nodes that results come from", *merge),
            tuple((int(n), *(1e6 * each[n] for each in merge.values())) for n in merge["in order"]),
        )
        road = self.spark.found["road"]
        yield Table(
            "Linear Road's count, min, max and avg for each expressway and direction, w/s = 100, on two cores, rows/s",
            tuple(road),
            (tuple(road.values()),),
        )

    def _nearest_split(self, ways: Iterable[str]) -> str:
        other = {way: used for way in ways if (used := self.spark.measured_split(way)) != way}
        return "".join(f"; for {way} what {used} takes" for way, used in other.items())

    def _why_slower(self) -> str:
        """What the tuner does not know, and the run that shows it."""
        why = (
            "The model takes it that batches come one after the other without end. A micro-batch of Spark ends, and "
            "this one, without a key, has 400 windows: at B = 100 each of 4 workers has one, at more some have none."
        )
        fixed, (size, _rate) = self.spark.fixed(), self.spark.tuned()
        best = max(fixed, key=lambda batch: fixed[batch])
        longer = {int(batch): rate for batch, rate in self.spark.found.get("longer", {}).items()}
        if best not in longer or size not in longer:
            return f"{why} It was not measured in longer micro-batches."
        return (
            f"{why} In micro-batches of 1,600 windows the tuner's B = {size} does {longer[size]:,.0f} rows/s, which is "
            f"{longer[size] / longer[best]:.2f} of what B = {best} does there ({longer[best]:,.0f})."
        )

    def _sizes(self) -> Iterator[Table]:
        fixed, (size, rate), costs = self.spark.fixed(), self.spark.tuned(), self.spark.costs()
        yield Table(
            "Batches of fixed sizes on Spark, 4 workers, rows/s",
            ("B", *(str(batch) for batch in fixed)),
            (("rows/s", *fixed.values()),),
        )
        yield Table(
            "The tuner on Spark, and B by the paper's inequality 3 with the rate that the tuner measured",
            ("", "B", "rows/s", "of the best fixed B"),
            (
                ("the tuner", size, rate, rate / max(fixed.values())),
                *(
                    (f"inequality 3, {form}, {kind} costs", batch, *_nearest(fixed, batch))
                    for kind, each in costs.items()
                    for form, batch in self.spark.equations(each).items()
                ),
            ),
        )
        yield Table(
            "Costs as the tuner measured them, and true ones, which the function waits; us",
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
        self._draw_sizes(axes[2, 0])
        merge = self.spark.found["merge"]
        micro = {name: [1e6 * seconds for seconds in each.values()] for name, each in merge.items()}
        lines(axes[2, 1], list(map(int, merge["in order"])), micro, x="nodes", y="us a result", title="the merge")
        axes[2, 1].set_ylim(bottom=0)

    def _draw_sizes(self, axes: Any) -> None:
        if not self.tuner:
            axes.set_axis_off()
            return
        fixed, (size, rate) = self.spark.fixed(), self.spark.tuned()
        lines(axes, list(fixed), {"fixed": list(fixed.values())}, x="B", y="rows/s", title="the batch size")
        axes.plot([size], [rate], "r*", label="the tuner", markersize=8)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)


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
