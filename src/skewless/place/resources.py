"""What an item costs a channel: a function of its frequency for each of three resources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isnan
from numbers import Real

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

DEGREES = {"C": 0, "L": 1, "Q": 2}  # beta(x) = x^degree: constant, linear, quadratic
KINDS = ("state", "computation", "communication")


def is_number(value: object) -> bool:
    """Whether something is a real number, which may be infinite, and not a truth value, a text or a list."""
    return not isinstance(value, bool) and isinstance(value, Real) and not isnan(value)


def beta(letter: str, frequencies: FloatArray) -> FloatArray:
    """The load of items of these frequencies under a constant (C), linear (L) or quadratic (Q) resource function.

    >>> beta("Q", np.array([0.5, 0.1]))
    array([0.25, 0.01])
    """
    return np.asarray(frequencies, np.float64) ** DEGREES[letter]


@dataclass(frozen=True)
class Resources:
    """The resource functions of state, computation and communication, one letter each.

    A window of fixed length in time holds state in proportion to the frequency of its key (L); a window of a fixed
    number of tuples holds the same amount for every key (C). An incremental aggregate costs no more for a frequent key
    (C); a join of each tuple with the window of its key costs the square of the frequency (Q).

    The letters describe *loads*: a channel's computation is the sum of beta_c(f) over its items. The paper prints f
    times beta_c(f) there (eq. 3), but its example, its threshold (eq. 17) and its results are those of the plain sum.

    Examples
    --------
    >>> Resources("LQL").state
    'L'
    """

    letters: str = "LCL"

    def __post_init__(self) -> None:
        """Refuse letters that mean nothing."""
        letters: object = self.letters
        if not (isinstance(letters, str) and len(letters) == len(KINDS) and set(letters) <= set(DEGREES)):
            raise SkewlessError(
                f"resources are {self.letters!r}; give a letter each for {', '.join(KINDS)}, "
                "C for constant, L for linear, Q for quadratic, such as 'LCL'"
            )

    @property
    def state(self) -> str:
        """The letter of the state that a key holds, which is also what moving the key costs."""
        return self.letters[0]


@dataclass(frozen=True)
class Tolerance:
    """The imbalance allowed: the largest load over the smallest, for each resource.

    Examples
    --------
    >>> Tolerance.of(1.2)
    Tolerance(state=1.2, computation=1.2, communication=1.2)
    >>> tuple(Tolerance.of((1.2, 1.5, 1.1)))
    (1.2, 1.5, 1.1)
    """

    state: float
    computation: float
    communication: float

    def __post_init__(self) -> None:
        """Refuse a tolerance that cannot be reached."""
        for kind, alpha in zip(KINDS, self, strict=True):
            if not (is_number(alpha) and 1 < alpha < inf):
                raise SkewlessError(f"alpha for {kind} is {alpha!r}; give a number above 1, such as 1.2")

    @classmethod
    def of(cls, alpha: float | tuple[float, float, float] | Tolerance) -> Tolerance:
        """The same number for all three resources, or one number for each."""
        if isinstance(alpha, Tolerance):
            return alpha
        if isinstance(alpha, tuple):
            if len(alpha) != len(KINDS):
                raise SkewlessError(f"alpha is {alpha}; give one number, or one each for {', '.join(KINDS)}")
            return cls(*alpha)
        return cls(alpha, alpha, alpha)

    def __iter__(self) -> Iterator[float]:
        """The numbers for state, computation and communication."""
        return iter((self.state, self.computation, self.communication))
