"""Results of a query in order: `ordered(df, by=...)`, and the writer that holds back what came too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skewless.control.delivery import Order, Report
from skewless.control.outlet import Deliver, Outlet
from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.spark.ordered import in_one_order, query_of
from skewless.spark.result import SLIDE
from skewless.spark.route import column

_TIMES = T.TimestampType | T.TimestampNTZType
_WHOLE = T.ByteType | T.ShortType | T.IntegerType | T.LongType


def ordered(
    df: DataFrame,
    by: str = "window",
    max_disorder: int = 0,
    *,
    every: str | None = None,
    delay: str | int | None = None,
    parts: int | None = None,
) -> Ordered:
    """Deliver the rows of a query in the order of a column, or nearly.

    Parameters
    ----------
    df
        A streaming or a batch DataFrame.
    by
        The column to order by: windows (a struct with `start`, as `window()` gives), timestamps, or whole numbers.
    max_disorder
        Places by which two results may be out of order, 0 for strict order. A result is all rows of one window, or
        of one number, in one micro-batch.
    every
        The time from one result to the next, such as "1 second": rows are numbered by `start // every`. Not needed in
        strict order, nor for whole numbers or windows that know their slide.
    delay
        How far below the highest so far others may still come: "10 seconds", or a whole number where `by` is one. None
        if every micro-batch is complete up to its highest, as windows in append mode are.
    parts
        Micro-batches that the rows of a number come in at most. None is 1 where results may be out of order, and any
        in strict order: then all wait for `delay`, also where no number is missing.

    Examples
    --------
    `sk.ordered(views).write(deliver, "checkpoint/").start()` calls `deliver(rows, batch_id)` with an Arrow table.
    """
    repeated = [name for name, count in Counter(df.columns).items() if count > 1]
    if repeated:
        raise SkewlessError(f"there are several columns {repeated[0]!r}; give each a name of its own")
    column(df, by)
    _check_whole("max_disorder", max_disorder, 0, "the places by which results may be out of order")
    if parts is not None:
        _check_whole("parts", parts, 1, "how many micro-batches the rows of a number come in")
    elif max_disorder:
        parts = 1
    (field,) = [field for field in df.schema if field.name == by]
    kind = _kind(field)
    step = 1 if isinstance(kind, _WHOLE) and every is None else _step(field, kind, every, max_disorder)
    return Ordered(df, Order(by, step, _delay(by, kind, delay), max_disorder, parts))


class Ordered:
    """Rows to be delivered in order; made by `ordered`."""

    def __init__(self, df: DataFrame, order: Order) -> None:
        self.df, self.order = df, order
        self._outlets: dict[str, Outlet] = {}
        self._last: Outlet | None = None

    @property
    def waits(self) -> Report:
        """What order cost so far, for the stream that was written last; `print` it."""
        return self._last.report if self._last else Report()

    def sorted(self) -> DataFrame:
        """All rows of a batch DataFrame, sorted."""
        if self.df.isStreaming:
            raise SkewlessError(
                "the DataFrame is a stream, which has no last row to sort by; deliver its rows in order as they come: "
                'ordered(...).write(deliver, "checkpoint/").start()'
            )
        return self.df.orderBy(column(self.df, self.order.by))

    def write(self, deliver: Deliver, checkpoint: str, folder: str | None = None) -> DataStreamWriter:
        """A writer of the stream, to be started: `write(deliver, "checkpoint/").start()`.

        Parameters
        ----------
        deliver
            Called in the driver as `deliver(rows, batch_id)`, at most once in a micro-batch, with an Arrow table of the
            rows to deliver now. A micro-batch that is replayed gives the same rows with the same id again.
        checkpoint
            The folder of the query's checkpoint.
        folder
            A folder for the rows that are held back; `ordered` in the checkpoint if not given.
        """
        each = self.writer(deliver, _folder(checkpoint, folder))
        return self.df.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))

    def writer(self, deliver: Deliver, folder: str, first: int = 0) -> Callable[[DataFrame, int], None]:
        """The function for `foreachBatch`, for those who make the writer themselves.

        Parameters
        ----------
        deliver
            As for `write`.
        folder
            A folder for the rows that are held back: a path, or a URI that Arrow knows. It belongs to the checkpoint.
        first
            The first micro-batch: 0, unless the query ran before without order.
        """
        if not self.df.isStreaming:
            raise SkewlessError("the DataFrame is a batch, which has no micro-batches; sort it: ordered(...).sorted()")
        _check_deliver(deliver)
        _check_whole("first", first, 0, "the id of the first micro-batch")
        outlet = self._outlet(folder)
        outlet.first = first

        expected: tuple[int, str] | None = None  # the micro-batch that is next in this run, and its query

        def each(df: DataFrame, batch: int) -> None:
            nonlocal expected
            # To ask costs a small job, so it is done once a run.
            query = expected[1] if expected and expected[0] == batch else query_of(df.sparkSession)
            outlet.run(batch, in_one_order(df, self.order.by), deliver, query)
            expected = (batch + 1, query)

        return each

    def flush(self, deliver: Deliver, checkpoint: str, folder: str | None = None) -> None:
        """Deliver all that is still held back, in order, once the stream is over.

        The id of the micro-batch is -1 - i if i was the last one. If the query goes on later, what comes below the rows
        delivered here is late.

        Parameters
        ----------
        deliver, checkpoint, folder
            As for `write`.
        """
        _check_deliver(deliver)
        self._outlet(_folder(checkpoint, folder)).flush(deliver)

    def _outlet(self, folder: str) -> Outlet:
        """The one of this folder, so that a flush and a running query wait for each other."""
        retain = int(self.df.sparkSession.conf.get("spark.sql.streaming.minBatchesToRetain", "100") or 100)
        if folder not in self._outlets:
            self._outlets[folder] = Outlet(self.order, folder, retain)
        self._last = self._outlets[folder]
        return self._last


def _kind(field: T.StructField) -> T.DataType:
    """What rows are ordered by: the type of the column, or of a window's start."""
    kind = field.dataType
    if isinstance(kind, T.StructType) and "start" in kind.names:
        kind = kind["start"].dataType
        if isinstance(kind, _TIMES):
            return kind
    elif isinstance(kind, _TIMES | _WHOLE):
        return kind
    raise SkewlessError(
        f"column {field.name!r} is of type {field.dataType.simpleString()}, which is no order of results; order by "
        "windows with a start, by a timestamp or by a whole number, and cast it first if need be"
    )


