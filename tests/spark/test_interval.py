"""Intervals against Spark's own reading of them."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds

GOOD = [
    "10 seconds",
    "1 minute 30 seconds",
    "interval 2 hours",
    "INTERVAL\t2 Hours",
    "interval -1 hour 2 hours 1.5 seconds",
    "1.5 seconds",
    ".25 second",
    "1. second",
    "1.123456789 seconds",
    "500 milliseconds",
    "7 microseconds",
    "1 week",
    " 1 day\n",
    "1 hour -30 minutes",
    "- 1 minute + 2 minutes",
    "1 second 1 second",
]
BAD = [
    "1 month",
    "1 day 2 years",
    "0 seconds",
    "-5 seconds",
    "1 second -1 minute",
    "",
    "interval",
    "intervals 5 seconds",
    "10seconds",
    "ten seconds",
    "10",
    "10 seconds and",
    ". seconds",
    "1.1234567891 seconds",
    "5 parsecs",
    "5 s",
    "5 secondss",
    "1.5 minutes",
    "1. minutes",
    "9223372036854775808 microseconds",
]


@pytest.fixture(scope="module")
def moment(spark: SparkSession) -> DataFrame:
    return spark.sql("select timestamp_micros(0) as ts")


def test_spark_makes_windows_of_that_length(moment: DataFrame) -> None:
    lengths = {}
    for text in GOOD:  # Spark allows one window in a select
        window = moment.select(F.window("ts", text).alias("w"))
        lengths[text] = window.select(F.unix_micros("w.end") - F.unix_micros("w.start")).collect()[0][0]
    assert lengths == {text: microseconds(text) for text in GOOD}


@pytest.mark.parametrize("text", BAD)
def test_what_is_refused_spark_refuses_too(moment: DataFrame, text: str) -> None:
    with pytest.raises(SkewlessError):
        microseconds(text)
    with pytest.raises(PySparkException):
        moment.select(F.window("ts", text)).collect()
