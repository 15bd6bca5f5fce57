"""Time cut, not keys: windows, batches of windows and panes, for functions that need all rows of a window."""

from skewless.chop.changing import ChangingBatches
from skewless.chop.cost import BatchModel, Costs
from skewless.chop.estimate import CostEstimator
from skewless.chop.order import Merger, Result, disorder
from skewless.chop.partition import ByBatch, ByPane, ByWindow, Partitioner
from skewless.chop.ring import PaneRing
from skewless.chop.tuner import Choice, Tuner, choose
from skewless.chop.windows import Marks, Windows

__all__ = [
    "BatchModel",
    "ByBatch",
    "ByPane",
    "ByWindow",
    "ChangingBatches",
    "Choice",
    "CostEstimator",
    "Costs",
    "Marks",
    "Merger",
    "PaneRing",
    "Partitioner",
    "Result",
    "Tuner",
    "Windows",
    "choose",
    "disorder",
]