def _step(field: T.StructField, kind: T.DataType, every: str | None, max_disorder: int) -> int:
    if every is not None:
        if isinstance(kind, _WHOLE):
            raise SkewlessError(
                f"every is {every!r}, and column {field.name!r} has whole numbers already; leave every out"
            )
        return microseconds(every)
    slide = field.metadata.get(SLIDE) if isinstance(field.dataType, T.StructType) else None
    if slide is not None:
        return int(slide)
    if max_disorder:
        raise SkewlessError(
            f"max_disorder is {max_disorder}, and how many results are between two times of column {field.name!r} is "
            'not known; give the slide of the windows, such as every="1 second", or max_disorder=0'
        )
    return 1


def _delay(by: str, kind: T.DataType, delay: str | int | None) -> int | None:
    if delay is None:
        return None
    if isinstance(kind, _WHOLE):
        if isinstance(delay, bool) or not isinstance(delay, int) or delay < 0:
            raise SkewlessError(
                f"delay is {delay!r}, and column {by!r} has whole numbers; give a whole number, at least 0, such as "
                "delay=10"
            )
        return delay
    return microseconds(delay, zero=True)  # type: ignore[arg-type]  # a number is refused in its words


def _folder(checkpoint: str, folder: str | None) -> str:
    return f"{str(checkpoint).rstrip('/')}/ordered" if folder is None else str(folder)


def _check_deliver(deliver: object) -> None:
    if not callable(deliver):
        raise SkewlessError(f"deliver is {deliver!r}; give a function that takes rows and the id of their micro-batch")


def _check_whole(name: str, value: object, least: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SkewlessError(f"{name} is {value!r}; give {what}, at least {least}")
