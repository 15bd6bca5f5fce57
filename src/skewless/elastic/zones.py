"""The three zones of elasticity: too slow for the interval, idle for too much of it, and between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skewless.core.errors import SkewlessError

Zone = Literal["in", "stay", "out"]
ROUNDING = 1e-9  # relative: no clock is as exact, and a number worked out to just fit must not be found too small


@dataclass(frozen=True)
class Zones:
    """Says from W, the processing time over the interval, whether workers are to be added or can be given up.

    Parameters
    ----------
    thres
        W above which workers are added.
    step
        How far W has to be below `thres` before workers are given up: the width of the zone in which nothing changes.

    Examples
    --------
    >>> zones = Zones(thres=0.9, step=0.1)
    >>> [zones.of(ratio) for ratio in (0.91, 0.9, 0.81, 0.8)]
    ['out', 'stay', 'stay', 'in']

    References
    ----------
    A. S. Abdelhamid: Efficient distributed processing over micro-batched data streams. Dissertation, Purdue University,
    2021. Figure 3.2b: "in" is its zone 1, "stay" its zone 2 and "out" its zone 3.
    """

    thres: float = 0.9
    step: float = 0.1

    def __post_init__(self) -> None:
        """Refuse thresholds that leave no zone to stay in."""
        for name, value in (("thres", self.thres), ("step", self.step)):
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise SkewlessError(f"{name} is {value!r}; give a number, such as {getattr(Zones, name)}")
        if not 0 < self.thres <= 1:
            raise SkewlessError(
                f"thres is {self.thres}; give a number above 0 and at most 1, as micro-batches that take longer than "
                "their interval queue"
            )
        if not 0 < self.step < self.thres:
            raise SkewlessError(
                f"step is {self.step} and thres is {self.thres}; give a step above 0 and below thres, such as 0.1 for "
                "0.9"
            )

    def of(self, ratio: float) -> Zone:
        """The zone of a micro-batch whose W is this."""
        if ratio > self.thres * (1 + ROUNDING):
            return "out"
        return "in" if ratio <= (self.thres - self.step) * (1 + ROUNDING) else "stay"

    def enough(self, ratio: float) -> bool:
        """Whether numbers of tasks that are expected to lead to this W are enough."""
        return ratio <= self.thres * (1 + ROUNDING / 2)
