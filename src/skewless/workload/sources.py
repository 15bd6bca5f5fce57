"""Several sources, each with hot keys of its own, interleaved into one stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.shift import spread
from skewless.workload.stream import check_lengths, uniform_blocks
from skewless.workload.zipf import Zipf


@dataclass(frozen=True)
class Sources:
    """Tuples of several sources in random order, each with the source it came from (Dalton, Fig. 13).

    One uniform number chooses the source; the rest of it, stretched to [0, 1) again, chooses the key.

    Parameters
    ----------
    parts
        The distribution of each source.
    rates
        Tuples of each source relative to the others; equal if not given.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> stream = Sources([Zipf(0.0, keys=100), Zipf(1.5, keys=100, hottest=7)], rates=[3, 1])
    >>> keys, sources = stream.take(10_000)
    >>> np.round(np.bincount(sources) / 10_000, 1)
    array([0.7, 0.3])
    >>> int(np.bincount(keys[sources == 1]).argmax())
    7
    """

    parts: Sequence[Zipf]
    rates: Sequence[float] | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the sources and their rates."""
        if not self.parts:
            raise SkewlessError("a stream needs at least 1 source")
        if self.rates is not None and (len(self.rates) != len(self.parts) or min(self.rates) <= 0):
            raise SkewlessError(f"{len(self.parts)} sources need as many rates, each above 0, not {list(self.rates)}")

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[tuple[Int64Array, Int32Array]]:
        """The first `n` tuples as keys and sources, at most `block` of them at a time."""
        for _, uniforms in uniform_blocks(self.seed, n, block):
            yield self.tuples_at(uniforms)

    def take(self, n: int) -> tuple[Int64Array, Int32Array]:
        """The keys and sources of the first `n` tuples."""
        check_lengths(n)
        return self.tuples_at(np.random.default_rng(self.seed).random(n))

    def tuples_at(self, uniforms: FloatArray) -> tuple[Int64Array, Int32Array]:
        """The keys and sources of these uniform numbers in [0, 1), one tuple for each."""
        rates = np.asarray(self.rates if self.rates is not None else np.ones(len(self.parts)), np.float64)
        upper = np.cumsum(rates) / rates.sum()
        upper[-1] = 1.0
        lower = np.concatenate(([0.0], upper[:-1]))
        sources = np.searchsorted(upper, uniforms, side="right").astype(np.int32)
        # Rounding may stretch the last number of a source's share to 1, which is no longer a uniform number.
        rest = np.minimum((uniforms - lower[sources]) / (upper - lower)[sources], np.nextafter(1.0, 0.0))
        keys = np.empty(len(uniforms), np.int64)
        for source, part in enumerate(self.parts):
            own = sources == source
            keys[own] = part.keys_at(0, rest[own])
        return keys, sources


def zipf_sources(count: int, s: float, keys: int = 100_000, seed: int = 1) -> Sources:
    """`count` sources with the same Zipf frequencies and different hot keys.

    >>> [part.hottest for part in zipf_sources(3, s=1.5, keys=1000).parts]
    [0, 618, 236]
    """
    if not 1 <= count <= keys:
        raise SkewlessError(f"the number of sources must be 1 to {keys}, the number of keys, not {count}")
    return Sources([Zipf(s, keys, hottest=spread(number, keys)) for number in range(count)], seed=seed)
