"""The face of skewless: `keyed(df, ...)` and what can be done with a keyed stream."""

from __future__ import annotations

import uuid

import numpy as np
from pyspark.sql import DataFrame

from skewless import split
from skewless.errors import SkewlessError
from skewless.policy import Policy
from skewless.spark.loop import Loop, histogram_of, observed
from skewless.spark.policy_file import PolicyFile, policy_frame
from skewless.spark.route import column, exchange, with_key, with_worker
from skewless.split import Splitter


def keyed(
    df: DataFrame, *keys: str, workers: int | None = None, strategy: str | Splitter = "auto", name: str | None = None
) -> KeyedStream:
    """A stream of rows with a key, to be spread evenly over workers.

    Parameters
    ----------
    df
        A streaming or a batch DataFrame.
    keys
        The columns that make up the key. Rows with a null in one are a key like any other.
    workers
        Workers that share the rows; Spark's shuffle partitions if not given.
    strategy
        Name of a splitter ("dalton", "hash", ...) or one made by hand; "auto" chooses.
    name
        Of the stream, in metrics and messages.
    """
    if not keys:
        raise SkewlessError(f"which columns are the key? Name one or more of {', '.join(df.columns)}")
    for each in keys:
        column(df, each)
    if workers is None:
        workers = strategy.workers if isinstance(strategy, Splitter) else int(_shuffle_partitions(df))
    if isinstance(strategy, str):
        splitter = split.make("dalton" if strategy == "auto" else strategy, workers)
    elif strategy.workers != workers:
        raise SkewlessError(f"the strategy is for {strategy.workers} workers, but workers is {workers}; give it once")
    else:
        splitter = strategy
    return KeyedStream(df, keys, splitter, name or f"skewless-{uuid.uuid4().hex[:8]}", chosen=strategy == "auto")


class KeyedStream:
    """Rows with a key, and the splitter that decides which worker gets each; made by `keyed`."""

    def __init__(self, df: DataFrame, keys: tuple[str, ...], splitter: Splitter, name: str, *, chosen: bool) -> None:
        self.df, self.keys, self.splitter, self.name = df, keys, splitter, name
        self._chosen = chosen
        self._loop: Loop | None = None

    @property
    def workers(self) -> int:
        """Workers that share the rows."""
        return self.splitter.workers

    @property
    def policy(self) -> Policy:
        """The policy that routes right now."""
        return self._loop.policy if self._loop else Policy.of(self.workers)

    def await_learned(self, batches: int, timeout: float = 60.0) -> bool:
        """Wait until the query has learned from so many micro-batches; false if that takes over `timeout` seconds.

        Learning never holds up a query, so what follows a batch may come before its policy; tests want to wait.
        """
        return self._loop is not None and self._loop.wait_until(batches, timeout)

    def repartition(self) -> DataFrame:
        """The rows, one Spark partition for each worker, balanced.

        A streaming query starts with plain hashing and follows a new policy from one micro-batch to the next. A batch
        DataFrame is read twice: once to count its hot keys, and then to route it.
        """
        routed = self._stream() if self.df.isStreaming else self._batch()
        return exchange(routed, self.workers)

    def explain(self) -> str:
        """In words, which strategy routes the rows and why."""
        why = "chosen because it balances hot keys with the fewest fragments" if self._chosen else "as asked"
        how = "learning from each micro-batch" if self.df.isStreaming else "from one pass over the data"
        lines = [f"{self.name}: {self.splitter.name} over {self.workers} workers, {why}, {how}."]
        most = sorted(self.policy.keys.tolist(), key=lambda key: -len(set(self.policy.lanes_of(key).tolist())))
        for key in most[:10]:
            workers, lanes = np.unique(self.policy.lanes_of(key), return_counts=True)
            shares = (f"{worker} ({share:.0%})" for worker, share in zip(workers, lanes / lanes.sum(), strict=True))
            lines.append(f"key hash {key} is on workers {', '.join(shares)}")
        text = "\n".join(lines)
        print(text)
        return text

    @property
    def _shuffles(self) -> bool:
        return isinstance(self.splitter, split.Shuffle)

    def _stream(self) -> DataFrame:
        spark = self.df.sparkSession
        if self._loop is None:
            self._loop = Loop(self.name, self.splitter, PolicyFile.for_session(spark))
            spark.streams.addListener(self._loop)
        measured = self._loop.measure(with_key(self.df, self.keys))
        return with_worker(measured, self._loop.file.read(spark), self.workers, shuffle=self._shuffles)

    def _batch(self) -> DataFrame:
        hashed = with_key(self.df, self.keys)
        histogram = histogram_of(hashed.agg(*observed(self.workers)).collect()[0])
        policy = Policy.of(self.workers) if histogram is None else self.splitter.plan(histogram)
        frame = policy_frame(self.df.sparkSession, policy)
        return with_worker(hashed, frame, self.workers, shuffle=self._shuffles)


def _shuffle_partitions(df: DataFrame) -> str:
    partitions = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
    assert partitions is not None  # Spark has a default
    return partitions
