"""What was measured on Spark: `make bench-sliding` writes spark.json, and the figures read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.figure import Measured
from experiments.sliding.model import PaperModel, PrintedModel, equation_3
from skewless.chop import BatchModel, Costs

DATA = Path(__file__).parent / "spark.json"
SLOWER = 20
"""Times that a waiting node takes longer than one of the paper's, so that what Spark takes for a job hardly counts.
Rates are shown times that, on the paper's scale."""
MOST = 1000  # windows in a batch, for the equation and for the tuner
TUNER, KEYED = "tuner", "keyed tuner"
"""The streams whose batches were tuned: one without a key, and one with a few."""
LEVEL = "in any order, no node ahead"
"""The merge of results that come in order, whatever the number of nodes: what differs between these is chance."""


@dataclass(frozen=True)
class Spark:
    """All that was measured.

    Parameters
    ----------
    found
        The content of spark.json.
    """

    found: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path = DATA) -> Spark:
        """What is in the file."""
        return cls(json.loads(path.read_text()))

    def split(self) -> dict[str, dict[int, float]]:
        """Seconds of a processor for a row in the split stage, in Python and in the JVM, by way and w/s."""
        return {
            way: {int(ratio): each["python"] + each["jvm"] for ratio, each in ratios.items()}
            for way, ratios in self.found["split"].items()
        }

    def rates(self, part: str) -> dict[str, dict[int, float]]:
        """Rows a second on the paper's scale, by way and nodes; of the paper's cluster ("scale"), or of "apply"."""
        return {
            way: {int(nodes): SLOWER * each["rows"] / each["seconds"] for nodes, each in points.items()}
            for way, points in self.found[part].items()
        }

    def least_waiting(self, part: str) -> float:
        """The least share of a run for which its nodes waited: what is left is Spark."""
        runs = [each for points in self.found[part].values() for each in points.values()]
        return min(float(each["waited"] / each["seconds"]) for each in runs)

    def measured_split(self, way: str) -> str:
        """The way itself, or the largest batch whose split was measured."""
        found = self.found["split"]
        return way if way in found else max((each for each in found if each.startswith("batch")), key=_number)

    def split_share(self, ratio: int) -> dict[str, dict[int, float]]:
        """The share of a core that the split stage would take at the paper's rates, by way and nodes."""
        cost = self.split()
        shares: dict[str, dict[int, float]] = {}
        for way, points in self.rates("scale").items():
            seconds = cost[self.measured_split(way)][ratio]
            shares[way] = {nodes: rate * seconds for nodes, rate in points.items() if nodes > 1 or way == "pane"}
        return shares

    def fixed(self, part: str = TUNER) -> dict[int, float]:
        """Rows a second by batches of fixed sizes."""
        return {int(batch): rate for batch, rate in self.found[part]["fixed"].items()}

    def tuned(self, part: str = TUNER) -> tuple[int, float]:
        """The tuner's last size, and rows a second of the micro-batches that went by it."""
        tuner = self.found[part]
        last = tuner["sizes"][-1]
        since = max((i for i, size in enumerate(tuner["sizes"]) if size != last), default=-1) + 1
        rates = tuner["rows/s"][since + 1 :] or tuner["rows/s"][-1:]  # the first one had windows of the size before
        return last, len(rates) / sum(1 / rate for rate in rates)

    def merge(self) -> dict[str, dict[int, Measured]]:
        """Seconds of a processor for a result in the merge, by ways and nodes."""
        return {
            name: {int(nodes): Measured.of(costs) for nodes, costs in each.items()}
            for name, each in self.found["merge"].items()
        }

    def merge_ratio(self, name: str, nodes: int) -> Measured:
        """What a result costs from so many nodes over what it costs from one, in the same round."""
        many, one = (self.found["merge"][name][str(count)] for count in (nodes, 1))
        return Measured.of([cost / base for cost, base in zip(many, one, strict=True)])

    def together(self) -> dict[int, Measured]:
        """Seconds of a processor for a result, by how many are handed in together."""
        return {int(many): Measured.of(costs) for many, costs in self.found["together"].items()}

    def road(self) -> dict[str, tuple[dict[int, float], float]]:
        """Linear Road's statistics: seconds by numbers of rows, and rows a second by the slope between them, by ways.

        The slope leaves out what a job costs that has hardly any rows.
        """
        points = {way: {int(rows): took for rows, took in each.items()} for way, each in self.found["road"].items()}
        return {way: (each, _slope(each)) for way, each in points.items()}

    def costs(self) -> dict[str, Costs]:
        """What the tuner measured that a row costs, and what it does cost: what the function waits."""
        tuner = self.found[TUNER]
        return {"measured": Costs(**tuner["costs"]), "true": Costs(open_close=0.0, **tuner["true"])}

    def equations(self, costs: Costs) -> dict[str, int]:
        """The batch size by the paper's inequality 3, with these costs and the tuner's rate, by forms of equation 1."""
        tuner = self.found[TUNER]
        exact = BatchModel(
            tuner["size"],
            tuner["slide"],
            tuner["rate"],
            tuner["workers"],
            costs,
            tuner["headroom"],
        )
        forms: dict[str, BatchModel] = {
            "equation 1 as printed": PrintedModel.of(exact),
            "equation 1 for a row": PaperModel.of(exact),
            "exact count of updates": exact,
        }
        return {name: equation_3(each, tuner["latency"], tuner["period"], MOST) for name, each in forms.items()}


def _slope(seconds: Mapping[int, float]) -> float:
    few, many = min(seconds), max(seconds)
    return (many - few) / (seconds[many] - seconds[few])


def _number(way: str) -> int:
    return int(way.removeprefix("batch "))
