"""`keyed(df, ...)`: rows with a key, and what can be computed over them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from skewless.aggregate import Measure
from skewless.aggregate.measure import TIME
from skewless.api.checks import (
    check_families,
    check_measures,
    check_partitions,
    check_processor,
    check_schema,
    check_stays,
    check_workers,
    new_identity,
)
from skewless.api.choice import MOVELESS, aggregating, followed, moving, packs, unfollowed, why_placed
from skewless.api.own import named, placer_of, splitter_of
from skewless.api.school import teacher_of
from skewless.api.windowed import KeyedWindows, windowing, with_event_time
from skewless.control.loop import Chosen, LoadLoop
from skewless.control.placements import OnePlacement, Placements
from skewless.control.placing import Placing, placed
from skewless.control.scaling import Scaling
from skewless.core.errors import SkewlessError
from skewless.elastic import Range
from skewless.operators.process import Processor
from skewless.place import Placer, Rule
from skewless.spark.aggregate import Aggregation
from skewless.spark.in_task import packed, packed_in_task, routed_in_task, with_routed_worker
from skewless.spark.listen import register
from skewless.spark.native import natives
from skewless.spark.observe import top_counts, watched, with_keys_observed, with_loads_observed, with_rows_observed
from skewless.spark.process import Processing
from skewless.spark.route import CONTROL, KEY, WORKER, column, exchange, owner_column, with_key
from skewless.spark.session import prepare, warn_once
from skewless.spark.split import learning, planned
from skewless.spark.staging import shuffle_partitions
from skewless.split import PartLy, Prompt, Shuffle, Splitter


def keyed(
    df: DataFrame,
    *keys: str,
    workers: int | tuple[int, int] | Range | None = None,
    split: str | Splitter = "auto",
    place: str | Placer = "auto",
    name: str | None = None,
    interval: str | None = None,
) -> KeyedStream:
    """A stream of rows with a key, to be spread evenly over workers.

    Parameters
    ----------
    df
        A streaming or a batch DataFrame.
    keys
        The columns that make up the key. Rows with a null in one are a key like any other.
    workers
        The number of workers that share the rows, where rows move; Spark's shuffle partitions if not given. A range
        such as (2, 16) follows the load of a stream: after every micro-batch it is decided how many workers are active.
        A batch DataFrame has the most of them. `sk.elastic.Range` says more about how the number follows.
    split
        How hot keys are split, for `agg` and `repartition`. "auto" chooses. Or the name of a splitter ("dalton",
        "hash", ...), or a splitter, of which every call makes one of its own; "local" combines rows where they lie;
        "spark" leaves everything to Spark's own operators.
    place
        How whole keys are placed, for `process`, and for `repartition` of a batch: "auto", the name of a placer
        ("readj", "even", ...), or a placer, of which every call makes one of its own; "hash" places keys once and
        for ever.
    name
        The stream's name, shown in metrics and messages.
    interval
        The time from one micro-batch to the next, such as "1 second", which is that of the query's trigger; needed for
        a range of workers. Under `availableNow` the number stays only if two micro-batches fit into an interval;
        otherwise it cannot be told from a trigger that falls behind, and climbs.
    """
    if not keys:
        raise SkewlessError(
            f"which columns are the key? Name one or more of {', '.join(df.columns)}; "
            "for windows over all rows there is sk.windowed(...)"
        )
    for each in keys:
        column(df, each)
    asked = check_workers(workers, interval)
    check_families(split, place)
    if split in MOVELESS and workers is not None:
        raise SkewlessError(f"split is {split!r}, which moves no rows, so workers={workers} has no use; leave it out")
    if isinstance(split, Splitter) and split.was_given("workers"):
        if asked not in (None, split.workers):
            raise SkewlessError(f"the splitter is for {split.workers} workers, but workers is {workers}; give it once")
        asked = split.workers
    return KeyedStream(df, keys, asked, split, place, name or f"skewless-{uuid.uuid4().hex[:8]}")


@dataclass(frozen=True, eq=False)
class KeyedStream:
    """A description of rows with a key; made by `keyed`.

    It never changes. Every call that ends it, `agg`, `process` or `repartition`, makes a stream of its own, which
    learns for itself; `sk.watch(query)` shows what runs.
    """

    df: DataFrame
    keys: tuple[str, ...]
    asked_workers: int | Range | None
    split: str | Splitter
    place: str | Placer
    name: str

    @property
    def workers(self) -> int:
        """The number of workers that share the rows, where rows move; of a range, the most."""
        if isinstance(self.asked_workers, Range):
            return self.asked_workers.most
        return self.asked_workers or shuffle_partitions(self.df)

    @property
    def elastic(self) -> Range | None:
        """The range of workers that follows the load of a stream; None if their number does not change."""
        return self.asked_workers if self.df.isStreaming and isinstance(self.asked_workers, Range) else None

    def repartition(self, *, folder: str | None = None) -> DataFrame:
        """The rows, one Spark partition for each worker, balanced.

        A stream is routed inside its tasks by "bounded", which keeps every micro-batch even; by a splitter that learns,
        a query starts with plain hashing and follows a new policy from one micro-batch to the next. A batch DataFrame
        is read twice: once to count its hot keys, and then to route it.

        Parameters
        ----------
        folder
            A folder for the routing policy of a stream, which the driver can write and all executors can read; the
            setting `spark.skewless.folder` if not given, or on one machine a private folder. A range of workers keeps
            its number there too. Where rows are routed in their tasks there is no policy, and without a range it is not
            used, unless the tasks learn together: then it is for their common table.
        """
        if self.split in MOVELESS:
            raise SkewlessError(f"split {self.split!r} moves no rows; to repartition choose 'auto' or a splitter")
        if self.place != "auto":
            return self._repartition_whole_keys()
        splitter, rows, stream = self._splitter(), with_key(self.df, self.keys), new_identity()
        if isinstance(splitter, PartLy) and splitter.learning:
            raise SkewlessError(
                "partly learns from the times of the tasks that aggregate, and nothing times what follows "
                "repartition(); use agg(...), or leave learning=True out"
            )
        if not self.df.isStreaming:
            # Where counts can be had first, a plan is part of Spark's own expression and needs no Python.
            in_task = splitter.batches_in_task
            routed = with_routed_worker(rows, splitter) if in_task else planned(rows, splitter)[0]
            return exchange(routed.drop(KEY), self.workers)
        chosen = moving(splitter, self.split, streaming=True)
        route = routed_in_task if splitter.in_task else learning
        routed = route(rows, splitter, stream, self.name, folder, chosen, self.elastic)
        observed = with_loads_observed(routed.drop(KEY), stream, self.workers)
        return exchange(observed.drop(CONTROL), self.workers)

    def window(
        self, time: str, size: str | int, slide: str | int | None = None, watermark: str | None = None
    ) -> KeyedWindows:
        """Cut the rows into windows of time, or of so many rows.

        Parameters
        ----------
        time
            The column with the time of each row: a timestamp.
        size, slide
            In Spark's words, such as "10 minutes" and "30 seconds"; windows tumble without a slide. Or whole numbers,
            for windows of so many rows of a key, such as 100 and 10: the rows of a micro-batch are counted in order of
            time, and a window is over when its last row is there.
        watermark
            How late rows may come, such as "10 seconds". Not needed where the DataFrame has its watermark already.
        """
        df, windows = windowing(self.df, time, size, slide, watermark)
        return KeyedWindows(replace(self, df=df), time, windows, (size, slide))

    def agg(self, *, folder: str | None = None, **aggregates: Measure) -> DataFrame:
        """Aggregate each key of a batch DataFrame: a row for every key.

        Parameters
        ----------
        folder
            Has no use here, as a batch needs none; it is the same keyword as for windows.
        aggregates
            The columns of the result: `agg(n=sk.count(), spent=sk.sum("price"))`.
        """
        if self.df.isStreaming:
            raise SkewlessError(
                "a stream never ends, so its aggregates need windows: "
                'add .window("time", size="1 minute", watermark="10 seconds") before .agg(...)'
            )
        return self.aggregate(self._unwindowed(aggregates), folder)

    def process(
        self,
        processor: Processor,
        schema: str | StructType,
        *,
        folder: str | None = None,
        order: str | Sequence[str] = (),
        time: str | None = None,
        watermark: str | None = None,
        slots: int | None = None,
        rule: Rule | None = None,
    ) -> DataFrame:
        """Run a processor on the rows of each key, with state that stays on one worker and moves when it must.

        The result has the key columns, and those of the schema.

        Parameters
        ----------
        processor
            What is done with the rows of a key.
        schema
            The columns that the processor gives, in Spark's words: "visits long".
        folder
            A folder that belongs to the query as its checkpoint does: placements, and state on its way from one worker
            to another. The driver and all executors must be able to write it. Needed for streams.
        order
            The column, or columns, by which the rows of a key in a micro-batch are sorted.
        time, watermark
            The column of event time and how late rows may come, for timers and `ttl`; later rows are dropped.
        slots
            The number of slots that keys share by their hash; 16 for each shuffle partition if not given.
        rule
            When state may move.
        """
        processing = self._processing(processor, schema, order, time, watermark)
        df, stream = processing.df, new_identity()
        partitions = shuffle_partitions(df)
        check_partitions(df, self.workers, "a processor")
        if not df.isStreaming:
            rows, placer = processing.rows(), placer_of(self.place, slots, 16 * partitions)
            seen = top_counts(rows, self.workers, placer.watched(self.workers))
            placement = placed(placer, seen, self.workers)
            return processing.run(rows, OnePlacement(placement), stream)
        if folder is None:
            raise SkewlessError(
                "a placed stream needs a folder of its own for placements and for state on its way: "
                'process(..., folder="/data/placement"), beside the checkpoint and kept with it'
            )
        spark = df.sparkSession
        prepare(spark)
        placements = Placements.at(folder, stream)
        found = placements.read_control()
        usual = placements.placement(found[0].force).tail_slots if found else 16 * partitions
        placer, rule = placer_of(self.place, slots, usual), rule or Rule()
        if self.place == "hash":
            check_stays(self.elastic)
            rule = replace(rule, alpha=float("inf"))
        retain = int(spark.conf.get("spark.sql.streaming.minBatchesToRetain", "100") or 100)
        chosen = Chosen(placer.name, why_placed(self.place))
        asked = placer.watched(partitions)
        told = watched(partitions, asked)
        scaling = None if self.elastic is None else Scaling(self.elastic, "reduce")
        workers = self.workers if scaling is None else scaling.workers
        loop = Placing(self.name, placer, placements, workers, partitions, rule, retain, chosen, told, scaling)
        register(spark, stream, loop)
        rows = with_keys_observed(processing.rows(), stream, partitions, asked, distinct=scaling is not None)
        return processing.run(rows, placements, stream)

    def explain(self, **aggregates: Measure) -> str:
        """In words, what `agg` would run for these aggregates and why; or what is asked for, without aggregates."""
        if aggregates:
            return self.explained(self._unwindowed(aggregates))
        asked = [f"{word}={named(given)!r}" for word, given in (("split", self.split), ("place", self.place))]
        words = f"{self.name}: {' and '.join(asked)}, over {self._over} where rows move.{followed(self.elastic)}"
        if self.split in MOVELESS or self.place != "auto":
            return words
        moved = moving(self._splitter(), self.split, streaming=self.df.isStreaming)
        return f"{words} Bare rows go by {moved.strategy}, {moved.why}."

    def explained(self, aggregation: Aggregation) -> str:
        """In words, what would run for an aggregation, and why."""
        chosen = self._chosen(aggregation, native=natives(aggregation.df, aggregation.measures) is not None)
        if chosen.strategy in MOVELESS:
            words = chosen.words(self.name)
            return words if self.elastic is None else f"{words} {unfollowed(self.elastic)}"
        return chosen.words(self.name, self._over) + followed(self.elastic, shuffle_partitions(self.df))

    def aggregate(
        self, aggregation: Aggregation, folder: str | None, window: Callable[[], Column] | None = None
    ) -> DataFrame:
        """Run an aggregation by the strategy asked for, or the best; `window` makes the window of Spark's own."""
        if folder is not None and not isinstance(folder, (str, os.PathLike)):
            raise SkewlessError(
                f"folder is {folder!r}, and folder= names the stream's folder, so that no column of the result can be "
                "called so; give the aggregate another name"
            )
        measured = natives(aggregation.df, aggregation.measures)
        chosen, stream = self._chosen(aggregation, native=measured is not None), new_identity()
        df = aggregation.df
        if chosen.strategy in MOVELESS and self.elastic is not None:
            warn_once(unfollowed(self.elastic), stacklevel=4)  # in the line of the program that calls agg or changes
        if df.isStreaming and chosen.strategy in MOVELESS:
            register(df.sparkSession, stream, LoadLoop(self.name, None, chosen))
        if chosen.strategy == "spark":
            assert measured is not None  # or it was not chosen
            observed = with_rows_observed(df, stream) if df.isStreaming else df
            return replace(aggregation, df=observed).natively(measured, *([window()] if window else []))
        if df.isStreaming:
            prepare(df.sparkSession)
        rows = aggregation.rows()
        if chosen.strategy == "local":
            return aggregation.run(rows, stream)
        splitter = self._splitter()
        if packs(splitter, streaming=df.isStreaming):
            if df.isStreaming:
                moved = packed_in_task(rows, splitter, stream, self.name, folder, chosen, self.elastic)
            else:
                moved = packed(rows, splitter)
            return aggregation.run(moved, stream, unpack=True)
        if df.isStreaming:
            teacher = teacher_of(splitter)
            routed = learning(rows, splitter, stream, self.name, folder, chosen, self.elastic, teacher)
            return aggregation.run(exchange(routed, self.workers), stream)
        routed, policy = planned(rows, splitter)
        # A shuffled tail is everywhere.
        several = None if isinstance(splitter, Shuffle) else policy.split.tolist()
        apart = tuple(policy.split.tolist()) if isinstance(splitter, Prompt) else None
        return aggregation.run(exchange(routed, self.workers), stream, apart, several=several)

    def refuse_words(self, *words: str, call: str, why: str) -> None:
        """Refuse the words of other families."""
        for word in words:
            given = getattr(self, word)
            if given != "auto":
                raise SkewlessError(f"{word} is {named(given)!r}, but {call} {why}; leave {word}= out")

    @property
    def _over(self) -> str:
        return f"{self.workers} workers" if self.elastic is None else str(self.elastic)

    def _unwindowed(self, aggregates: dict[str, Measure]) -> Aggregation:
        measures = check_measures(self.df, aggregates, self.keys)
        for name, measure in measures.items():
            if TIME in measure.columns:
                raise SkewlessError(f"{name}={measure} goes by time, and there are no windows; name a column with by=")
        return Aggregation(self.df, self.keys, measures)

    def _repartition_whole_keys(self) -> DataFrame:
        self.refuse_words("split", call="repartition()", why="keeps keys whole with place=")
        if self.df.isStreaming:
            raise SkewlessError(
                f"place {named(self.place)!r} keeps keys whole, and moves them in a stream with their state, by "
                "process(...); to repartition a stream give split="
            )
        rows, placer = with_key(self.df, self.keys), placer_of(self.place, None, 16 * self.workers)
        seen = top_counts(rows, self.workers, placer.watched(self.workers))
        placement = placed(placer, seen, self.workers)
        return exchange(rows.withColumn(WORKER, owner_column(placement)).drop(KEY), self.workers)

    def _processing(
        self,
        processor: Processor,
        schema: str | StructType,
        order: str | Sequence[str],
        time: str | None,
        watermark: str | None,
    ) -> Processing:
        self.refuse_words("split", call="process(...)", why="keeps keys whole, as their state does not merge")
        df, order = self.df, (order,) if isinstance(order, str) else tuple(order)
        given = check_schema(schema, self.keys)
        fields = check_processor(df, self.keys, processor, given)
        for each in (*order, *([time] if time else [])):
            column(df, each)
        df = with_event_time(df, time, watermark, processor.ttl)
        return Processing(df, self.keys, processor, fields, given, order, time)

    def _chosen(self, aggregation: Aggregation, *, native: bool) -> Chosen:
        self.refuse_words("place", call="agg(...)", why="may split keys, as aggregates merge")
        streaming, tumbling = self.df.isStreaming, aggregation.windows is None or aggregation.windows.tumbling
        heavy = [name for name, measure in aggregation.measures.items() if measure.heavy]
        return aggregating(self._splitter, self.split, heavy, native=native, tumbling=tumbling, streaming=streaming)

    def _splitter(self) -> Splitter:
        """A splitter that nobody else has."""
        return splitter_of(self.split, self.workers, streaming=self.df.isStreaming)
