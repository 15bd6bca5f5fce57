"""The words of tweets: a large vocabulary, and a most frequent word with a given share of all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.stream import Workload
from skewless.workload.zipf import Zipf


@dataclass(frozen=True)
class TweetWords(Workload):
    """Numbers of words as they come in tweets, 0 the most frequent.

    Collections of tweets are told by two numbers: how many different words they have, and the share of the most
    frequent one. The frequencies are Zipf's with the exponent that gives this share. The defaults are those of the
    T4SA collection; its exponent is 0.86.

    Parameters
    ----------
    words
        Number of different words.
    top
        The share of the most frequent word, above that of all words being equally frequent.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> stream = TweetWords(words=10_000, top=0.05)
    >>> round(stream.exponent, 2), round(float((stream.take(100_000) == 0).mean()), 3)
    (0.85, 0.05)

    References
    ----------
    E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 16(3),
    2022; Table 2 has the words and the top share of three collections of tweets.
    """

    words: int = 450_000
    top: float = 0.0269
    seed: int = 1

    def __post_init__(self) -> None:
        """Check that Zipf frequencies can have this top share."""
        if self.words < 2:
            raise SkewlessError(f"words is {self.words}; give at least 2")
        if not 1 / self.words < self.top < 1:
            raise SkewlessError(
                f"top is {self.top}; of {self.words} words give more than {1 / self.words:.2g} and less than 1"
            )

    @cached_property
    def exponent(self) -> float:
        """The exponent of Zipf's law with which the first of the words has its share."""
        ranks = np.log(np.arange(1, self.words + 1, dtype=np.float64))
        low, high = 0.0, 64.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            if 1 / np.exp(-middle * ranks).sum() < self.top:
                low = middle
            else:
                high = middle
        return round((low + high) / 2, 5)

    def keys_at(self, position: int, uniforms: FloatArray) -> Int64Array:
        """The words of these uniform numbers."""
        return Zipf(self.exponent, self.words, self.seed).keys_at(position, uniforms)
