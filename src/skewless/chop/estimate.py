"""Learns costs from a running stream, by comparing how long batches took with what they did."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skewless.chop.cost import Costs
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

_RIDGE = 1e-9  # if all batches look alike, the costs get equal shares instead of none
_WRONG = 0.1  # share of the time by which late batches must be misjudged, in one direction, before all old ones fade
_APART = 1e-5  # share of the squares that must lie outside their main direction


class CostEstimator:
    """Estimates the three costs of the work on windows by least squares, none of them below 0.

    Each batch is one equation, `updates x + windows y + rows z = seconds`, divided by its rows so that all batches
    weigh the same. Old batches fade only as new ones of their kind come: a stream that keeps one batch size for hours
    does not forget what another size cost. If the times no longer fit what was learned, all batches fade.

    Batches of one size all look alike and give only the cost of that size; with two sizes the cost of every size is
    known. How this cost divides into updates and opening can be seen only if the number of rows in a window varies; if
    it does not vary, the division makes no difference.

    Parameters
    ----------
    memory
        Weight of a batch relative to the next one of its kind, from 0 (only the last one counts) to 1 (nothing fades).

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
        """Add a batch: its window updates, the windows it opened and closed, its rows, and the seconds it took."""
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
        # Some costs are fixed at 0 and the others are free; the best solution without a negative cost is kept.
        for count in (1, 2, 3):
            for free in map(list, combinations(range(3), count)):
                square = scaled[np.ix_(free, free)] + _RIDGE * np.eye(count)
                solution = np.linalg.solve(square, products[free])
                error = -float(solution @ products[free])  # without the part that is the same for all solutions
                if solution.min() >= 0 and error < least:
                    best, least = np.zeros(3), error
                    best[free] = solution
        update, open_close, other = (best / scale).tolist()
        return Costs(update, open_close, other)

    def _fade(self, terms: FloatArray, seconds: float, expected: float) -> None:
        """Forget a little about batches like `terms` and nothing about others; if the estimate is wrong, about all."""
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
        """The squares with ones on the diagonal, and the numbers by which the unknowns have to be divided."""
        scale = np.sqrt(np.maximum(np.diag(self.squares), np.finfo(float).tiny))
        return self.squares / np.outer(scale, scale), scale
