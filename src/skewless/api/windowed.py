"""Windows of a stream, and what can be computed over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampNTZType

from skewless.aggregate import Measure
from skewless.api.checks import (
    check_fixed,
    check_measures,
    check_partitions,
    check_schema,
    check_time,
    new_identity,
)
from skewless.chop.tuner import MOST, first_batch
from skewless.control.batch_sizes import BatchSizes
from skewless.control.loop import Chosen, CopiesLoop, Loop
from skewless.control.tuning import Tuning
from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.core.windows import Windows
from skewless.spark.aggregate import Aggregation
from skewless.spark.apply import Applying
from skewless.spark.listen import register
from skewless.spark.route import column, delay_of
from skewless.spark.session import prepare
from skewless.spark.staging import shuffle_partitions

if TYPE_CHECKING:
    from skewless.api.keyed import KeyedStream

CHOPS = ("auto", "window", "batch", "pane")


def windowed(
    df: DataFrame,
    time: str,
    size: str | int,
    slide: str | int | None = None,
    watermark: str | None = None,
    *,
    workers: int | None = None,
    name: str = "windows",
) -> WindowedStream:
    """A stream cut into windows over all its rows, whatever their key, for functions of a whole window.

    Consecutive windows are of different workers, so that one stream without a key keeps all of them busy. For
    aggregates of all rows there is nothing to balance: Spark's `df.groupBy(window(...)).agg(...)` is best.

    Parameters
    ----------
    df
        A streaming or a batch DataFrame.
    time, size, slide, watermark
        As for `KeyedStream.window`.
    workers
        The number of workers that share the windows; Spark's shuffle partitions if not given.
    name
        The stream's name, shown in metrics and messages.
    """
    df, windows = windowing(df, time, size, slide, watermark)
    return WindowedStream(df, (), time, windows, check_fixed(workers) or shuffle_partitions(df), name)


def windowing(
    df: DataFrame, time: str, size: str | int, slide: str | int | None, watermark: str | None
) -> tuple[DataFrame, Windows]:
    """The rows with their watermark, and the windows, checked."""
    check_time(df, time)
    for name, length in (("size", size), ("slide", slide)):
        if isinstance(length, bool):
            raise SkewlessError(f"{name} is {length}; give Spark's words, such as '1 minute', or a number of rows")
    if isinstance(size, int):
        if watermark is not None or isinstance(slide, str):
            raise SkewlessError(
                f"windows of {size} rows are over when their rows are there: give the slide in rows too, such as "
                f"slide={max(1, size // 10)}, and no watermark="
            )
        return df, Windows(size, size if slide is None else slide, rows=True)
    if isinstance(slide, int):
        raise SkewlessError(f"size is {size!r} and slide {slide}; give both in Spark's words, or both in rows")
    windows = Windows.of(size, slide)
    return (df if watermark is None else with_watermark(df, time, watermark)), windows


@dataclass(frozen=True, eq=False)
class WindowedStream:
    """A description of rows cut into windows; made by `windowed` or `KeyedStream.window`. It never changes."""

    df: DataFrame
    keys: tuple[str, ...]
    time: str
    windows: Windows
    workers: int
    name: str

    def apply(
        self,
        function: Callable[..., Any],
        schema: str | StructType,
        *,
        pane: Callable[..., Any] | None = None,
        chop: str = "auto",
        max_latency: str | None = None,
        batch: int | None = None,
        arrow: bool = False,
        tune: str | None = None,
        folder: str | None = None,
    ) -> DataFrame:
        """Run a function on all rows of each window of each key.

        The result has `window`, a struct of `start` and `end`, the key columns, and the columns of the schema. Windows
        of a key without rows have none. Each window is given once, when it is over: use outputMode "append".

        Parameters
        ----------
        function
            `function(key, window, rows)`: the key as a tuple, the window with `start` and `end`, and the rows sorted by
            time as a pandas frame. It gives a frame with the columns of the schema; or a tuple for one row, a list of
            tuples, or None. With `pane=` it is `function(key, window, answers)`, and is given what that function gave
            for the panes of the window that have rows, in order of time.
        schema
            The columns that the function gives, in Spark's words: "median double".
        pane
            `pane(key, pane, rows)`, a function of the rows of a pane, the longest stretch that no edge of a window
            cuts. It gives anything that pickles.
        chop
            How time is cut. "window": consecutive windows are of different workers. "batch": batches of consecutive
            windows are, so that fewer rows are needed in two places. "pane": with `pane=`; no row is needed twice.
            "auto": panes with `pane=`, else batches.
        max_latency
            How long after its end a window may wait for others, such as "30 seconds", so that they are worked on
            together. Without it each is worked on in the micro-batch in which the watermark passes it.
        batch
            The number of windows in a batch, instead of as many as the tuner chooses.
        arrow
            Whether rows are given as a `pyarrow.Table`. The function may give tables either way.
        tune
            How often the size of batches is chosen anew while the query runs, such as "30 seconds", by what windows of
            this stream were measured to cost. Without it, the size is chosen once, by what windows usually cost.
        folder
            A folder that belongs to the query as its checkpoint does, needed with `tune=` for streams. The driver and
            all executors must be able to write it.
        """
        latency = None if max_latency is None else microseconds(max_latency) / 1e6
        chop = self._chop(function, pane, chop)
        self._check(chop, latency, batch, tune, folder)
        result = check_schema(schema, ("window", *self.keys))
        check_partitions(self.df, self.workers, "windows")
        if chop != "batch":
            batch = 1
        elif batch is None:
            batch = first_batch(self.windows, self.workers, latency)
        applying = Applying(
            self.df,
            self.keys,
            self.time,
            self.windows,
            function,
            pane,
            result,
            self.workers,
            batch,
            together=latency is not None,
            arrow=arrow,
        )
        stream = new_identity()
        if not self.df.isStreaming:
            return applying.run(stream)
        spark = self.df.sparkSession
        prepare(spark)
        chosen = Chosen(f"chopped by {chop}", _why(chop, batch, tuned=tune is not None))
        loop: Loop = CopiesLoop(self.name, self.workers, chosen)
        if tune is not None and folder is not None:
            sizes, wait = applying.assignment(), latency or self.windows.size / 1e6
            # Stream time may run faster than the clock: no window waits longer than that in either.
            most = MOST if latency is None else min(MOST, 1 + int(latency * 1e6) // self.windows.slide)
            at = BatchSizes.at(folder, stream)
            loop = Tuning(self.name, at, sizes, wait, microseconds(tune) / 1e6, chosen, most)
            register(spark, stream, loop)
            return applying.adaptively(at, stream)
        register(spark, stream, loop)
        return applying.run(stream)

    def _chop(self, function: object, pane: object, chop: str) -> str:
        for name, given in (("function", function), ("pane", pane)):
            if not callable(given) and (given is not None or name == "function"):
                raise SkewlessError(f"{name} is {given!r}; give a function(key, window, rows)")
        if chop not in CHOPS:
            raise SkewlessError(f"no chop {chop!r}; there are {', '.join(CHOPS)}")
        if chop == "auto":
            return "batch" if pane is None else "pane"
        if chop == "pane" and pane is None:
            raise SkewlessError(
                "panes need two functions, one of the rows of a pane and one of its answers for the panes of a window: "
                "apply(of_window, schema, pane=of_pane)"
            )
        if chop != "pane" and pane is not None:
            raise SkewlessError(f"chop is {chop!r}, which takes one function of the rows of a window; leave pane= out")
        return chop

    def _check(self, chop: str, latency: float | None, batch: int | None, tune: str | None, folder: str | None) -> None:
        if self.df.isStreaming and not self.windows.rows:
            check_watermark(self.df, self.time)
        if batch is not None and chop != "batch":
            raise SkewlessError(f"batch is {batch}, but windows are chopped by {chop}; give chop='batch'")
        if latency is not None and (chop != "batch" or self.windows.rows):
            raise SkewlessError(
                "max_latency lets the windows of a batch wait for each other; it needs windows of time and chop='batch'"
            )
        if tune is None:
            if folder is not None:
                raise SkewlessError(f"folder is {folder!r}, which is for tuning: give tune= with it, or leave it out")
            return
        if chop != "batch" or batch is not None or self.windows.rows:
            raise SkewlessError(
                f"tune is {tune!r}, for batches of windows of time whose size is chosen: leave it out, or have "
                "chop='batch' without batch="
            )
        if self.df.isStreaming and folder is None:
            raise SkewlessError(
                f"tune is {tune!r}, and what is learned needs a folder: apply(..., folder='/data/sizes'), beside "
                "the checkpoint and kept with it"
            )


@dataclass(frozen=True, eq=False)
class KeyedWindows:
    """A description of keyed rows cut into windows; made by `KeyedStream.window`. It never changes.

    Every call that ends it, `agg`, `changes` or `apply`, makes a stream of its own.
    """

    keyed: KeyedStream
    time: str
    windows: Windows
    words: tuple[str | int, str | int | None]

    def agg(self, *, folder: str | None = None, **aggregates: Measure) -> DataFrame:
        """Aggregate each window of each key.

        The result has the columns and the values of Spark's `groupBy(window(...), *keys).agg(...)`: `window`, a struct
        of `start` and `end`, the key columns, and the aggregates by name. A stream gives each window once, when the
        watermark has passed it: use outputMode "append".

        Parameters
        ----------
        folder
            A folder for the routing policy of a stream, which the driver can write and all executors can read; the
            setting `spark.skewless.folder` if not given, or on one machine a private folder.
        aggregates
            The columns of the result: `agg(n=sk.count(), spent=sk.sum("price"))`.
        """
        if self.keyed.df.isStreaming and not self.windows.rows:
            check_watermark(self.keyed.df, self.time)
        return self._run(self._aggregation(aggregates, updating=False), folder)

    def changes(self, *, folder: str | None = None, **aggregates: Measure) -> DataFrame:
        """Aggregate each window of each key, and give in every micro-batch the windows that changed in it.

        Use outputMode "update" for the query. The columns are those of `agg`; without a watermark no window is ever
        forgotten.

        Parameters
        ----------
        folder, aggregates
            As for `agg`.
        """
        if not self.keyed.df.isStreaming:
            raise SkewlessError("a batch has no micro-batches in which windows could change; use agg(...)")
        return self._run(self._aggregation(aggregates, updating=True), folder)

    def apply(self, function: Callable[..., Any], schema: str | StructType, **options: Any) -> DataFrame:
        """Run a function on all rows of each window of each key; see `WindowedStream.apply`."""
        self.keyed.refuse_words("split", "place", call="apply(...)", why="deals out windows, not keys")
        stream = self.keyed
        check_fixed(stream.asked_workers)
        windows = WindowedStream(stream.df, stream.keys, self.time, self.windows, stream.workers, stream.name)
        return windows.apply(function, schema, **options)

    def explain(self, **aggregates: Measure) -> str:
        """In words, what `agg` would run for these aggregates, and why."""
        return self.keyed.explained(self._aggregation(aggregates, updating=False))

    def _aggregation(self, aggregates: dict[str, Measure], *, updating: bool) -> Aggregation:
        if self.windows.rows:
            raise SkewlessError("aggregates are over windows of time; for windows of so many rows use apply(...)")
        keyed = self.keyed
        measures = check_measures(keyed.df, aggregates, ("window", *keyed.keys))
        return Aggregation(keyed.df, keyed.keys, measures, self.windows, self.time, updating)

    def _run(self, aggregation: Aggregation, folder: str | None) -> DataFrame:
        def window() -> Any:
            return F.window(column(aggregation.df, self.time), *self.words)  # type: ignore[arg-type]  # of time

        return self.keyed.aggregate(aggregation, folder, window)


def with_watermark(df: DataFrame, time: str, watermark: str) -> DataFrame:
    """The rows of a stream with their watermark; a batch needs none."""
    microseconds(watermark, zero=True)  # to refuse it in our words
    if not df.isStreaming:
        return df
    if isinstance(df.schema[time].dataType, TimestampNTZType):
        raise SkewlessError(
            f"the time column {time!r} has no time zone, and Spark has no watermark for such; cast it first: "
            f'df.withColumn("{time}", F.col("{time}").cast("timestamp"))'
        )
    return df.withWatermark(time, watermark)


def with_event_time(df: DataFrame, time: str | None, watermark: str | None, ttl: str | None) -> DataFrame:
    """The rows with their watermark, if they have a column of time; refused where keys could not age by it."""
    if time is not None:
        check_time(df, time)
        df = df if watermark is None else with_watermark(df, time, watermark)
    elif watermark is not None:
        raise SkewlessError("a watermark is of a column of event time: name it with time=")
    if ttl is not None and df.isStreaming and (time is None or delay_of(df, time) is None):
        raise SkewlessError(
            f"ttl is {ttl!r}, and keys age by the watermark, of which there is none: "
            'name time= and watermark=, such as process(..., time="ts", watermark="10 seconds")'
        )
    return df


def check_watermark(df: DataFrame, time: str) -> None:
    """Refuse windows of a stream that would never close."""
    if delay_of(df, time) is None:
        raise SkewlessError(
            "windows close by a watermark, and there is none: say how late rows may come, such as "
            'window(..., watermark="10 seconds"), or use changes(...), which gives windows as they change'
        )


def _why(chop: str, batch: int, *, tuned: bool) -> str:
    if chop == "pane":
        return "each pane worked on once, and its answer passed to the next worker in the ring where that needs it"
    now = ", until the tuner knows better" if tuned else ""
    return f"{batch} consecutive windows of a key to one worker, and the next to the next{now}"
