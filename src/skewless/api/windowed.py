"""Windows of a keyed stream, and what can be computed over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from skewless.aggregate import Measure
from skewless.aggregate.measure import TIME
from skewless.chop.assignment import BatchAssignment
from skewless.chop.first import first_batch
from skewless.chop.tuner import MOST
from skewless.control.plans import Plans
from skewless.control.tuning import Tuning
from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.core.windows import Windows
from skewless.operators.panes import Windows
from skewless.spark.aggregate import Aggregation, Windowing, check_time, delay_of, shuffle_partitions
from skewless.spark.apply import Chopping
from skewless.spark.listen import listen
from skewless.spark.native import natives
from skewless.spark.process import structure
from skewless.spark.route import column
from skewless.spark.session import prepare

if TYPE_CHECKING:
    from skewless.api.keyed import KeyedStream

CUTS = ("auto", "window", "batch", "pane")


def windowed_by(
    keyed: KeyedStream, time: str, size: str | Windows, slide: str | None, watermark: str | None, output: str
) -> WindowedStream:
    """The windows of a stream, checked; see `KeyedStream.window`."""
    if output not in ("append", "update"):
        raise SkewlessError(f"output is {output!r}; it can be 'append' (closed windows) or 'update' (changed ones)")
    df = keyed.df
    check_time(df, time)
    if isinstance(size, Windows):
        if slide is not None or watermark is not None or output != "append":
            raise SkewlessError(
                "windows of so many rows are over when their rows are there: give the slide as sk.rows(size, slide), "
                "and neither watermark= nor output="
            )
        return WindowedStream(keyed, df, time, size)
    spec = Windows.of(size, slide)
    if watermark is not None:
        microseconds(watermark, zero=True)  # to refuse it in our words
        df = df.withWatermark(time, watermark) if df.isStreaming else df
    delay = delay_of(df, time) if df.isStreaming else None
    if df.isStreaming and delay is None and output == "append":
        raise SkewlessError(
            "windows in append mode close by a watermark, and there is none: say how late rows may come, such as "
            'window(..., watermark="10 seconds"), or ask for output="update"'
        )
    updating = output == "update" and df.isStreaming
    windows = Windowing(time, spec, delay, updating)
    return WindowedStream(keyed, df, time, Windows(spec.size, spec.slide), windows, (size, slide))


class WindowedStream:
    """A stream cut into windows; made by `KeyedStream.window` or `windowed`."""

    def __init__(
        self,
        keyed: KeyedStream,
        df: DataFrame,
        time: str,
        windows: Windows,
        timed: Windowing | None = None,
        words: tuple[str, str | None] = ("", None),
    ) -> None:
        self._keyed, self._df, self._time = keyed, df, time
        self._windows, self._timed, self._words = windows, timed, words

    def agg(self, **aggregates: Measure) -> DataFrame:
        """Aggregate each window of each key.

        The result has the columns and the values of Spark's `groupBy(window(...), *keys).agg(...)`: `window`, a struct
        of `start` and `end`, the key columns, and the aggregates by name.

        Parameters
        ----------
        aggregates
            The columns of the result: `agg(n=sk.count(), spent=sk.sum("price"))`.
        """
        windows = self._timed
        if windows is None:
            raise SkewlessError("aggregates are over windows of time; for windows of so many rows use apply(...)")
        if not self._keyed.keys:
            raise SkewlessError(
                "there is no key to balance: aggregates of all rows are best left to Spark's "
                "df.groupBy(window(...)).agg(...); apply(...) is for functions of a whole window"
            )
        measures = measures_of(self._df, aggregates, ("window", *self._keyed.keys))
        own = natives(self._df, measures)

        def spark() -> DataFrame:
            assert own is not None
            window = F.window(column(self._df, self._time), *self._words)
            keys = [column(self._df, key) for key in self._keyed.keys]
            return self._df.groupBy(window, *keys).agg(*own)

        return self._keyed._aggregate(
            Aggregation(self._df, self._keyed.keys, measures, windows),
            None if own is None else spark,
            tumbling=windows.spec.tumbling,
        )

    def apply(
        self,
        function: Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]],
        schema: str | StructType,
        by: str = "auto",
        max_latency: str | None = None,
        *,
        batch: int | None = None,
        arrow: bool = False,
        location: str | None = None,
        retune: str = "30 seconds",
    ) -> DataFrame:
        """Run a function on all rows of each window of each key.

        The result has `window`, a struct of `start` and `end`, the key columns, and the columns of the schema. Windows
        of a key without rows have none.

        Parameters
        ----------
        function
            `function(key, window, rows)`: the key as a tuple, the window with `start` and `end`, and the rows sorted by
            time as a pandas frame. It gives a frame with the columns of the schema; or a tuple for one row, a list of
            tuples, or None. Or a pair `(of_pane, of_window)`: the first sees the rows of a pane, the longest stretch
            that no edge of a window cuts, and gives anything that pickles; the second is `of_window(key, window,
            answers)` and sees what the first gave for the panes of the window that have rows, in order of time.
        schema
            Of what the function gives, in Spark's words: "median double".
        by
            "window": consecutive windows are of different workers. "batch": batches of consecutive windows are, so that
            fewer rows are needed in two places. "pane": for a pair of functions; no row is needed twice. "auto": panes
            for a pair, else batches.
        max_latency
            How long after its end a window may wait for others, such as "30 seconds", so that they are worked on
            together. Without it each is worked on in the micro-batch in which the watermark passes it.
        batch
            Windows in a batch, instead of as many as the tuner chooses.
        arrow
            Give rows as a `pyarrow.Table`. The function may give tables either way.
        location
            A folder that belongs to the query as its checkpoint does. With it the tuner measures what windows of this
            stream cost, and changes the size of batches while it runs; without, it goes by what windows cost usually.
            Driver and executors must be able to write it.
        retune
            How often the size is chosen anew.
        """
        functions = function if isinstance(function, tuple) else (function,)
        by = self._cut(functions, by)
        latency = None if max_latency is None else microseconds(max_latency) / 1e6
        self._check(by, latency, batch)
        if location is not None and (by != "batch" or batch is not None or self._windows.rows):
            raise SkewlessError(
                f"location is {location!r}, for batches of windows of time whose size is tuned: leave it away, or have "
                "by='batch' without batch="
            )
        result = structure(schema) if isinstance(schema, str) else schema
        for name in result.names:
            if name in ("window", *self._keyed.keys):
                raise SkewlessError(f"the result has a column {name!r} already; leave it out of the schema")
        partitions = shuffle_partitions(self._df)
        workers = self._keyed.workers
        if workers > partitions:
            raise SkewlessError(
                f"workers is {workers}; windows can be shared by up to {partitions}, the shuffle partitions: "
                "set spark.sql.shuffle.partitions first for more"
            )
        if by != "batch":
            batch = 1
        elif batch is None:
            batch = first_batch(self._windows, workers, latency)
        if self._df.isStreaming:
            prepare(self._df.sparkSession)
        self._keyed._runs = f"chopped by {by}", self._why(by, batch)
        chopping = Chopping(
            self._df,
            self._keyed.keys,
            self._time,
            self._windows,
            functions,
            result,
            workers,
            batch,
            together=latency is not None,
            arrow=arrow,
        )
        if location is None or not self._df.isStreaming:
            return chopping.run()
        spark, name = self._df.sparkSession, f"{self._keyed.name}-plans"
        deal = BatchAssignment.of(self._windows, workers, batch)
        wait = latency or self._windows.size / 1e6
        # Stream time may run faster than the clock: no window waits longer than that in either.
        most = MOST if latency is None else min(MOST, 1 + int(latency * 1e6) // self._windows.slide)
        period = microseconds(retune) / 1e6
        self._keyed._tuning = tuning = Tuning(name, Plans.at(location), deal, wait, period, most)
        listen(spark, name, tuning.take)
        return chopping.tuned(tuning.plans, tuning.control(spark), name)

    def _cut(self, functions: tuple[Any, ...], by: str) -> str:
        if not all(callable(each) for each in functions) or len(functions) not in (1, 2):
            raise SkewlessError(
                f"apply was given {functions!r}; give a function(key, window, rows), or a pair of functions"
            )
        if by not in CUTS:
            raise SkewlessError(f"by is {by!r}; windows can be cut by {', '.join(CUTS)}")
        pair = len(functions) == 2
        if by == "auto":
            return "pane" if pair else "batch"
        if pair != (by == "pane"):
            raise SkewlessError(
                "panes need two functions, one of the rows of a pane and one of the answers for the panes of a window: "
                "apply((of_pane, of_window), ...)"
                if by == "pane"
                else f"by is {by!r}, which takes one function of the rows of a window; a pair is for by='pane'"
            )
        return by

    def _check(self, by: str, latency: float | None, batch: int | None) -> None:
        if self._keyed._asked != "auto":
            raise SkewlessError(
                f"strategy {getattr(self._keyed._asked, 'name', self._keyed._asked)!r} deals out keys, and apply(...) "
                "deals out windows; leave the strategy away"
            )
        if self._timed is not None and self._timed.updating:
            raise SkewlessError("apply(...) gives a window once, when it is over; leave output='update' away")
        if self._windows.rows and by == "pane":
            raise SkewlessError("panes are of windows of time; for windows of so many rows choose 'window' or 'batch'")
        if batch is not None and by != "batch":
            raise SkewlessError(f"batch is {batch}, but windows are cut by {by}; give by='batch'")
        if latency is not None and (by != "batch" or self._windows.rows):
            raise SkewlessError(
                "max_latency lets the windows of a batch wait for each other; it needs windows of time and by='batch'"
            )

    def _why(self, by: str, batch: int) -> str:
        if by == "pane":
            return "each pane worked on once, and its answer passed to the next worker in the ring where that needs it"
        return f"{batch} consecutive windows of a key to one worker, and the next to the next"


def measures_of(df: DataFrame, aggregates: Mapping[str, Measure], taken: tuple[str, ...]) -> dict[str, Measure]:
    """Aggregates by name, checked; `taken` are the names that the result has already."""
    if not aggregates:
        raise SkewlessError("what to aggregate? Name at least one, such as agg(n=sk.count())")
    for name, measure in aggregates.items():
        if not isinstance(measure, Measure):
            raise SkewlessError(f"{name}={measure!r} is not an aggregate; write one such as {name}=sk.sum('column')")
        if name in taken:
            raise SkewlessError(f"the result has a column {name!r} already; give the aggregate another name")
        for each in measure.columns:
            if each != TIME:
                column(df, each)
    return dict(aggregates)
