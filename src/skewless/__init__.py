"""skewless keeps keyed streams balanced: which worker gets this row?"""

# ruff: noqa: A004
# Aggregates carry the names that SQL and Spark gave them, and are meant to be used as `sk.sum`.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skewless import chop, elastic, metrics, place, split, workload
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
    from skewless.api.keyed import keyed
    from skewless.api.ordered import ordered
    from skewless.api.watch import watch
    from skewless.api.windowed import windowed
    from skewless.core.errors import SkewlessError
    from skewless.operators.process import Processor, Rows, SlotProcessor, State
    from skewless.spark.session import configure, session

__version__ = "0.6.0.dev0"

__all__ = [
    "Aggregate",
    "Processor",
    "Rows",
    "SkewlessError",
    "SlotProcessor",
    "State",
    "chop",
    "collect",
    "configure",
    "count",
    "distinct",
    "elastic",
    "first",
    "keyed",
    "last",
    "max",
    "mean",
    "metrics",
    "min",
    "ordered",
    "place",
    "quantile",
    "session",
    "split",
    "std",
    "sum",
    "top",
    "var",
    "watch",
    "windowed",
    "workload",
]

# Loaded when asked for: Spark's Python workers start sooner, and pyspark is only for those who use it.
_HOMES = {
    "skewless.aggregate": "Aggregate collect count distinct first last max mean min quantile std sum top var",
    "skewless.api.keyed": "keyed",
    "skewless.api.ordered": "ordered",
    "skewless.api.watch": "watch",
    "skewless.api.windowed": "windowed",
    "skewless.core.errors": "SkewlessError",
    "skewless.operators.process": "Processor Rows SlotProcessor State",
    "skewless.spark.session": "configure session",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = {"chop", "elastic", "metrics", "place", "split", "workload"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"skewless.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'skewless' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
