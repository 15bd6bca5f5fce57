"""What every generated key stream can do: give its keys in blocks, and start again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError


class Workload(ABC):
    """An endless stream of int64 keys, given by a seed.

    One uniform number makes one key, so the stream is the same however it is cut into blocks, and every call starts it
    again.
    """

    seed: int

    @abstractmethod
    def keys_at(self, position: int, uniforms: FloatArray) -> Int64Array:
        """The keys from `position` on, one for each uniform number in [0, 1)."""

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""
        for position, uniforms in uniform_blocks(self.seed, n, block):
            yield self.keys_at(position, uniforms)

    def take(self, n: int) -> Int64Array:
        """The first `n` keys as one array."""
        check_lengths(n)
        return self.keys_at(0, np.random.default_rng(self.seed).random(n))


def uniform_blocks(seed: int, n: int, block: int) -> Iterator[tuple[int, FloatArray]]:
    """`n` uniform numbers in [0, 1) in blocks, each with the position of its first.

    >>> [(position, len(uniforms)) for position, uniforms in uniform_blocks(seed=1, n=5, block=2)]
    [(0, 2), (2, 2), (4, 1)]
    """
    check_lengths(n, block)
    draw = np.random.default_rng(seed)
    for position in range(0, n, block):
        yield position, draw.random(min(block, n - position))


def check_lengths(n: int, block: int = 1) -> None:
    """Refuse a stream of fewer than 0 tuples, and blocks without tuples."""
    if n < 0:
        raise SkewlessError(f"the number of tuples must be at least 0, not {n}")
    if block < 1:
        raise SkewlessError(f"a block holds at least 1 tuple, not {block}")
