"""What `KeyedStream.process` is asked for, checked before anything runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.operators.process import Processor, SlotProcessor
from skewless.operators.process.calls import GROUP
from skewless.spark.aggregate import check_time, delay_of
from skewless.spark.process import Processing, fields_of, structure
from skewless.spark.route import column


def processing_of(
    df: DataFrame,
    keys: tuple[str, ...],
    processor: Processor,
    schema: str | StructType,
    order: tuple[str, ...],
    time: str | None,
    watermark: str | None,
) -> Processing:
    """A processor on the rows of a keyed stream; see `KeyedStream.process`."""
    if not isinstance(processor, Processor):
        raise SkewlessError(f"{processor!r} is no processor; subclass sk.Processor and give an instance of it")
    for each in (*order, *([time] if time else [])):
        column(df, each)
    if time is not None:
        check_time(df, time)
        if watermark is not None and df.isStreaming:
            microseconds(watermark, zero=True)
            df = df.withWatermark(time, watermark)
    elif watermark is not None:
        raise SkewlessError("a watermark is of a column of event time: name it with time=")
    if processor.ttl is not None and df.isStreaming and (time is None or delay_of(df, time) is None):
        raise SkewlessError(
            f"ttl is {processor.ttl!r}, and keys age by the watermark, of which there is none: "
            'name time= and watermark=, such as process(..., time="ts", watermark="10 seconds")'
        )
    _check_names(df, keys, processor)
    return Processing(df, keys, processor, structure(schema) if isinstance(schema, str) else schema, order, time)


def _check_names(df: DataFrame, keys: tuple[str, ...], processor: Processor) -> None:
    """Refuse names that a slot's tables have already."""
    fields = fields_of(processor).names
    twice = sorted({name for name in fields if fields.count(name) > 1})
    if twice:
        raise SkewlessError(f"the state has two fields {twice[0]!r}; give one another name")
    if not isinstance(processor, SlotProcessor):
        return
    for name in fields:
        if name == "timer" or name in keys:
            has = "is the key's timer" if name == "timer" else "is a key column"
            raise SkewlessError(
                f"a state field is named {name!r}, which {has} in the table of states; rename the field"
            )
    if GROUP in df.columns:
        raise SkewlessError(
            f"the rows have a column {GROUP!r}, which numbers the keys in what process_slot is given; rename it first: "
            f'df.withColumnRenamed("{GROUP}", "...")'
        )
