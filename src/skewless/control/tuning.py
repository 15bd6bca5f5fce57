"""The loop that tunes the batches of a stream's windows: what work took becomes costs, and costs become sizes."""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from skewless.chop.assignment import BatchAssignment
from skewless.chop.tuner import MOST, Tuner
from skewless.control.placing import CONTROL_SCHEMA
from skewless.control.plans import Plan, Plans
from skewless.core.errors import SkewlessError
from skewless.core.windows import BEFORE_ALL

log = logging.getLogger("skewless")

GAIN = 0.05
"""A size that is faster by less is not worth a change."""


class Tuning:
    """Decides how many windows make a batch, while the query runs.

    Whatever goes wrong here never fails the query: it is logged once, and the sizes stay.

    Parameters
    ----------
    name
        Of the stream.
    plans
        Its folder.
    deal
        The sizes to begin with.
    latency
        Seconds for which a window may wait.
    period
        Seconds between two choices.
    most
        Windows in a batch, at most.
    """

    def __init__(self, name: str, plans: Plans, deal: BatchAssignment, latency: float, period: float, most: int = MOST) -> None:
        self.name, self.plans = name, plans
        self.batches = 0
        self._lock = threading.Condition()
        self._failed = False
        self._queries: set[str] = set()
        plan = plans.read_plan()
        if plan is None:
            plans.write_deal(0, deal, 0)
            plan = Plan(0)
        elif plans.refused(plan.force):
            plan = Plan(plans.before(plan.force))
        # What was announced when the last run ended is not known to have been seen by all.
        self._plan = Plan(plan.force)
        plans.write_plan(self._plan)
        self.deal = plans.deal(self._plan.force)
        if (self.deal.windows, self.deal.workers) != (deal.windows, deal.workers):
            raise SkewlessError(
                f"the folder {plans.uri} is of windows {self.deal.windows} on {self.deal.workers} workers, not "
                f"{deal.windows} on {deal.workers}; name an empty folder with a new checkpoint"
            )
        self._number = plans.last()
        windows = deal.windows
        self.tuner = Tuner(windows.size, windows.slide, deal.workers, latency, unit=1e-6, period=period, most=most)
        self.tuner.batch = self.deal.batch
        self._reached: dict[int, int] = {}
        self._lowest: int | None = None
        self._arrived = 0

    @property
    def announced(self) -> bool:
        """Whether a change is announced and not in force yet."""
        return self._plan.announced > 0

    def control(self, spark: SparkSession) -> DataFrame:
        """The plan as a static DataFrame of one row, which every micro-batch reads anew."""
        return spark.read.schema(CONTROL_SCHEMA).json(self.plans.current)

    def take(self, row: Row, progress: StreamingQueryProgress) -> None:
        """What a micro-batch went by, and how far its rows reached."""
        if row["control"] is None:
            return  # no rows
        try:
            self._see(str(progress.id))
            if row["reached"] is not None:
                self._learn(Plan.of(row["control"]), int(row["reached"]), int(row["n"]), progress)
        except Exception:  # whatever it is, the query must go on
            if not self._failed:
                log.exception("stream %s: batches of windows stay as they are", self.name)
            self._failed = True
        with self._lock:
            self.batches += 1
            self._lock.notify_all()

    def wait_until(self, batches: int, timeout: float) -> bool:
        """Wait until so many micro-batches were learned from; false if that took longer than `timeout` seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: self.batches >= batches, timeout)

    def change(self, batch: int) -> None:
        """Have batches of another size, from a window on that no row has reached."""
        with self._lock:
            if self._plan.announced:
                raise SkewlessError(f"plan {self._plan.announced} is on its way; try again after a micro-batch")
            if not self._reached:
                raise SkewlessError("no micro-batch has ended yet; try again after one")
            highest = max(self._reached.values())
            # As far ahead as all rows so far reach, so that the next micro-batch does not come there first.
            ahead = highest - (self._lowest if self._lowest is not None else highest)  # in all micro-batches together
            self._number += 1
            self.tuner.batch = batch
            window = highest + 1 + max(ahead // max(1, self.batches) * 2, self.deal.batch, batch)
            self.plans.write_deal(self._number, self.deal.changed(batch, window), self._plan.force)
            self._say(Plan(self._plan.force, self._number))

    def _see(self, query: str) -> None:
        self._queries.add(query)
        if len(self._queries) > 1:
            raise SkewlessError(
                f"two queries run by the plans at {self.plans.uri}; give each an apply(...) and a folder of its own. "
                "Nothing is tuned"
            )

    def _learn(self, ran_by: Plan, reached: int, rows: int, progress: StreamingQueryProgress) -> None:
        for work in self.plans.read_work(self.deal.workers, progress.batchId):
            if work.windows:
                self.tuner.add(work.updates, work.windows, work.rows, work.seconds)
        with self._lock:
            known = self._reached.get(ran_by.announced, BEFORE_ALL)
            self._reached[ran_by.announced] = max(reached, known)
            self._lowest = reached if self._lowest is None else min(reached, self._lowest)
            self._arrived += rows
            if self._plan.announced:
                self._settle(ran_by)
                return
        windows = self.deal.windows
        span = (max(self._reached.values()) - self._lowest) * windows.slide
        density = self._arrived / span if span > 0 else None
        batch = self.tuner.tune(time.monotonic(), self._arrived, density)
        if batch == self.deal.batch or density is None:
            return
        if self._is_as_good(batch):
            self.tuner.batch = self.deal.batch
        else:
            self._forget(progress)
            self.change(batch)

    def _is_as_good(self, batch: int) -> bool:
        """Whether the size of now keeps the bound, and is nearly as fast as another."""
        model, tuner = self.tuner.model, self.tuner
        if model is None or not tuner.estimator.resolved or self.deal.batch > tuner.most:
            return False
        now, then = model.throughput([self.deal.batch, batch])
        kept = model.latency(self.deal.batch, tuner.period) <= tuner.latency
        return bool(kept and then < (1 + GAIN) * now)

    def _settle(self, ran_by: Plan) -> None:
        """Put an announced plan in force once a micro-batch went by it; drop it if rows were there before."""
        number = self._plan.announced
        if ran_by.announced != number:
            return
        deal = self.plans.deal(number)
        others = [last for announced, last in self._reached.items() if announced != number]
        if max(others, default=BEFORE_ALL) < deal.sizes[-1][0]:
            self.deal = deal
            self._reached = {0: max(self._reached.values())}
            self._say(Plan(number))
        else:
            self._reached[0] = max(self._reached.values())
            self._say(Plan(self._plan.force))

    def _forget(self, progress: StreamingQueryProgress) -> None:
        """Leave out the sizes of windows that are over."""
        watermark = progress.eventTime.get("watermark")
        if watermark:
            at = datetime.fromisoformat(watermark.replace("Z", "+00:00")).timestamp()
            self.deal = self.deal.from_window(self.deal.windows.open_at(int(at * 1e6)))

    def _say(self, plan: Plan) -> None:
        self.plans.write_plan(plan)
        self._plan = plan
