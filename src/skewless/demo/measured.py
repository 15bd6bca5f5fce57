"""What the demo measures of its queries, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HotPage:
    """A page with many clicks, and the number of workers over which the newest policy splits them."""

    name: str
    workers: int


@dataclass(frozen=True)
class Batch:
    """The measurements of a micro-batch.

    Parameters
    ----------
    number, rows, seconds
        Its number, the rows that it read, and the seconds that it took.
    loads
        Rows of each worker; empty if no rows are routed.
    hot
        The hottest pages; empty if no rows are routed.
    changed
        Whether other pages are hot from this micro-batch on.

    Examples
    --------
    >>> batch = Batch(3, rows=800, seconds=0.5, loads=(500, 100, 100, 100))
    >>> batch.rate, batch.imbalance
    (1600.0, 2.5)
    """

    number: int
    rows: int
    seconds: float
    loads: tuple[int, ...] = ()
    hot: tuple[HotPage, ...] = ()
    changed: bool = False

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def imbalance(self) -> float | None:
        """The rows of the busiest worker divided by the average."""
        return max(self.loads) * len(self.loads) / sum(self.loads) if any(self.loads) else None


@dataclass(frozen=True)
class Run:
    """The measurements of a query up to now.

    Parameters
    ----------
    split
        How the query splits its keys.
    batches
        The micro-batches in order. A micro-batch without rows only closes windows.
    results
        The number of rows in its result, known at the end.

    Examples
    --------
    >>> run = Run("dalton", (Batch(0, 100, 9.0, (75, 25)), Batch(1, 100, 1.0, (51, 49)), Batch(2, 0, 1.0)))
    >>> run.rate, run.before, run.after
    (50.0, 1.5, 1.02)
    """

    split: str
    batches: tuple[Batch, ...] = ()
    results: int = 0

    @property
    def rate(self) -> float:
        """Rows per second after the first micro-batch, which warms up; time without rows counts too."""
        counted = self.batches[1:]
        return sum(batch.rows for batch in counted) / sum(batch.seconds for batch in counted)

    @property
    def before(self) -> float | None:
        """The imbalance of the first micro-batch, when nothing was learned yet."""
        return self._imbalances[0] if self._imbalances else None

    @property
    def after(self) -> float | None:
        """The imbalance of the last micro-batch with rows."""
        return self._imbalances[-1] if self._imbalances else None

    @property
    def _imbalances(self) -> list[float]:
        return [batch.imbalance for batch in self.batches if batch.imbalance is not None]


@dataclass(frozen=True)
class Comparison:
    """Both runs, and whether all rows of their results are the same."""

    spark: Run
    skewless: Run
    identical: bool

    @property
    def ratio(self) -> float:
        """How many times as fast Skewless is as Spark's own windows."""
        return self.skewless.rate / self.spark.rate
