"""Spark's daemon of Python workers, with what they need imported before it forks them: they start at once."""

from __future__ import annotations

from pyspark.daemon import manager

import skewless.operators.panes.worker
import skewless.operators.process.worker
import skewless.operators.windows.adaptive
import skewless.spark.result
import skewless.spark.stage  # noqa: F401 - as all others

if __name__ == "__main__":
    manager()
