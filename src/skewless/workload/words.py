"""Made-up words with the frequencies of a language: the input of a word count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.workload.zipf import Zipf

if TYPE_CHECKING:
    import pyarrow as pa

# Two letters each, so that two different sequences of syllables never spell the same word.
SYLLABLES = tuple(consonant + vowel for consonant in "bdfghjklmnprstvz" for vowel in "aeiou")


@dataclass(frozen=True)
class Words:
    """A stream of pronounceable words with Zipf frequencies.

    As in a language, the frequent words are the short ones.

    Parameters
    ----------
    s
        The exponent of the frequencies: about 1 in natural text.
    vocabulary_size
        Number of different words.
    seed
        The same seed gives the same words in the same order.

    Examples
    --------
    >>> text = Words(vocabulary_size=1000, seed=1)
    >>> next(text.lines(1, words_per_line=6))
    ['da sifu be vipa tu re']
    >>> next(text.blocks(3)).to_pylist() == next(text.lines(1, words_per_line=3))[0].split()
    True
    """

    s: float = 1.0
    vocabulary_size: int = 10_000
    seed: int = 1

    @property
    def ranks(self) -> Zipf:
        """The stream of word numbers, 0 the most frequent, behind the stream of words."""
        return Zipf(self.s, self.vocabulary_size, self.seed)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, the most frequent first."""
        draw = np.random.default_rng(self.seed)
        words: list[str] = []
        length = 0
        while len(words) < self.vocabulary_size:
            length += 1
            possible = len(SYLLABLES) ** length
            spelled = draw.choice(possible, size=min(possible, self.vocabulary_size - len(words)), replace=False)
            words += [_spell(int(number), length) for number in spelled]
        return tuple(words)

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[pa.StringArray]:
        """The first `n` words as Arrow arrays of at most `block`."""
        import pyarrow as pa

        vocabulary = pa.array(self.vocabulary, pa.string())
        for ranks in self.ranks.blocks(n, block):
            yield vocabulary.take(pa.array(ranks))

    def lines(self, n: int, words_per_line: int = 8, block: int = 10_000) -> Iterator[list[str]]:
        """The same words as `n` lines of text, in lists of at most `block` lines."""
        if words_per_line < 1:
            raise SkewlessError(f"a line holds at least 1 word, not {words_per_line}")
        for words in self.blocks(n * words_per_line, block * words_per_line):
            row = words.to_pylist()
            yield [" ".join(row[at : at + words_per_line]) for at in range(0, len(row), words_per_line)]


def _spell(number: int, length: int) -> str:
    """The digits of `number` in base 80, read as syllables."""
    spelled = ""
    for _ in range(length):
        number, digit = divmod(number, len(SYLLABLES))
        spelled += SYLLABLES[digit]
    return spelled
