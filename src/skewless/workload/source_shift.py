"""Several sources whose distributions shift after a number of tuples, as when one of them becomes skewed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.sources import Sources
from skewless.workload.stream import check_lengths, uniform_blocks
from skewless.workload.zipf import Zipf


@dataclass(frozen=True)
class SourceShift:
    """Tuples of several sources, which follow other distributions after every `every` tuples.

    Parameters
    ----------
    every
        Tuples between shifts, of all sources together: tuple t belongs to phase t // every.
    phase
        A function that gives the sources of phase 0, 1, 2, ...; their own seeds do not matter.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> uniform, skewed = Zipf(0.0, keys=100), Zipf(2.0, keys=100)
    >>> stream = SourceShift(1000, lambda number: Sources([uniform, skewed if number else uniform]))
    >>> keys, sources = stream.take(2000)
    >>> [int(np.bincount(keys[1000:][sources[1000:] == source]).max()) > 200 for source in (0, 1)]
    [False, True]
    """

    every: int
    phase: Callable[[int], Sources]
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the number of tuples between shifts."""
        if self.every < 1:
            raise SkewlessError(f"sources shift after at least 1 tuple, not {self.every}")

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[tuple[Int64Array, Int32Array]]:
        """The first `n` tuples as keys and sources, at most `block` of them at a time."""
        for position, uniforms in uniform_blocks(self.seed, n, block):
            yield self.tuples_at(position, uniforms)

    def take(self, n: int) -> tuple[Int64Array, Int32Array]:
        """The keys and sources of the first `n` tuples."""
        check_lengths(n)
        return self.tuples_at(0, np.random.default_rng(self.seed).random(n))

    def tuples_at(self, position: int, uniforms: FloatArray) -> tuple[Int64Array, Int32Array]:
        """The keys and sources from `position` on, one tuple for each uniform number in [0, 1)."""
        keys, sources = np.empty(len(uniforms), np.int64), np.empty(len(uniforms), np.int32)
        start = 0
        while start < len(uniforms):
            number, done = divmod(position + start, self.every)
            stop = min(len(uniforms), start + self.every - done)
            keys[start:stop], sources[start:stop] = self.phase(number).tuples_at(uniforms[start:stop])
            start = stop
        return keys, sources


def one_becomes_skewed(s: float, after: int, keys: int = 100_000, seed: int = 1) -> SourceShift:
    """Two uniform sources, the second of which is Zipf after `after` tuples and stays so (Dalton, Fig. 1).

    >>> stream = one_becomes_skewed(1.5, after=1_000_000)
    >>> [[part.s for part in stream.phase(number).parts] for number in range(3)]
    [[0.0, 0.0], [0.0, 1.5], [0.0, 1.5]]
    """
    uniform, skewed = Zipf(0.0, keys), Zipf(s, keys)
    calm, trending = Sources([uniform, uniform]), Sources([uniform, skewed])
    return SourceShift(after, lambda number: trending if number else calm, seed)
