"""Elasticity: as many workers as the load needs, decided anew after every micro-batch."""

from skewless.elastic.advice import Advice, Timed, advise
from skewless.elastic.observation import Observation
from skewless.elastic.parallelism import Parallelism
from skewless.elastic.range import Range
from skewless.elastic.scaler import Decision, Scaler
from skewless.elastic.zones import Zones

__all__ = ["Advice", "Decision", "Observation", "Parallelism", "Range", "Scaler", "Timed", "Zones", "advise"]
