"""Who runs, and when: what Spark knows of a task, and everything that runs in one is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """A worker's, or a task's, turn in a micro-batch.

    Parameters
    ----------
    worker
        The number of the worker, or of the task that sends rows to workers.
    batch
        The number of the micro-batch; 0 for a batch DataFrame.
    query
        The id of the query; empty for a batch DataFrame.
    run
        The id of the query's run, which every restart changes; empty for a batch DataFrame.
    attempt
        The number of the attempt at the task, which no other attempt at any task has; later ones have larger numbers.
    """

    worker: int
    batch: int = 0
    query: str = ""
    run: str = ""
    attempt: int = 0
