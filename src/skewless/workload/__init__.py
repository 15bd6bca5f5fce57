"""Generated key streams, each given by a seed, which the experiments and the comparison feed to a splitter."""

from skewless.workload.linear_road import LinearRoad, Reports
from skewless.workload.shift import Shift, new_exponents, new_hot_keys, uniform_then_zipf
from skewless.workload.sources import Sources, zipf_sources
from skewless.workload.stream import Workload
from skewless.workload.words import Words
from skewless.workload.zipf import Zipf

__all__ = [
    "LinearRoad",
    "Reports",
    "Shift",
    "Sources",
    "Words",
    "Workload",
    "Zipf",
    "new_exponents",
    "new_hot_keys",
    "uniform_then_zipf",
    "zipf_sources",
]
