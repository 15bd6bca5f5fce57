"""When state moves: how unbalanced workers must be, and what a move must gain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """When to move state.

    Parameters
    ----------
    alpha
        The rows of the busiest worker over the average from which a better placement is looked for.
    horizon
        The number of micro-batches over which the rows brought down to the average must be worth those that are moved.
    cost
        What moving the state of a key costs, in times of the rows that the key has in a micro-batch.
    rest
        The number of micro-batches with a placement before the next one is looked for, so that a hot spot that wanders
        does not keep state on the move.
    memory
        The weight of a micro-batch relative to the next one; 0 uses only the newest, so every spike counts.
    """

    alpha: float = 1.2
    horizon: int = 10
    cost: float = 1.0
    rest: int = 2
    memory: float = 0.25
