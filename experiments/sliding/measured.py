"""What was measured on Spark: `make bench-sliding` writes spark.json, and the figures read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.sliding.model import PaperModel, PrintedModel, equation_3
from skewless.chop import BatchModel, Costs

DATA = Path(__file__).parent / "spark.json"
SLOWER = 20
"""Times that a waiting node takes longer than one of the paper's, so that what Spark takes for a job hardly counts.
Rates are shown times that, on the paper's scale."""
MOST = 1000  # windows in a batch, for the equation and for the tuner


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

    def fixed(self) -> dict[int, float]:
        """Rows a second by batches of fixed sizes."""
        return {int(batch): rate for batch, rate in self.found["tuner"]["fixed"].items()}

    def tuned(self) -> tuple[int, float]:
        """The tuner's last size, and rows a second of the micro-batches that went by it."""
        tuner = self.found["tuner"]
        last = tuner["sizes"][-1]
        since = max((i for i, size in enumerate(tuner["sizes"]) if size != last), default=-1) + 1
        rates = tuner["rows/s"][since + 1 :] or tuner["rows/s"][-1:]  # the first one had windows of the size before
        return last, len(rates) / sum(1 / rate for rate in rates)

    def costs(self) -> dict[str, Costs]:
        """What the tuner measured that a row costs, and what it does cost: what the function waits."""
        tuner = self.found["tuner"]
        return {"measured": Costs(**tuner["costs"]), "true": Costs(open_close=0.0, **tuner["true"])}

    def equations(self, costs: Costs) -> dict[str, int]:
        """The batch size by the paper's inequality 3, with these costs and the tuner's rate, by forms of equation 1."""
        tuner = self.found["tuner"]
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


def _number(way: str) -> int:
    return int(way.removeprefix("batch "))
