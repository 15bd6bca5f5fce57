"""Generated key streams, each given by a seed, which the experiments and the comparison feed to a splitter."""

from skewless.workload.cluster import Cluster, TaskEvents
from skewless.workload.linear_road import LinearRoad, Reports
from skewless.workload.rate import Constant, Rate, Sine, Spikes
from skewless.workload.shift import Shift, new_exponents, new_hot_keys, uniform_then_zipf
from skewless.workload.sources import Sources, zipf_sources
from skewless.workload.stream import Workload
from skewless.workload.synd import synd
from skewless.workload.taxi import Taxi, Trips
from skewless.workload.tpch import TPCH, LineItems
from skewless.workload.tweets import TweetWords
from skewless.workload.words import Words
from skewless.workload.zipf import Zipf

__all__ = [
    "TPCH",
    "Cluster",
    "Constant",
    "LineItems",
    "LinearRoad",
    "Rate",
    "Reports",
    "Shift",
    "Sine",
    "Sources",
    "Spikes",
    "TaskEvents",
    "Taxi",
    "Trips",
    "TweetWords",
    "Words",
    "Workload",
    "Zipf",
    "new_exponents",
    "new_hot_keys",
    "synd",
    "uniform_then_zipf",
    "zipf_sources",
]
