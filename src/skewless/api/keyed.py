"""The face of skewless: `keyed(df, ...)`, its windows, and what can be computed over them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from skewless import place, split
from skewless.aggregate import Measure
from skewless.aggregate.measure import TIME
from skewless.api.process import processing_of
from skewless.api.windowed import WindowedStream, measures_of, windowed_by
from skewless.control.location import Location
from skewless.control.placing import Placing, Rule, placed
from skewless.control.still import Still
from skewless.control.tuning import Tuning
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy
from skewless.core.windows import Windows
from skewless.operators.process import Processor
from skewless.place import Move, Placement, Placer
from skewless.spark.aggregate import Aggregation, shuffle_partitions
from skewless.spark.listen import listen
from skewless.spark.monitor import Monitor
from skewless.spark.native import natives
from skewless.spark.observe import Loop, counts_of, exact_counts, measured, observed
from skewless.spark.policy_file import PolicyFile, policy_frame
from skewless.spark.process import Processing
from skewless.spark.route import (
    KEY,
    WORKER,
    column,
    exchange,
    owner_column,
    with_key,
    with_planned_worker,
    with_worker,
)
from skewless.spark.session import prepare
from skewless.split import Splitter

_WHOLE = tuple(name for name in place.NAMES if name != "uniform")  # "hash" is its name here
PLACERS = ("auto", "hash", *_WHOLE)
SPLITTING = ("auto", "local", "spark", *split.NAMES)
STRATEGIES = (*SPLITTING, *_WHOLE)
_MOVELESS = ("local", "spark")


def keyed(
    df: DataFrame,
    *keys: str,
    workers: int | None = None,
    strategy: str | Splitter | Placer = "auto",
    name: str | None = None,
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
        "auto" chooses. Or the name of a splitter ("dalton", "hash", ...), or one made by hand; "local" combines rows
        where they lie; "spark" leaves everything to Spark's own operators. For `process`, a placer ("readj", "even",
        ...), or "hash" to place once and for ever.
    name
        Of the stream, in metrics and messages.
    """
    if not keys:
        raise SkewlessError(
            f"which columns are the key? Name one or more of {', '.join(df.columns)}; "
            "for windows over all rows there is sk.windowed(...)"
        )
    for each in keys:
        column(df, each)
    if isinstance(strategy, Splitter) and strategy.for_any:
        strategy = strategy.for_workers(shuffle_partitions(df) if workers is None else workers)
    if isinstance(strategy, Splitter):
        if workers not in (None, strategy.workers):
            raise SkewlessError(
                f"the strategy is for {strategy.workers} workers, but workers is {workers}; give it once"
            )
        workers = strategy.workers
    elif not isinstance(strategy, Placer) and strategy not in STRATEGIES:
        raise SkewlessError(f"no strategy {strategy!r}; there are {', '.join(STRATEGIES)}")
    if workers is None:
        workers = shuffle_partitions(df)
    elif workers < 1:
        raise SkewlessError(f"workers is {workers}; give at least 1, or None for Spark's shuffle partitions")
    return KeyedStream(df, keys, workers, strategy, name or f"skewless-{uuid.uuid4().hex[:8]}")


def windowed(
    df: DataFrame,
    time: str,
    size: str | Windows,
    slide: str | None = None,
    watermark: str | None = None,
    workers: int | None = None,
) -> WindowedStream:
    """A stream cut into windows over all its rows, whatever their key, for functions of a whole window.

    Consecutive windows are of different workers, so that one stream without a key keeps all of them busy.

    Parameters
    ----------
    df
        A streaming or a batch DataFrame.
    time, size, slide, watermark
        As for `KeyedStream.window`.
    workers
        Workers that share the windows; Spark's shuffle partitions if not given.
    """
    workers = shuffle_partitions(df) if workers is None else workers
    stream = KeyedStream(df, (), workers, "auto", f"skewless-{uuid.uuid4().hex[:8]}")
    return stream.window(time, size, slide, watermark)


