"""Functions of whole windows: what is refused, before anything runs or when a function gives what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.api.windowed import KeyedWindows, WindowedStream

HOUR = datetime(2026, 3, 29, 1, tzinfo=timezone.utc)
Asking = Callable[[DataFrame], object]


@pytest.fixture(scope="module")
def some(spark: SparkSession) -> DataFrame:
    """Rows of two keys, a minute apart."""
    rows = [(key, float(i), HOUR + timedelta(minutes=i)) for i in range(6) for key in ("a", "b")]
    return spark.createDataFrame(rows, "k string, v double, ts timestamp")


@pytest.fixture(scope="module")
def rates(spark: SparkSession) -> DataFrame:
    """A stream without a watermark."""
    return spark.readStream.format("rate").load()


def count(key: tuple[Any, ...], window: Any, rows: Any) -> tuple[int]:
    return (len(rows),)


def apply(windows: KeyedWindows | WindowedStream, function: Any = count, schema: str = "n long", **more: Any) -> object:
    return windows.apply(function, schema, **more)


def minutes(df: DataFrame, **more: Any) -> KeyedWindows:
    return sk.keyed(df, "k", **more).window("ts", "1 minute", "10 seconds")


def of_all(df: DataFrame) -> WindowedStream:
    return sk.windowed(df, "ts", "1 minute", "10 seconds")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((1.0,), r"a function gave \(1.0,\) as a row; give a tuple of \(n, name\)"),
        (("x", "y"), r"a function gave a n that is no int64"),
        (pd.DataFrame({"n": [1]}), r"a function gave the columns n, and name is missing"),
        (7, r"a function gave 7; give a tuple of \(n, name\)"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(some: DataFrame, given: Any, words: str) -> None:
    result = sk.windowed(some, "ts", "1 hour").apply(lambda key, window, rows: given, "n long, name string")
    with pytest.raises(PythonException, match=f"SkewlessError: {words}"):
        result.collect()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda df: apply(minutes(df), chop="row"), "no chop 'row'; there are auto, window, batch, pane"),
        (lambda df: apply(minutes(df), pane=count, chop="batch"), "chop is 'batch', which takes one function"),
        (lambda df: apply(minutes(df), pane=count, chop="window"), "chop is 'window', which takes one function"),
        (
            lambda df: apply(minutes(df), chop="pane"),
            r"panes need two functions.*apply\(of_window, schema, pane=of_pane",
        ),
        (lambda df: apply(minutes(df), 3), r"function is 3; give a function\(key, window, rows\)"),
        (lambda df: apply(minutes(df), (count, count)), "function is .*; give a function"),
        (lambda df: apply(minutes(df), None), "function is None; give a function"),
        (lambda df: apply(minutes(df), pane=3), "pane is 3; give a function"),
        (lambda df: apply(minutes(df), schema="n long, window long"), "a column 'window' already"),
        (lambda df: apply(minutes(df), schema="k string"), "a column 'k' already"),
    ],
)
def test_functions_and_their_schema(some: DataFrame, ask: Asking, words: str) -> None:
    with pytest.raises(sk.SkewlessError, match=words):
        ask(some)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda df: apply(minutes(df, split="dalton")),
            r"split is 'dalton', but apply\(...\) deals out windows, not keys",
        ),
        (
            lambda df: apply(minutes(df, split="local")),
            r"split is 'local', but apply\(...\) deals out windows, not keys",
        ),
        (lambda df: apply(minutes(df, split=sk.split.Dalton(2))), r"split is 'dalton', but apply\(...\)"),
        (lambda df: apply(minutes(df, place="even")), r"place is 'even', but apply\(...\).*leave place= out"),
        (lambda df: apply(minutes(df, workers=9)), "workers is 9; windows can have up to 2, the shuffle partitions"),
        (lambda df: sk.windowed(df, "ts", "1 minute", workers=0), "workers is 0; give at least 1"),
        (lambda df: apply(sk.windowed(df, "ts", "1 minute", workers=9)), "workers is 9; windows can have up to 2"),
    ],
)
def test_who_has_the_windows(some: DataFrame, ask: Asking, words: str) -> None:
    with pytest.raises(sk.SkewlessError, match=words):
        ask(some)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda df: apply(minutes(df), chop="window", batch=2), "batch is 2, but windows are chopped by window"),
        (lambda df: apply(minutes(df), pane=count, batch=2), "batch is 2, but windows are chopped by pane"),
        (lambda df: apply(minutes(df), chop="batch", batch=0), "a batch of 0 windows"),
        (lambda df: apply(minutes(df), chop="window", max_latency="1 second"), "max_latency lets the windows"),
        (lambda df: apply(minutes(df), pane=count, max_latency="1 second"), "max_latency lets the windows"),
        (lambda df: apply(minutes(df), max_latency="soon"), "'soon' is not an interval"),
        (lambda df: apply(sk.windowed(df, "ts", 3), max_latency="1 second"), "max_latency lets the windows"),
        (lambda df: apply(minutes(df), folder="sizes"), "folder is 'sizes', which is for tuning: give tune="),
        (lambda df: apply(minutes(df), chop="window", tune="1 second"), "tune is '1 second', for batches of windows"),
        (lambda df: apply(minutes(df), pane=count, tune="1 second"), "tune is '1 second', for batches of windows"),
        (lambda df: apply(minutes(df), batch=2, tune="1 second"), "tune is '1 second', for batches of windows"),
        (lambda df: apply(sk.windowed(df, "ts", 3), tune="1 second"), "tune is '1 second', for batches of windows"),
    ],
)
def test_how_windows_are_dealt_out(some: DataFrame, ask: Asking, words: str) -> None:
    with pytest.raises(sk.SkewlessError, match=words):
        ask(some)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda df: apply(sk.windowed(df, "ts", 3), pane=count, max_latency="1 second"),
            "max_latency lets the windows",
        ),
        (lambda df: sk.windowed(df, "ts", 3, watermark="1 second"), "windows of 3 rows are over.*and no watermark="),
        (lambda df: sk.windowed(df, "ts", 30, "1 second"), "give the slide in rows too, such as slide=3"),
        (lambda df: sk.windowed(df, "ts", "1 minute", 3), "size is '1 minute' and slide 3; give both in Spark's words"),
        (lambda df: sk.keyed(df, "k").window("ts", 3, watermark="1 second"), "windows of 3 rows are over"),
        (lambda df: sk.windowed(df, "ts", 3, 5), "slide 5 is longer than size 3"),
        (lambda df: sk.windowed(df, "ts", 0), "the size of a window is 0; give a whole number"),
        (lambda df: sk.windowed(df, "v", "1 minute"), "the time column 'v' is of type double"),
        (lambda df: sk.keyed(df, "k").window("ts", 3).agg(n=sk.count()), "aggregates are over windows of time"),
        (lambda df: minutes(df).changes(n=sk.count()), r"a batch has no micro-batches.*use agg\(...\)"),
    ],
)
def test_windows_that_make_no_sense(some: DataFrame, ask: Asking, words: str) -> None:
    with pytest.raises(sk.SkewlessError, match=words):
        ask(some)


def test_there_is_no_key_to_balance_in_windows_of_all_rows(some: DataFrame) -> None:
    windows = of_all(some)
    assert not hasattr(windows, "agg")
    assert not hasattr(windows, "changes")


def test_options_are_given_by_name(some: DataFrame) -> None:
    for windows in (minutes(some), of_all(some)):
        with pytest.raises(TypeError):
            windows.apply(count, "n long", count)  # type: ignore[call-arg]  # that is what is tested


@pytest.mark.parametrize(
    "ask",
    [
        lambda df: apply(sk.windowed(df, "timestamp", "1 minute")),
        lambda df: apply(sk.keyed(df, "value").window("timestamp", "1 minute")),
        lambda df: sk.keyed(df, "value").window("timestamp", "1 minute").agg(n=sk.count()),
    ],
)
def test_windows_of_a_stream_close_by_a_watermark(rates: DataFrame, ask: Asking) -> None:
    with pytest.raises(sk.SkewlessError, match=r"windows close by a watermark, and there is none.*changes\(...\)"):
        ask(rates)


def test_what_a_stream_learns_of_its_windows_needs_a_folder(rates: DataFrame) -> None:
    windows = sk.windowed(rates, "timestamp", "1 minute", watermark="1 second")
    with pytest.raises(sk.SkewlessError, match="tune is '30 seconds', and what is learned needs a folder"):
        windows.apply(count, "n long", tune="30 seconds")
