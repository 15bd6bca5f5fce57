"""skewless keeps keyed streams balanced: which worker gets this row?"""

from typing import TYPE_CHECKING, Any

from skewless import hashing, metrics, sketch, split, workload
from skewless.errors import SkewlessError
from skewless.histogram import Histogram
from skewless.policy import Policy
from skewless.ring import Ring

if TYPE_CHECKING:
    from skewless.spark.session import configure, session
    from skewless.stream import KeyedStream, keyed

__version__ = "0.1.0"

__all__ = [
    "Histogram",
    "KeyedStream",
    "Policy",
    "Ring",
    "SkewlessError",
    "configure",
    "hashing",
    "keyed",
    "metrics",
    "session",
    "sketch",
    "split",
    "workload",
]

_NEED_SPARK = {
    "KeyedStream": "skewless.stream",
    "configure": "skewless.spark.session",
    "keyed": "skewless.stream",
    "session": "skewless.spark.session",
}


def __getattr__(name: str) -> Any:
    """Load pyspark only for those who use it."""
    if name not in _NEED_SPARK:
        raise AttributeError(f"module 'skewless' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_NEED_SPARK[name]), name)
