"""Generated key streams, each given by a seed, which the experiments and the comparison feed to a splitter."""

from skewless.workload.cluster import Cluster, TaskEvents
from skewless.workload.datasets import elections_like, new_skews, t4sa_like, voters_like, zipf_with_top
from skewless.workload.hot_spot import HotSpot
from skewless.workload.linear_road import LinearRoad, Reports
from skewless.workload.names import Names
from skewless.workload.nexmark import Events, Nexmark
from skewless.workload.rate import Constant, Rate, Sine, Spikes
from skewless.workload.shift import Shift, new_exponents, new_hot_keys, uniform_then_zipf
from skewless.workload.source_shift import SourceShift, one_becomes_skewed
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
    "Events",
    "HotSpot",
    "LineItems",
    "LinearRoad",
    "Names",
    "Nexmark",
    "Rate",
    "Reports",
    "Shift",
    "Sine",
    "SourceShift",
    "Sources",
    "Spikes",
    "TaskEvents",
    "Taxi",
    "Trips",
    "TweetWords",
    "Words",
    "Workload",
    "Zipf",
    "elections_like",
    "new_exponents",
    "new_hot_keys",
    "new_skews",
    "one_becomes_skewed",
    "synd",
    "t4sa_like",
    "uniform_then_zipf",
    "voters_like",
    "zipf_sources",
    "zipf_with_top",
]
