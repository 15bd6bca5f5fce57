"""Five choices: the least loaded of a key's five workers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.split.two_choices import TwoChoices, candidate, less_loaded

CHOICES = 5


class FiveChoices(TwoChoices):
    """Sends a tuple to the least loaded of five workers that the key hashes to: `two-choices` with more of them.

    It is balanced up to keys of five fair loads, and every key, hot or not, may be on five workers. In the experiments
    of Prompt it is called PK5. Among equally loaded workers the first hash wins.

    Examples
    --------
    >>> FiveChoices(8).route(np.array([6, 6, 6, 6]))
    array([2, 6, 4, 5], dtype=int32)

    References
    ----------
    M. A. U. Nasir, G. De Francisci Morales, N. Kourtellis, M. Serafini: When two choices are not enough: balancing at
    scale in distributed stream processing. ICDE 2016.
    """

    name: ClassVar[str] = "five-choices"

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        _route(self.loads, keys, weights, out)


@lean_kernel
def _route(loads: Int64Array, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
    workers = loads.shape[0]
    step = np.int64(weights.shape[0] > 1)
    for i in range(keys.shape[0]):
        worker = candidate(keys[i], 0, workers)
        for j in range(1, CHOICES):
            worker = less_loaded(loads, worker, candidate(keys[i], j, workers))
        loads[worker] += weights[i * step]
        out[i] = worker
