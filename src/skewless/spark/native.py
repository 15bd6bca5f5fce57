"""Spark's own functions for the aggregates that it has."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.aggregate import Measure
from skewless.aggregate.numeric import Count, Mean, Std, Sum, Var
from skewless.aggregate.order import Max, Min
from skewless.spark.route import column

_FUNCTIONS = {Sum: F.sum, Min: F.min, Max: F.max, Mean: F.avg, Var: F.var_samp, Std: F.stddev_samp}


def natives(df: DataFrame, measures: Mapping[str, Measure]) -> list[Column] | None:
    """A column of Spark's own for each measure; None where one has no equal there."""
    columns = [_native(df, measure) for measure in measures.values()]
    named = [found.alias(name) for name, found in zip(measures, columns, strict=True) if found is not None]
    return named if len(named) == len(measures) else None


def _native(df: DataFrame, measure: Measure) -> Column | None:
    if type(measure) is Count:
        return F.count(column(df, measure.columns[0]) if measure.columns else F.lit(1))
    function = _FUNCTIONS.get(type(measure))
    return None if function is None else function(column(df, measure.columns[0]))
