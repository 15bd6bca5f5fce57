"""Where rows leave in order: what waits is on disk after each micro-batch, so that a replay gives the same again."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable

import pyarrow as pa

from skewless.control.delivery import Delivery, Order, Report, counted
from skewless.control.folder import Files, uri_of
from skewless.core.errors import SkewlessError

log = logging.getLogger("skewless")

Deliver = Callable[[pa.Table, int], object]
"""Takes rows in order, and the id of their micro-batch."""

_FILE = re.compile(r"(\d+)\.arrow(?:\.\w+\.new)?")
_OWN = "give each query a folder of its own"
_RESTORE = "restore the folder that goes with this checkpoint; the query stops so that no row is lost"


class Outlet:
    """Delivers micro-batches in order, with a file of what waits after each, so that a replay gives the same again.

    Parameters
    ----------
    order
        The order to give.
    folder
        A path, or a URI that Arrow knows: `41.arrow` in it is the state after micro-batch 41. It belongs to the
        checkpoint of the query.
    retain
        The number of micro-batches that could be replayed: so many files are kept, and the one before them.
    first
        The micro-batch that starts with nothing; a later one without the file before it is refused.
    """

    def __init__(self, order: Order, folder: str, retain: int = 100, first: int = 0) -> None:
        self.order, self.retain, self.first = order, retain, first
        self.report = Report()
        self._states = _States(uri_of(folder))
        self._states.place()  # to refuse it now
        self._lock = threading.Lock()
        self._warned = False

    def run(self, batch: int, rows: pa.Table, deliver: Deliver, query: str = "") -> None:
        """Deliver what can be delivered with the rows of a micro-batch of a query."""
        with self._lock:
            delivery = self._before(batch, query)
            late = delivery.report.late
            given = delivery.add(rows, time.time())
            if delivery.report.late > late:
                self._warn(batch, delivery.report)
            if given.num_rows:
                deliver(given, batch)
            self._states.write(_file(batch), delivery.dump())
            self._states.forget(batch - self.retain, batch)
            self.report = delivery.report

    def flush(self, deliver: Deliver) -> None:
        """Deliver all that waits, as micro-batch -1 - i if i was the last: no other has that id."""
        with self._lock:
            batch = max(self._states.batches(), default=None)
            if batch is None:
                return
            delivery = self._load(batch)
            given = delivery.finish(time.time())
            if given.num_rows:
                deliver(given, -1 - batch)
                self._states.write(_file(batch), delivery.dump())
            self.report = delivery.report

    def _before(self, batch: int, query: str) -> Delivery:
        if batch != self.first:
            return self._of(query, batch - 1)
        there = max(self._states.batches(), default=-1)
        if there > batch:
            raise SkewlessError(
                f"{self._states.name(there)} is of a later micro-batch than {batch}, with which this query starts; "
                f"{_OWN}, or delete this one if its query is gone"
            )
        if there == batch:  # it is run again
            self._of(query, batch)
        return Delivery(self.order, query)

    def _of(self, query: str, batch: int) -> Delivery:
        """What waited after a micro-batch of this query."""
        delivery = self._load(batch)
        if delivery.query != query:
            raise SkewlessError(
                f"{self._states.name(batch)} belongs to query {delivery.query}, and this is query {query}; {_OWN}"
            )
        return delivery

    def _load(self, batch: int) -> Delivery:
        name, data = self._states.name(batch), self._states.read(_file(batch))
        if data is None:
            raise SkewlessError(f"the rows that waited after micro-batch {batch} are not at {name}; {_RESTORE}")
        try:
            return Delivery.load(data, self.order)
        except SkewlessError:
            raise
        except (pa.ArrowInvalid, ValueError, KeyError, TypeError, OSError, StopIteration) as error:
            raise SkewlessError(f"{name} is damaged ({error}); {_RESTORE}") from error

    def _warn(self, batch: int, report: Report) -> None:
        if self._warned:
            return
        self._warned = True
        log.warning(
            "micro-batch %d has late results, %d so far with those before it (%s): they are delivered out of order; a "
            "longer delay, or higher parts, would have them wait. Later ones are only counted.",
            batch,
            report.late,
            counted(report.late_rows, "row"),
        )


class _States(Files):
    """A file for each micro-batch."""

    def name(self, batch: int) -> str:
        return self.shown(_file(batch))

    def batches(self) -> list[int]:
        return [int(name.removesuffix(".arrow")) for _, name in self._found() if name.endswith(".arrow")]

    def forget(self, first: int, last: int) -> None:
        """Delete what is of other micro-batches: older ones, and any that were undone with the checkpoint."""
        for batch, name in self._found():
            if not first <= batch <= last:
                self.delete(name)

    def _found(self) -> list[tuple[int, str]]:
        matches = [_FILE.fullmatch(name) for name in self.listed()]
        return [(int(match[1]), match[0]) for match in matches if match]


def _file(batch: int) -> str:
    return f"{batch}.arrow"
