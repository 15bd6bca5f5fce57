"""Counts how often each key comes: exactly, or in little memory within a stated bound."""

from skewless.sketch.base import Sketch
from skewless.sketch.batch import Batch, post_sort
from skewless.sketch.buffer import FrequencyBuffer
from skewless.sketch.count_tree import CountTree
from skewless.sketch.countmin import CountMin
from skewless.sketch.exact import ExactCounts
from skewless.sketch.lossy import LossyCounts
from skewless.sketch.sliding import SlidingCounts
from skewless.sketch.switch import SwitchCounts

__all__ = [
    "Batch",
    "CountMin",
    "CountTree",
    "ExactCounts",
    "FrequencyBuffer",
    "LossyCounts",
    "Sketch",
    "SlidingCounts",
    "SwitchCounts",
    "post_sort",
]
