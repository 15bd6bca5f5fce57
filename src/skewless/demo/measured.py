"""What the demo sees of its queries, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HotPage:
    """A page that many click on, and over how many workers the newest policy splits its clicks."""

    name: str
    workers: int


@dataclass(frozen=True)
class Batch:
    """A micro-batch.

    Parameters
    ----------
    number, rows, seconds
        Its number, what it read and how long it took.
    loads
        Rows of each worker; empty where no rows are routed.
    hot
        The hottest pages; empty where no rows are routed.
    changed
        Whether other pages are hot from here on.

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
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def imbalance(self) -> float | None:
        """Rows of the busiest worker over the average."""
        return max(self.loads) * len(self.loads) / sum(self.loads) if any(self.loads) else None


@dataclass(frozen=True)
class Run:
    """A query, as far as it has come.

    Parameters
    ----------
    strategy
        That it runs by.
    batches
        In order. One without rows only closes windows.
    results
        Rows of its result; known at the end.

    Examples
    --------
    >>> run = Run("dalton", (Batch(0, 100, 9.0, (75, 25)), Batch(1, 100, 1.0, (51, 49)), Batch(2, 0, 1.0)))
    >>> run.rate, run.before, run.after
    (50.0, 1.5, 1.02)
    """

    strategy: str
    batches: tuple[Batch, ...] = ()
    results: int = 0

    @property
    def rate(self) -> float:
        """Rows a second, of all batches but the first, which warms up; the time of those without rows counts too."""
        counted = self.batches[1:]
        return sum(batch.rows for batch in counted) / sum(batch.seconds for batch in counted)

    @property
    def before(self) -> float | None:
        """Imbalance of the first batch, when nothing was learned yet."""
        return self._imbalances[0] if self._imbalances else None

    @property
    def after(self) -> float | None:
        """Imbalance of the last batch with rows."""
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
        """How many times as fast as Spark's own windows."""
        return self.skewless.rate / self.spark.rate
