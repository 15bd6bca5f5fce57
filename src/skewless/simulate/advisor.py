"""A scheduler that has learned how many blocks the next micro-batch is to have, in the place of Algorithm 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.elastic import Observation, Parallelism
from skewless.split.weights import Float32Array

ADVICE = (0.5, 0.7, 0.85, 1.0, 1.15, 1.4, 2.0)
"""What an advice multiplies the number of blocks with; there is at least one block more, or fewer, unless it stays."""
SEEN = 4
"""How many numbers the scheduler sees of a micro-batch."""
LAYERS = ("first", "second", "advice")


@dataclass(frozen=True, eq=False)
class AdvisorWeights:
    """The network of a scheduler: a matrix and a bias for each of its layers."""

    layers: Mapping[str, Float32Array]

    def best(self, seen: FloatArray) -> int:
        """The number of the likeliest advice."""
        values: FloatArray = np.asarray(seen, np.float64)
        for name in LAYERS[:-1]:
            values = np.maximum(values @ self.layers[name] + self.layers[f"{name}_bias"], 0)
        return int(np.argmax(values @ self.layers["advice"] + self.layers["advice_bias"]))


class Advisor:
    """Follows the load with the number of map tasks, as a scheduler agent has learned to; reduce tasks stay.

    It is used as `skewless.elastic.Scaler` is, and knows of a micro-batch what that does.

    Parameters
    ----------
    weights
        The network.
    least, most
        The bounds of the numbers of tasks.
    start
        The numbers to start with; `least` if not given.
    """

    def __init__(
        self, weights: AdvisorWeights, least: Parallelism, most: Parallelism, start: Parallelism | None = None
    ) -> None:
        self.weights, self.least, self.most = weights, least, most
        self.parallelism = least if start is None else start
        self._rate: float | None = None

    def observe(self, seen: Observation) -> Parallelism:
        """The numbers of tasks from now on, after one more micro-batch."""
        if seen.ran is not None and seen.ran != self.parallelism:
            return self.parallelism
        before = self._rate or max(seen.rate, 1e-9)
        self._rate = max(seen.rate, 1e-9)
        blocks, ratio = self.parallelism.map, seen.ratio
        sees = np.array(
            [
                min(ratio, 3.0),
                np.clip(np.log2(max(ratio, 1e-3) / 0.85), -3, 3),
                np.log2(blocks) / 5,
                np.clip(np.log2(self._rate / before), -3, 3),
            ]
        )
        factor = ADVICE[self.weights.best(sees)]
        then = round(blocks * factor)
        then = max(then, blocks + 1) if factor > 1 else min(then, blocks - 1) if factor < 1 else blocks
        self.parallelism = self.parallelism.changed("map", min(max(then, self.least.map), self.most.map))
        return self.parallelism