class KeyedStream:
    """Rows with a key, and the strategy that decides which worker gets each; made by `keyed`."""

    def __init__(
        self, df: DataFrame, keys: tuple[str, ...], workers: int, strategy: str | Splitter | Placer, name: str
    ) -> None:
        self.df, self.keys, self.workers, self.name = df, keys, workers, name
        self._asked = strategy
        self._splitter = strategy if isinstance(strategy, Splitter) else None
        self._loop: Loop | None = None
        self._placing: Placing | None = None
        self._tuning: Tuning | None = None
        self._monitor: Monitor | None = None
        self._policy = Policy.of(workers)
        self._runs: tuple[str, str] | None = None  # the strategy that runs, and why
        if isinstance(strategy, str) and strategy in split.NAMES:
            self._splitter = split.make(strategy, workers)

    @property
    def splitter(self) -> Splitter:
        """What routes rows that travel."""
        if self._splitter is None:
            self._splitter = split.make("dalton", self.workers)
        return self._splitter

    @property
    def policy(self) -> Policy:
        """The policy that routes right now."""
        return self._loop.policy if self._loop else self._policy

    @property
    def loads(self) -> dict[int, int]:
        """Rows that each worker had in the last micro-batch of a query with windows or `process`; empty before that."""
        if self._placing:
            return self._placing.loads
        return self._monitor.loads if self._monitor else {}

    @property
    def imbalance(self) -> float | None:
        """Rows of the busiest worker over the average, in that micro-batch; None before it."""
        if self._placing:
            return self._placing.imbalance
        loads = self.loads
        workers = max(len(loads), self.workers if self._loop else 0)
        return max(loads.values()) * workers / sum(loads.values()) if loads else None

    def await_learned(self, batches: int, timeout: float = 60.0) -> bool:
        """Wait until the query has learned from so many micro-batches; false if that takes over `timeout` seconds.

        Learning never holds up a query, so what follows a batch may come before its policy; tests want to wait.
        """
        loop = self._placing or self._tuning or self._loop
        return loop is not None and loop.wait_until(batches, timeout)

    def repartition(self) -> DataFrame:
        """The rows, one Spark partition for each worker, balanced.

        A streaming query starts with plain hashing and follows a new policy from one micro-batch to the next. A batch
        DataFrame is read twice: once to count its hot keys, and then to route it.
        """
        if self._asked in _MOVELESS:
            raise SkewlessError(f"strategy {self._asked!r} moves no rows; to repartition choose 'auto' or a splitter")
        if self._places:
            return self._repartition_whole_keys()
        self._runs = self._routing("it balances hot keys with the fewest fragments")
        return exchange(self._routed(with_key(self.df, self.keys)).drop(KEY), self.workers)

    def window(
        self,
        time: str,
        size: str | Windows,
        slide: str | None = None,
        watermark: str | None = None,
        output: str = "append",
    ) -> WindowedStream:
        """Cut the rows into windows of time, or of so many rows.

        Parameters
        ----------
        time
            The column with the time of each row: a timestamp.
        size, slide
            In Spark's words, such as "10 minutes" and "30 seconds". Tumbling windows without a slide. Or
            `sk.rows(100, 10)` as the size, for windows of so many rows of a key: those of a micro-batch are counted in
            order of time, and a window is over when its last row is there.
        watermark
            How late rows may come, such as "10 seconds". Not needed where the DataFrame has its watermark already.
        output
            "append" gives each window once, when the watermark has passed it; "update" gives, in every micro-batch,
            the windows that changed. Use the same for the query's `outputMode`.
        """
        return windowed_by(self, time, size, slide, watermark, output)

    def agg(self, **aggregates: Measure) -> DataFrame:
        """Aggregate each key of a batch DataFrame: a row for every key.

        Parameters
        ----------
        aggregates
            The columns of the result: `agg(n=sk.count(), spent=sk.sum("price"))`.
        """
        if self.df.isStreaming:
            raise SkewlessError(
                "a stream never ends, so its aggregates need windows: "
                'add .window("time", size="1 minute", watermark="10 seconds") before .agg(...)'
            )
        measures = measures_of(self.df, aggregates, self.keys)
        for name, measure in measures.items():
            if TIME in measure.columns:
                raise SkewlessError(f"{name}={measure} goes by time, and there are no windows; name a column with by=")
        own = natives(self.df, measures)
        aggregation = Aggregation(self.df, self.keys, measures, None)

        def spark() -> DataFrame:
            assert own is not None
            return self.df.groupBy(*[column(self.df, key) for key in self.keys]).agg(*own)

        return self._aggregate(aggregation, None if own is None else spark, tumbling=True)

    def process(
        self,
        processor: Processor,
        schema: str | StructType,
        *,
        location: str | None = None,
        order: str | Sequence[str] = (),
        time: str | None = None,
        watermark: str | None = None,
        slots: int | None = None,
        rule: Rule | None = None,
    ) -> DataFrame:
        """Run a processor on the rows of each key, with state that stays on one worker and moves when it must.

        Parameters
        ----------
        processor
            What is done with the rows of a key.
        schema
            Of the result, in Spark's words: "user string, visits long".
        location
            A folder that belongs to the query as its checkpoint does: placements, and state on its way from one worker
            to another. Driver and executors must be able to write it. Needed for streams.
        order
            The column, or columns, by which the rows of a key in a micro-batch are sorted.
        time, watermark
            The column of event time and how late rows may come, for timers and `ttl`; later rows are dropped.
        slots
            Slots that keys share by their hash; 16 for each shuffle partition if not given.
        rule
            When state may move.
        """
        order = (order,) if isinstance(order, str) else tuple(order)
        processing = processing_of(self.df, self.keys, processor, schema, order, time, watermark)
        df = processing.df
        partitions = shuffle_partitions(df)
        if self.workers > partitions:
            raise SkewlessError(
                f"workers is {self.workers}; a processor can have up to {partitions}, its shuffle partitions: "
                "set spark.sql.shuffle.partitions first for more"
            )
        if not df.isStreaming:
            rows, placer = processing.rows(), self._placer(slots or 16 * partitions)
            self._runs = placer.name, self._why_placed()
            seen = counts_of(rows.agg(*observed(self.workers)).collect()[0])
            return processing.batch(rows, Still.of(placed(placer, seen, self.workers)))
        if location is None:
            raise SkewlessError(
                "a placed stream needs a folder of its own for placements and for state on its way: "
                'process(..., location="/data/placement"), beside the checkpoint and kept with it'
            )
        prepare(df.sparkSession)
        folder = Location.at(location)
        control = folder.read_control()
        if slots is None:
            slots = folder.placement(control.version).tail_slots if control else 16 * partitions
        placer = self._placer(slots)
        self._runs = placer.name, self._why_placed()
        return self._place(processing, placer, folder, partitions, rule or Rule())

    def rebalance(self, workers: int | None = None, *, dry_run: bool = False) -> tuple[Move, ...]:
        """Have the placer look at the running query now, and move what it says.

        Parameters
        ----------
        workers
            To have so many workers active from then on: up to the shuffle partitions that the query started with.
        dry_run
            Print the moves, and make none.
        """
        if self._placing is None:
            raise SkewlessError("nothing is placed here: start a query from what process(...) gives, and call it then")
        found = self._placing.rebalance(workers, dry=dry_run)
        if dry_run:
            lines = [f"{move.slot}: worker {move.source} to {move.target} ({move.kind})" for move in found]
            print("\n".join(lines) or "no moves")
        return found

    @property
    def placement(self) -> Placement:
        """Which worker owns what, of a query that `process` made."""
        if self._placing is None:
            raise SkewlessError("nothing is placed here; process(...) places keys")
        return self._placing.placement

    @property
    def _places(self) -> bool:
        """Whether the strategy can only keep keys whole."""
        return isinstance(self._asked, Placer) or self._asked in _WHOLE

    def _repartition_whole_keys(self) -> DataFrame:
        if self.df.isStreaming:
            raise SkewlessError(
                f"strategy {self._placer(1).name!r} keeps keys whole, and moves them in a stream with their state, by "
                "process(...); to repartition a stream choose 'auto' or a splitter"
            )
        rows, placer = with_key(self.df, self.keys), self._placer(16 * self.workers)
        seen = counts_of(rows.agg(*observed(self.workers)).collect()[0])
        placement = placed(placer, seen, self.workers)
        self._runs = placer.name, "as asked, keeping keys whole, from one pass over the data"
        return exchange(rows.withColumn(WORKER, owner_column(placement)).drop(KEY), self.workers)

    @property
    def moving(self) -> bool:
        """Whether a placement is announced and not yet in force, of a query that `process` made."""
        return self._placing is not None and self._placing.moving

    def _placer(self, slots: int) -> Placer:
        if isinstance(self._asked, Placer):
            return self._asked
        if self._asked not in PLACERS:
            raise SkewlessError(
                f"strategy {getattr(self._asked, 'name', self._asked)!r} may split a key, and the state of a processor "
                f"does not merge; choose one of {', '.join(PLACERS)}"
            )
        return place.make("even" if self._asked == "auto" else str(self._asked), slots=slots)

    def _why_placed(self) -> str:
        asked = "because state that does not merge must be on one worker" if self._asked == "auto" else "as asked"
        return (
            f"{asked}, moving slots of keys between workers" if self._asked != "hash" else "as asked, once and for ever"
        )

    def _place(
        self, processing: Processing, placer: Placer, folder: Location, partitions: int, rule: Rule
    ) -> DataFrame:
        spark, loads = self.df.sparkSession, f"{self.name}-slots"
        if self._asked == "hash":
            rule = replace(rule, alpha=float("inf"))
        retain = int(spark.conf.get("spark.sql.streaming.minBatchesToRetain", "100") or 100)
        self._placing = placing = Placing(self.name, placer, folder, self.workers, partitions, rule, retain)
        listen(spark, self.name, placing.take_keys)
        listen(spark, loads, placing.take)
        rows = measured(processing.rows(), self.name, partitions)
        return processing.stream(rows, placing.control(spark), folder, loads)

    def explain(self) -> str:
        """In words, which strategy runs and why, and where hot keys go."""
        if self._runs is None and self._asked == "auto":
            text = f"{self.name}: auto, which chooses when it knows what to aggregate."
        else:
            strategy, why = self._runs or self._as_asked()
            active = self._placing.workers if self._placing else self.workers
            over = "" if strategy in _MOVELESS else f" over {active} workers"
            text = f"{self.name}: {strategy}{over}, {why}."
        lines = [text]
        most = sorted(self.policy.keys.tolist(), key=lambda key: -len(set(self.policy.lanes_of(key).tolist())))
        for key in most[:10]:
            workers, lanes = np.unique(self.policy.lanes_of(key), return_counts=True)
            shares = (f"{worker} ({share:.0%})" for worker, share in zip(workers, lanes / lanes.sum(), strict=True))
            lines.append(f"key hash {key} is on workers {', '.join(shares)}")
        text = "\n".join(lines)
        print(text)
        return text

    def _aggregate(
        self, aggregation: Aggregation, spark: Callable[[], DataFrame] | None, *, tumbling: bool
    ) -> DataFrame:
        """Run an aggregation by the strategy asked for, or the best; `spark` is its plan by Spark's own operators."""
        if self._places:
            raise SkewlessError(
                f"strategy {self._placer(1).name!r} keeps keys whole, for process(...); aggregates merge, so choose "
                "'auto' or a splitter, such as 'dalton'"
            )
        strategy, why = self._choose(aggregation, native=spark is not None, tumbling=tumbling)
        self._runs = strategy, why
        if strategy == "spark":
            assert spark is not None  # or it was not chosen
            return spark()
        session, loads = aggregation.df.sparkSession, f"{self.name}-loads"
        if aggregation.df.isStreaming:
            prepare(session)
            if self._monitor is None:
                self._monitor = Monitor()
                listen(session, loads, self._monitor.take)
        if strategy == "local":
            return aggregation.run(aggregation.rows(), loads)
        rows = exchange(self._routed(aggregation.rows()), self.workers)
        blocks = isinstance(self.splitter, split.Prompt) and not aggregation.df.isStreaming
        return aggregation.run(rows, loads, tuple(self._policy.split.tolist()) if blocks else None)

    def _choose(self, aggregation: Aggregation, *, native: bool, tumbling: bool) -> tuple[str, str]:
        if self._asked == "spark" and not native:
            raise SkewlessError("Spark has no operator of its own for one of these aggregates; use strategy='auto'")
        if self._asked != "auto":
            return self._as_asked()
        if native and tumbling:
            return "spark", "because its own operators are best for these aggregates where windows do not overlap"
        heavy = [name for name, measure in aggregation.measures.items() if measure.heavy]
        if heavy:
            return self._routing(f"{', '.join(heavy)} costs more for a row than moving it")
        return "local", "because these aggregates cost less than moving a row, so rows are combined where they lie"

    def _as_asked(self) -> tuple[str, str]:
        if self._asked == "spark":
            return "spark", "as asked, by its own operators"
        if self._asked == "local":
            return "local", "as asked, combining rows where they lie"
        return self._routing("")

    def _routing(self, why: str) -> tuple[str, str]:
        how = "learning from each micro-batch" if self.df.isStreaming else "from one pass over the data"
        reason = f"because {why}" if self._asked == "auto" else "as asked"
        return self.splitter.name, f"{reason}, {how}"

    def _learning(self, rows: DataFrame) -> DataFrame:
        """Rows of a stream that have their `KEY`, with the worker that the policy of the moment gives them."""
        spark = self.df.sparkSession
        if self._loop is None:
            self._loop = Loop(self.name, self.splitter, PolicyFile.for_session(spark))
            listen(spark, self.name, self._loop.take)
        return with_worker(self._loop.measure(rows), self._loop.file.read(spark), self.workers, shuffle=self._shuffles)

    def _planned(self, rows: DataFrame) -> DataFrame:
        """Rows of a batch that have their `KEY`, counted once, with the worker of the policy for just these counts."""
        if isinstance(self.splitter, split.Prompt):
            seen = exact_counts(rows)
        else:
            seen = counts_of(rows.agg(*observed(self.workers)).collect()[0])
        self._policy = Policy.of(self.workers) if seen is None else self.splitter.plan(seen)
        planned = with_planned_worker(rows, self._policy, shuffle=self._shuffles)
        if planned is not None:
            return planned
        frame = policy_frame(self.df.sparkSession, self._policy)
        return with_worker(rows, frame, self.workers, shuffle=self._shuffles)

    def _routed(self, rows: DataFrame) -> DataFrame:
        return self._learning(rows) if self.df.isStreaming else self._planned(rows)

    @property
    def _shuffles(self) -> bool:
        return isinstance(self.splitter, split.Shuffle)
