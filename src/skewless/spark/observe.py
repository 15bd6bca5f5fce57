"""The loop of a keyed stream: what a micro-batch observed becomes the policy of the next.

Measure: `observe` counts the rows and the most frequent keys in the job itself, in the JVM. Analyse and plan: a
listener on the driver hands them to the splitter. Activate: the new policy replaces the file that every micro-batch
reads. Spark tells of a batch when the next has begun, and does not wait for the listener, so a policy is in force two
batches after what it is about, or later where batches take less time than planning. A restarted driver learns anew.
"""

from __future__ import annotations

import logging
import threading

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress

from skewless.core.counts import Counts
from skewless.core.hashing import SEED
from skewless.core.policy import Policy
from skewless.spark.policy_file import PolicyFile
from skewless.spark.route import KEY
from skewless.split import Splitter

log = logging.getLogger("skewless")

SAMPLE = 8
"""Of so many rows of a stream one goes into the sketch of its keys, which costs more than all else that is observed."""
_SAMPLED = "__skewless_sampled"


def keys_to_watch(workers: int) -> int:
    """How many of the most frequent keys are told apart: more than can be hot, within reason."""
    return min(1024, max(64, 8 * workers))


def observed(workers: int, key: str = KEY, sample: int = 1) -> list[Column]:
    """What to observe: how many rows there are, and the most frequent values of `key`, one of so many rows' key."""
    most = keys_to_watch(workers)
    top = F.expr(f"approx_top_k({key}, {most}, {16 * most})")
    return [F.count(F.lit(1)).alias("rows"), top.alias("top"), F.lit(sample).alias("sample")]


def measured(df: DataFrame, name: str, workers: int) -> DataFrame:
    """Rows of a stream that have their `KEY`, observed under a name."""
    # A key that is left out is null, which the sketch counts apart and fast.
    sampled = df.withColumn(_SAMPLED, F.when(F.rand(SEED) < 1 / SAMPLE, F.col(KEY)))
    return sampled.observe(name, *observed(workers, _SAMPLED, SAMPLE)).drop(_SAMPLED)


def exact_counts(rows: DataFrame) -> Counts | None:
    """Every key of rows that have their `KEY`, counted; None without rows."""
    counted = rows.groupBy(KEY).count().toArrow()
    if not counted.num_rows:
        return None
    keys, counts = np.array(counted[KEY]), np.array(counted["count"])
    return Counts(keys, counts, int(counts.sum()))


def counts_of(row: Row) -> Counts | None:
    """The seen in what `observed` gave; None for a batch without rows."""
    if not row["rows"]:
        return None
    top = [(item["item"], item["count"]) for item in row["top"] if item["item"] is not None]
    keys = np.array([key for key, _ in top], dtype=np.int64)
    # The sketch counts too high where it is unsure, though never by much.
    counts = np.array([count for _, count in top], dtype=np.int64) * row["sample"]
    total = max(int(row["rows"]), int(counts.sum()))
    return Counts(keys, counts, total)


class Loop:
    """Learns from every micro-batch of a stream and writes the next policy.

    A learner that raises never fails the query: that is logged once, and the last policy stays.

    Parameters
    ----------
    name
        Of the stream: its observations bear it.
    splitter
        Plans the policies.
    file
        Where they go.
    """

    def __init__(self, name: str, splitter: Splitter, file: PolicyFile) -> None:
        self.name, self.splitter, self.file = name, splitter, file
        self.policy: Policy = Policy.of(splitter.workers)
        self.batches = 0
        self._learned = threading.Condition()
        self._failed = False
        file.write(self.policy)

    def measure(self, df: DataFrame) -> DataFrame:
        """The same rows, observed."""
        return measured(df, self.name, self.splitter.workers)

    def learn(self, seen: Counts) -> None:
        """Plan for what was observed and make it the policy."""
        try:
            self.policy = self.splitter.plan(seen)
            self.file.write(self.policy)
        except Exception:  # whatever it is, the query must go on
            if not self._failed:
                log.exception("stream %s: no new routing policy; the last one stays", self.name)
            self._failed = True
        with self._learned:
            self.batches += 1
            self._learned.notify_all()

    def wait_until(self, batches: int, timeout: float) -> bool:
        """Wait until so many micro-batches were learned from; false if that took longer than `timeout` seconds."""
        with self._learned:
            return self._learned.wait_for(lambda: self.batches >= batches, timeout)

    def take(self, row: Row, _progress: StreamingQueryProgress) -> None:
        """Learn from what a micro-batch observed."""
        seen = counts_of(row)
        if seen is not None:
            self.learn(seen)
