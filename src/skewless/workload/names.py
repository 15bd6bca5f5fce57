"""Short texts with typos, as people write names: the input of correlation clustering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.core.arrays import Int, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, kernel, lean_kernel
from skewless.core.random_bits import below, draw

Letters = npt.NDArray[np.uint8]

FIRST, LAST = 2, 3  # syllables
LENGTH = 2 * (FIRST + LAST) + 1
MOST_TYPOS = 8
CONSONANTS = np.frombuffer(b"bdfghjklmnprstvz", np.uint8)
VOWELS = np.frombuffer(b"aeiou", np.uint8)
SPACE = 32
DRAWS = 4 * (MOST_TYPOS + 1)  # random numbers of a tuple, at most


@dataclass(frozen=True)
class Names:
    """Names of people who share a key, such as a post code, each written with up to `typos` wrong letters.

    A typo replaces, inserts or drops one letter, so that the edit distance of a text from the name it stands for is at
    most the number of its typos. Names of different people are far from each other. A text depends on its position in
    the stream and its key alone, however the stream is cut into blocks.

    Parameters
    ----------
    people
        People of each key.
    typos
        The most typos in a text; their number is drawn uniformly from 0 to this.
    seed
        The same seed gives the same names and typos.

    Examples
    --------
    >>> names = Names(people=2, seed=1)
    >>> keys = np.array([7, 7, 7, 9])
    >>> names.texts(keys)
    ['sesenasigi', 'ese nasigi', 'sesenasigi', 'sefou osota']
    >>> [names.name(key, person) for key, person in zip(keys, names.persons(keys))]
    ['sese nasigi', 'sese nasigi', 'sese nasigi', 'sefo zosota']

    References
    ----------
    E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 2022, 5.
    """

    people: int = 5
    typos: int = 2
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the numbers of people and typos."""
        if self.people < 1:
            raise SkewlessError(f"a key has at least 1 person, not {self.people}")
        if not 0 <= self.typos <= MOST_TYPOS:
            raise SkewlessError(
                f"a text has 0 to {MOST_TYPOS} typos at most, not {self.typos}: more would be another name"
            )

    def texts(self, keys: Int64Array, position: int = 0) -> list[str]:
        """A text for each tuple with these keys, the first of which is at `position` of the stream."""
        letters, _ = self.letters(keys, position)
        # Numpy's fixed-width strings end at the first zero.
        texts: list[str] = np.char.decode(letters.view(f"S{letters.shape[1]}").ravel(), "ascii").tolist()
        return texts

    def letters(self, keys: Int64Array, position: int = 0) -> tuple[Letters, Int64Array]:
        """The same as rows of letters, filled up with zeros, and the number of letters of each."""
        keys = np.ascontiguousarray(keys, np.int64)
        letters = np.zeros((len(keys), LENGTH + self.typos), np.uint8)
        lengths = np.empty(len(keys), np.int64)
        _write(keys, position, self.people, self.typos, self.seed, letters, lengths, CONSONANTS, VOWELS)
        return letters, lengths

    def persons(self, keys: Int64Array, position: int = 0) -> Int64Array:
        """The person that each text stands for, numbered from 0 within the key."""
        keys = np.ascontiguousarray(keys, np.int64)
        out = np.empty(len(keys), np.int64)
        _who(len(keys), position, self.people, self.seed, out)
        return out

    def name(self, key: int, person: int) -> str:
        """The name of a person, without typos."""
        letters = np.zeros(LENGTH, np.uint8)
        _spell(np.int64(key), np.int64(person), self.seed, letters, CONSONANTS, VOWELS)
        return letters.tobytes().decode("ascii")


@inner
def _person(at: Int, people: Int, seed: Int) -> Int:
    return below(draw(seed, at * DRAWS), people)


@inner
def _spelled(key: Int, person: Int, seed: Int, out: Letters, consonants: Letters, vowels: Letters) -> None:
    """Write a name, a syllable for each draw of a generator that the key, the person and the seed start."""
    own = draw(draw(seed + 1, key), person)
    at = 0
    for syllable in range(FIRST + LAST):
        if syllable == FIRST:
            out[at] = SPACE
            at += 1
        bits = draw(own, syllable)
        out[at] = consonants[below(bits, len(consonants))]
        out[at + 1] = vowels[below(bits >> 32, len(vowels))]
        at += 2


@lean_kernel
def _spell(key: Int, person: Int, seed: Int, out: Letters, consonants: Letters, vowels: Letters) -> None:
    _spelled(key, person, seed, out, consonants, vowels)


@lean_kernel
def _who(n: Int, position: Int, people: Int, seed: Int, out: Int64Array) -> None:
    for i in range(n):
        out[i] = _person(position + i, people, seed)


@kernel
def _write(
    keys: Int64Array,
    position: Int,
    people: Int,
    typos: Int,
    seed: Int,
    letters: Letters,
    lengths: Int64Array,
    consonants: Letters,
    vowels: Letters,
) -> None:
    for i in range(len(keys)):
        first = (position + i) * DRAWS
        row = letters[i]
        _spelled(keys[i], _person(position + i, people, seed), seed, row, consonants, vowels)
        length = LENGTH
        for typo in range(below(draw(seed, first + 1), typos + 1)):
            what = draw(seed, first + 4 * typo + 2)
            letter = np.uint8(97 + below(draw(seed, first + 4 * typo + 3), 26))
            kind = below(what >> 32, 3)
            if kind == 0:  # replace
                row[below(what, length)] = letter
            elif kind == 1:  # insert
                at = below(what, length + 1)
                for j in range(length, at, -1):
                    row[j] = row[j - 1]
                row[at] = letter
                length += 1
            else:  # drop
                at = below(what, length)
                length -= 1
                for j in range(at, length):
                    row[j] = row[j + 1]
                row[length] = 0
        lengths[i] = length
