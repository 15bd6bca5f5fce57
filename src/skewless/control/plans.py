"""The durable folder of a stream whose batches are tuned: which sizes are in force, which are to come, what work took.

Sizes change at a window that no row has reached, in two steps. While a change is announced, rows of windows from there
on go both ways, by the old sizes and by the new, and the old owners still have the windows. Once a micro-batch that
went by the announcement is committed, and none that did not had reached the window, the change is in force: the new
owners have had all rows of their windows. Otherwise it is dropped, and the copies are forgotten with their time.

- `current.json`: the control of the next micro-batch.
- `deals/3.json`: the sizes of plan 3, never changed once they are there.
- `work/5.json`: what worker 5 did in the last micro-batch, and how long that took.
- `refused/3`: plan 3 came into force too early, which an owner found out.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import numpy as np

from skewless.chop.assignment import Assignment, BatchAssignment
from skewless.control.folder import Folder
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows

_SHIFT = 1 << 31


@dataclass(frozen=True)
class Plan:
    """What a micro-batch goes by.

    Parameters
    ----------
    force
        The number of the plan in force.
    announced
        The number of one that is to come; 0 if none is.

    Examples
    --------
    >>> Plan.of(Plan(3, announced=4).code)
    Plan(force=3, announced=4)
    """

    force: int
    announced: int = 0

    @property
    def code(self) -> int:
        """As one number, which rows can carry."""
        return self.force * _SHIFT + self.announced

    @classmethod
    def of(cls, code: int) -> Plan:
        """From the number."""
        return cls(*divmod(code, _SHIFT))


@dataclass(frozen=True)
class Work:
    """What a worker did in a micro-batch: rows of windows, windows and rows, and how long that took."""

    batch: int
    updates: int
    windows: int
    rows: int
    seconds: float


class Plans(Folder):
    """The folder of a stream whose batches are tuned."""

    def read_plan(self) -> Plan | None:
        """What the next micro-batch goes by; None in an empty folder."""
        code = self.read_code()
        return None if code is None else Plan.of(code)

    def write_plan(self, plan: Plan) -> None:
        """Let every micro-batch that starts from now on go by this."""
        self.write_code(plan.code)

    def write_deal(self, number: int, deal: BatchAssignment, before: int) -> None:
        """Add sizes, which are to follow those of another plan."""
        shape = [deal.windows.size, deal.windows.slide, deal.workers]
        fields = {"id": self.whose, "shape": shape, "sizes": deal.sizes, "before": before}
        self.write(f"deals/{number}.json", json.dumps(fields).encode())

    def deal(self, number: int) -> BatchAssignment:
        """The sizes of a plan."""
        return _deal(self, number)[0]

    def before(self, number: int) -> int:
        """The plan that another one followed."""
        return _deal(self, number)[1]

    def dealer(self, plan: Plan) -> Assignment:
        """Who gets a row."""
        deal = self.deal(plan.force)
        return Both(deal, self.deal(plan.announced)) if plan.announced else deal

    def last(self) -> int:
        """The highest number of a plan."""
        names = [info.base_name.removesuffix(".json") for info in self.listed("deals")]
        return max((int(name) for name in names if name.isdigit()), default=0)

    def write_work(self, worker: int, work: Work) -> None:
        """Say what a worker did."""
        fields = [work.batch, work.updates, work.windows, work.rows, work.seconds]
        self.write(f"work/{worker}.json", json.dumps(fields).encode())

    def read_work(self, workers: int, batch: int) -> list[Work]:
        """What workers did in a micro-batch, as far as it is known."""
        data = [self.read(f"work/{worker}.json") for worker in range(workers)]
        found = [Work(*json.loads(each)) for each in data if each]
        return [work for work in found if work.batch == batch]

    def refuse(self, number: int) -> None:
        """Have the driver go back to the plan before this one, when it starts next."""
        self.write(f"refused/{number}", b"")

    def refused(self, number: int) -> bool:
        """Whether an owner refused a plan."""
        return self.read(f"refused/{number}") is not None


@dataclass(frozen=True)
class Both(Assignment):
    """Rows to whom they belong by one deal, and to whom they belong by another; windows by the first."""

    deal: BatchAssignment
    other: BatchAssignment

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker of each window of a key."""
        return self.deal.worker_of(hashes, windows)

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """For each copy of these rows, which row it is of and its worker."""
        both = [rows * self.deal.workers + workers for rows, workers in self._copies(hashes, times)]
        once = np.unique(np.concatenate(both))
        return once // self.deal.workers, once % self.deal.workers

    def batch_of(self, window: int) -> range:
        """The windows that are dealt together with this one."""
        return self.deal.batch_of(window)

    def _copies(self, hashes: Int64Array, times: Int64Array) -> list[tuple[Int64Array, Int64Array]]:
        return [deal.copies(hashes, times) for deal in (self.deal, self.other)]


@functools.lru_cache(maxsize=64)
def _deal(plans: Plans, number: int) -> tuple[BatchAssignment, int]:
    path, remedy = f"deals/{number}.json", "restore the folder that goes with this checkpoint"
    data = plans.read(path)
    if data is None:
        raise SkewlessError(f"the sizes of batches of plan {number} are not at {plans.uri}/{path}; {remedy}")
    try:
        fields = json.loads(data)
        size, slide, workers = fields["shape"]
        sizes = tuple((int(start), int(batch)) for start, batch in fields["sizes"])
        whose, deal, before = fields["id"], BatchAssignment(Windows(size, slide), workers, sizes), int(fields["before"])
    except (ValueError, KeyError, TypeError) as error:
        raise SkewlessError(f"{plans.uri}/{path} is damaged ({error}); {remedy}") from error
    if whose != plans.whose:
        raise SkewlessError(f"{plans.uri}/{path} is of another stream; {remedy}")
    return deal, before
