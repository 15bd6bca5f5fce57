"""`watch(query)`: what a running query does, and how to move what it has placed."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from skewless.control.announcing import AnnouncingLoop
from skewless.control.loop import Loop
from skewless.control.placing import Placing
from skewless.control.routing import Routing
from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.core.policy import Policy
from skewless.elastic import Advice, Timed, advise
from skewless.place import Move, Placement
from skewless.spark.listen import last_loop_of, listen, running, wait_until


def watch(query: StreamingQuery) -> Watch:
    """The handle on a running query.

    It works for every streaming query, also for one of Spark's own operators, of which it knows what Spark tells. It
    binds to what skewless runs in the query when the first micro-batch with rows is done.

    Parameters
    ----------
    query
        The query that `start()` gave.
    """
    if not hasattr(query, "runId"):
        raise SkewlessError(
            f"{query!r} is no query: give what start() returned, such as watch(views.writeStream.start())"
        )
    spark = SparkSession.getActiveSession()
    if spark is not None:
        listen(spark)
    return Watch(query)


class Watch:
    """What a running query does; made by `watch`.

    A query may hold several streams of skewless, one in another: then this is about the last that was described, and
    `streams` names all of them.
    """

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self._run = running(str(query.runId))

    @property
    def bound(self) -> bool:
        """Whether the first micro-batch with rows is done, so that it is known what runs."""
        return bool(self._run.loops)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams in the query."""
        return tuple(loop.name for loop in self._run.loops)

    @property
    def batches(self) -> int:
        """The number of micro-batches with rows that were learned from; of Spark's own operators, that were done."""
        loop = self._loop()
        return loop.batches if loop else self._run.batches

    @property
    def loads(self) -> dict[int, int]:
        """The rows of each worker in the last micro-batch; empty before it, and where Spark's own operators run."""
        loop = self._loop()
        return dict(loop.loads) if loop else {}

    @property
    def imbalance(self) -> float | None:
        """The rows of the busiest worker over the average, in the last micro-batch; None where loads are not known."""
        loop = self._loop()
        return loop.imbalance if loop else None

    @property
    def workers(self) -> int | None:
        """The number of workers that share the rows, of a range those that are active; None where rows do not move."""
        loop = self._loop()
        return loop.workers if loop else None

    @property
    def ratio(self) -> float | None:
        """Processing time over interval of the last micro-batch, W, where workers follow the load; None elsewhere."""
        loop = self._loop()
        return loop.scaling.ratio if loop and loop.scaling else None

    @property
    def decision(self) -> str | None:
        """The last change of the number of workers that follow the load, and why, in words; None before one."""
        loop = self._loop()
        return loop.scaling.last if loop and loop.scaling else None

    @property
    def policy(self) -> Policy:
        """The policy that routes rows right now, of a query whose keys are split."""
        loop = self._loop()
        if not isinstance(loop, Routing):
            raise self._wrong(loop, "no policy routes rows here", "a splitter that learns, such as split='dalton'")
        return loop.policy

    @property
    def placement(self) -> Placement:
        """The placement in force: which worker owns what, of a query that `process` made."""
        return self._placing().placement

    @property
    def moving(self) -> bool:
        """Whether a version, such as a placement, is announced and not in force yet."""
        loop = self._loop()
        return isinstance(loop, AnnouncingLoop) and loop.announced

    def rebalance(self, workers: int | None = None, *, dry_run: bool = False) -> tuple[Move, ...]:
        """Have the placer look at the running query now, and move what it says; the moves.

        Parameters
        ----------
        workers
            The number of workers to be active from then on: up to the shuffle partitions that the query started with.
        dry_run
            Make no move, and give those that would be made.
        """
        return self._placing().rebalance(workers, dry=dry_run)

    def withdraw(self) -> None:
        """Take back what is announced and not in force yet, such as a placement whose state cannot be handed over."""
        loop = self._loop() or last_loop_of(str(self.query.id))  # a run may fail in its first micro-batch
        if not isinstance(loop, AnnouncingLoop):
            raise self._wrong(loop, "nothing is ever announced here", "process(...), or apply(..., tune=)")
        loop.withdraw()

    def wait(self, batches: int, timeout: float = 60.0) -> bool:
        """Wait until so many micro-batches with rows were learned from; false if that takes over `timeout` seconds.

        Learning never holds up a query, so what follows a micro-batch may come before its policy. A query that is over
        is not waited for.
        """
        wait_until(lambda: self.batches >= batches or self._run.over, timeout)
        return self.batches >= batches

    def advice(self, latency: str | None = None) -> Advice:
        """How much of the micro-batches is fixed cost, and the trigger with which it would be at most a tenth.

        It is worked out from the last micro-batches that Spark tells of, at least five of them with rows. Rows are
        taken to come by the clock: if the source limits the rows of a micro-batch, as `maxFilesPerTrigger` and
        `maxOffsetsPerTrigger` do, raise the limit with the trigger.

        Parameters
        ----------
        latency
            The longest time from a row's arrival to its result, such as "5 seconds"; without it, any time will do.
        """
        seconds = None if latency is None else microseconds(latency) / 1e6
        return advise([_timed(progress) for progress in self.query.recentProgress], seconds)

    def explain(self) -> str:
        """In words, what runs and why, where hot keys go, and what Spark tells of the last micro-batch."""
        seen = self._run
        lines = [line for loop in seen.loops for line in loop.describe()]
        name = self.query.name or f"query {self.query.id}"
        if not lines and seen.progress is None:
            return f"{name}: no micro-batch is done yet, so that it is not known what runs."
        if seen.elsewhere:
            others = ", ".join(f"{loop.name} of query {loop.query}" for loop in seen.elsewhere)
            lines.append(
                f"{name}: it runs what runs already, {others}; nothing is learned from it: build the result anew."
            )
        if not lines:
            lines = [f"{name}: nothing of skewless is known to run in it."]
        if seen.progress is not None:
            done = seen.progress
            rate = f", {done.processedRowsPerSecond:,.0f} rows/s" if done.numInputRows else ""
            state = sum(operator.numRowsTotal for operator in done.stateOperators)
            kept = f", {state:,} rows of state" if done.stateOperators else ""
            balance = "" if self.imbalance is None else f", imbalance {self.imbalance:.2f}"
            lines.append(f"micro-batch {done.batchId}: {done.numInputRows:,} rows{rate}{balance}{kept}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """What runs, in words."""
        return self.explain()

    def _loop(self) -> Loop | None:
        loops = self._run.loops
        return loops[-1] if loops else None

    def _placing(self) -> Placing:
        loop = self._loop()
        if not isinstance(loop, Placing):
            raise self._wrong(loop, "nothing is placed here", "process(...)")
        return loop

    def _wrong(self, loop: Loop | None, what: str, remedy: str) -> SkewlessError:
        if loop is None:
            return SkewlessError(
                f"{what} as far as is known: no micro-batch with rows is done yet, of which skewless hears; "
                "watch(query).wait(1) waits for one"
            )
        return SkewlessError(f"{what}: {loop.name} runs {loop.chosen.strategy}; it takes {remedy}")


def _timed(progress: StreamingQueryProgress) -> Timed:
    """When a micro-batch began, its rows, how long it took, and how long besides adding its rows."""
    began = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).timestamp()
    spent = progress.durationMs
    took = spent.get("triggerExecution", 0)
    return Timed(began, progress.numInputRows, took / 1e3, max(0, took - spent.get("addBatch", 0)) / 1e3)
