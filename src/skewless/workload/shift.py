"""Streams whose distribution shifts after a number of tuples, so that what was learned is no longer true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.stream import Workload
from skewless.workload.zipf import Zipf

GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Shift(Workload):
    """A stream that follows another distribution after every `every` tuples.

    Parameters
    ----------
    every
        Tuples between shifts: tuple t belongs to phase t // every.
    phase
        A function that gives the distribution of phase 0, 1, 2, ...
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> stream = Shift(every=1000, phase=lambda number: Zipf(2.0 * number, keys=100))
    >>> keys = stream.take(2000)
    >>> bool((keys[:1000] == 0).sum() < 50), bool((keys[1000:] == 0).sum() > 500)
    (True, True)
    """

    every: int
    phase: Callable[[int], Zipf]
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the number of tuples between shifts."""
        if self.every < 1:
            raise SkewlessError(f"a stream shifts after at least 1 tuple, not {self.every}")

    def keys_at(self, position: int, uniforms: FloatArray) -> Int64Array:
        """The keys from `position` on, each drawn from the distribution of its phase."""
        keys = np.empty(len(uniforms), np.int64)
        start = 0
        while start < len(uniforms):
            number, done = divmod(position + start, self.every)
            stop = min(len(uniforms), start + self.every - done)
            keys[start:stop] = self.phase(number).keys_at(position + start, uniforms[start:stop])
            start = stop
        return keys


def uniform_then_zipf(s: float, every: int, keys: int = 100_000, seed: int = 1) -> Shift:
    """Uniform in even phases, Zipf in odd ones (Dalton, Fig. 9a).

    >>> stream = uniform_then_zipf(1.5, every=1_000_000)
    >>> [stream.phase(number).s for number in range(4)]
    [0.0, 1.5, 0.0, 1.5]
    """
    uniform, skewed = Zipf(0.0, keys), Zipf(s, keys)
    return Shift(every, lambda number: skewed if number % 2 else uniform, seed)


def new_hot_keys(s: float, every: int, keys: int = 100_000, seed: int = 1) -> Shift:
    """The same Zipf frequencies throughout, but other keys are hot in each phase.

    The hottest key moves on by the golden section of the key space, which keeps it far from where it was in any earlier
    phase.

    >>> stream = new_hot_keys(1.5, every=1_000_000, keys=1000)
    >>> [stream.phase(number).hottest for number in range(4)]
    [0, 618, 236, 854]
    """
    if keys < 2:
        raise SkewlessError(f"hot keys can be replaced only where there are at least 2 keys, not {keys}")
    return Shift(every, lambda number: Zipf(s, keys, hottest=spread(number, keys)), seed)


def new_exponents(low: float = 0.5, high: float = 1.5, *, every: int, keys: int = 100_000, seed: int = 1) -> Shift:
    """Zipf with a new exponent for each phase, drawn uniformly from [low, high] (Dalton, Fig. 9d).

    >>> stream = new_exponents(every=1_000_000, seed=1)
    >>> [round(stream.phase(number).s, 2) for number in range(3)]
    [1.01, 0.83, 0.95]
    """
    if not 0 <= low <= high:
        raise SkewlessError(f"exponents come from a range of numbers of at least 0, not [{low}, {high}]")
    return Shift(every, lambda number: Zipf(np.random.default_rng([seed, number]).uniform(low, high), keys), seed)


def spread(number: int, keys: int) -> int:
    """A key id for each number, far from those of other numbers.

    >>> [spread(number, keys=100) for number in range(4)]
    [0, 62, 24, 86]
    """
    # The step is at least one key, even if it would be rounded to none for a few keys.
    step = min(max(1, round(keys * GOLDEN)), keys - 1)
    return number * step % keys
