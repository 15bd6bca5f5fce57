"""skewless keeps keyed streams balanced: which worker gets this row?"""

from skewless import hashing, metrics, sketch, split, workload
from skewless.errors import SkewlessError
from skewless.histogram import Histogram
from skewless.policy import Policy
from skewless.ring import Ring

__version__ = "0.1.0"

__all__ = ["Histogram", "Policy", "Ring", "SkewlessError", "hashing", "metrics", "sketch", "split", "workload"]
