"""Costs learned from a running stream: how long batches took, against what they did."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skewless.chop.cost import Costs
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

_RIDGE = 1e-9  # where batches look all alike, equal shares rather than none
_WRONG = 0.1  # of the time of late batches: by so much it was misjudged, always in the same direction
_APART = 1e-5  # of the squares, how much must lie across the direction of most


class CostEstimator:
    """Least squares for the three costs of a row's way through windows, none of them below 0.

    Each batch is one equation, `updates x + windows y + rows z = seconds`, divided by its rows so that all weigh the
    same. Old batches fade as new ones of their kind come: a stream that keeps to one batch size for hours does not
    forget what another one cost. Only when times are no longer what they were do all fade.

    Batches of one size look all alike and give only the cost of that size; with two sizes the cost of every size is
    known. How much of it is updates and how much opening shows only where the rows in a window vary; it makes no
    difference where they do not.

    Parameters
    ----------
    memory
        Weight of a batch against the next one of its kind, from 0 (only the last counts) to 1 (nothing fades).

    Examples
    --------
    >>> truth = Costs(update=2e-9, open_close=1e-6, other=5e-9)
    >>> estimator = CostEstimator()
    >>> for updates, windows, rows in [(100, 1, 100), (220, 2, 120), (900, 6, 160), (90, 1, 90)]:
    ...     estimator.add(updates, windows, rows, truth.of(updates, windows, rows))
    >>> found = estimator.costs
    >>> f"{found.update:.2g} {found.open_close:.2g} {found.other:.2g}"
    '2e-09 1e-06 5e-09'
    """

    def __init__(self, memory: float = 0.98) -> None:
        if not 0 <= memory <= 1:
            raise SkewlessError(f"memory is {memory}; give a number from 0 to 1")
        self.memory = memory
        self.squares: FloatArray = np.zeros((3, 3))
        self.products: FloatArray = np.zeros(3)
        self.wrong = 0.0

    def add(self, updates: float, windows: float, rows: float, seconds: float) -> None:
        """A batch of `rows` rows took `seconds` for so many updates and so many windows opened and closed."""
        if not rows > 0:
            return  # a batch without rows says nothing about rows
        if min(updates, windows, seconds) < 0:
            raise SkewlessError(
                f"{updates} updates of {windows} windows in {seconds} seconds; give numbers of at least 0"
            )
        terms = np.array([updates, windows, rows]) / rows
        self._fade(terms, seconds, self.costs.of(updates, windows, rows))
        self.squares += np.outer(terms, terms)
        self.products += terms * (seconds / rows)

    @property
    def resolved(self) -> bool:
        """Whether batches of different sizes were seen, so that the cost of every size is known."""
        scaled, _ = self._scaled()
        return bool(np.linalg.eigvalsh(scaled)[1] > _APART)

    @property
    def costs(self) -> Costs:
        """The costs that fit best; all 0 before the first batch."""
        scaled, scale = self._scaled()
        products = self.products / scale
        best, least = np.zeros(3), 0.0
        # Of the solutions with some costs at 0 and the rest free, the best one without a cost below 0.
        for count in (1, 2, 3):
            for free in map(list, combinations(range(3), count)):
                square = scaled[np.ix_(free, free)] + _RIDGE * np.eye(count)
                solution = np.linalg.solve(square, products[free])
                error = -float(solution @ products[free])  # up to what is the same for all
                if solution.min() >= 0 and error < least:
                    best, least = np.zeros(3), error
                    best[free] = solution
        update, open_close, other = (best / scale).tolist()
        return Costs(update, open_close, other)

    def _fade(self, terms: FloatArray, seconds: float, expected: float) -> None:
        """Forget a little of what was known along `terms`, and nothing across, unless it proves wrong."""
        along = self.squares @ terms
        known = float(terms @ along)
        if known == 0:
            return
        wrong = (seconds - expected) / max(seconds, expected, np.finfo(float).tiny)
        self.wrong = self.memory * self.wrong + (1 - self.memory) * wrong
        if abs(self.wrong) > _WRONG:
            self.products *= self.memory
            self.squares *= self.memory
            return
        share = (1 - self.memory) / known
        self.products -= share * along * float(terms @ self.products)
        self.squares -= share * np.outer(along, along)

    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        """The squares with ones on the diagonal, and what the unknowns are to be divided by."""
        scale = np.sqrt(np.maximum(np.diag(self.squares), np.finfo(float).tiny))
        return self.squares / np.outer(scale, scale), scale
