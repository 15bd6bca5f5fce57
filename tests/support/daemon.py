"""Spark's daemon of Python workers, with what they need imported before it forks them: they start at once."""

# ruff: noqa: F401 - nothing else is done with what is imported
from __future__ import annotations

import pandas
import pyspark.worker
from pyspark.daemon import manager

import skewless.operators.panes.worker
import skewless.operators.process.worker
import skewless.operators.windows.adaptive
import skewless.spark.result
import skewless.spark.stage

if __name__ == "__main__":
    manager()
