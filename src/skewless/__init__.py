"""skewless keeps keyed streams balanced: which worker gets this row?"""

# ruff: noqa: A004
# Aggregates carry the names that SQL and Spark gave them, and are meant to be used as `sk.sum`.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skewless import aggregate, chop, hashing, metrics, place, sketch, split, workload
    from skewless.aggregate import (
        Aggregate,
        collect,
        count,
        distinct,
        first,
        last,
        max,
        mean,
        min,
        quantile,
        std,
        sum,
        top,
        var,
    )
    from skewless.api.keyed import KeyedStream, keyed, windowed
    from skewless.api.windowed import WindowedStream
    from skewless.chop import rows
    from skewless.control.placing import Rule
    from skewless.core.counts import Counts
    from skewless.core.errors import SkewlessError
    from skewless.core.policy import Policy
    from skewless.core.ring import Ring
    from skewless.operators.process import Processor, Rows, SlotProcessor, State
    from skewless.spark.ordered import Ordered, ordered
    from skewless.spark.session import configure, session

__version__ = "0.5.0"

__all__ = [
    "Aggregate",
    "Counts",
    "KeyedStream",
    "Ordered",
    "Policy",
    "Processor",
    "Ring",
    "Rows",
    "Rule",
    "SkewlessError",
    "SlotProcessor",
    "State",
    "WindowedStream",
    "aggregate",
    "chop",
    "collect",
    "configure",
    "count",
    "distinct",
    "first",
    "hashing",
    "keyed",
    "last",
    "max",
    "mean",
    "metrics",
    "min",
    "ordered",
    "place",
    "quantile",
    "rows",
    "session",
    "sketch",
    "split",
    "std",
    "sum",
    "top",
    "var",
    "windowed",
    "workload",
]

# Loaded when asked for: Spark's Python workers start sooner, and pyspark is only for those who use it.
_AGGREGATES = "Aggregate collect count distinct first last max mean min quantile std sum top var"
_HOMES = {
    "skewless.aggregate": _AGGREGATES.split(),
    "skewless.chop": ["rows"],
    "skewless.core.errors": ["SkewlessError"],
    "skewless.core.counts": ["Counts"],
    "skewless.operators.process": ["Processor", "Rows", "SlotProcessor", "State"],
    "skewless.core.policy": ["Policy"],
    "skewless.core.ring": ["Ring"],
    "skewless.spark.ordered": ["Ordered", "ordered"],
    "skewless.control.placing": ["Rule"],
    "skewless.spark.session": ["configure", "session"],
    "skewless.api.keyed": ["KeyedStream", "keyed", "windowed"],
    "skewless.api.windowed": ["WindowedStream"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {"aggregate", "chop", "hashing", "metrics", "place", "sketch", "split", "workload"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"skewless.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'skewless' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
