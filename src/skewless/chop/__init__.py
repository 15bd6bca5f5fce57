"""Splits time instead of keys: windows, batches of windows and panes, for functions that need all rows of a window."""

from skewless.chop.cost import BatchModel, Costs
from skewless.chop.estimate import CostEstimator
from skewless.chop.merge import Merger, Result, disorder
from skewless.chop.ring import PaneRing
from skewless.chop.tuner import Choice, Tuner, choose
from skewless.core.windows import Windows

__all__ = [
    "BatchModel",
    "Choice",
    "CostEstimator",
    "Costs",
    "Merger",
    "PaneRing",
    "Result",
    "Tuner",
    "Windows",
    "choose",
    "disorder",
]
