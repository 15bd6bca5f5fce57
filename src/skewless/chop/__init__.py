"""Splits time instead of keys: windows, batches of windows and panes, for functions that need all rows of a window."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skewless.chop.cost import BatchModel, Costs
    from skewless.chop.estimate import CostEstimator
    from skewless.chop.merge import Merger, Result, disorder
    from skewless.chop.partition import ByBatch, ByPane, ByWindow, Partitioner
    from skewless.chop.ring import PaneRing
    from skewless.chop.tuner import Choice, Tuner, choose
    from skewless.core.windows import Marks, Windows

# Loaded on first use: Spark's Python workers do not need the kernels of the partitioners.
_HOMES = {
    "skewless.chop.cost": ["BatchModel", "Costs"],
    "skewless.chop.estimate": ["CostEstimator"],
    "skewless.chop.merge": ["Merger", "Result", "disorder"],
    "skewless.chop.partition": ["ByBatch", "ByPane", "ByWindow", "Partitioner"],
    "skewless.chop.ring": ["PaneRing"],
    "skewless.chop.tuner": ["Choice", "Tuner", "choose"],
    "skewless.core.windows": ["Marks", "Windows"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [
    "BatchModel",
    "ByBatch",
    "ByPane",
    "ByWindow",
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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'skewless.chop' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
