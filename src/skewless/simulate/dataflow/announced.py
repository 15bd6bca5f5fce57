"""What skewless does instead, simulated: micro-batches, and a placement that is announced, copied, in force."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from skewless.core.arguments import check_whole
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.simulate.dataflow.checks import check_owners, check_seconds, owners_after
from skewless.simulate.dataflow.result import Flow, Moved, Stream
from skewless.simulate.dataflow.scheduler import Instruction, Scheduler


@dataclass(frozen=True)
class Batching:
    """What micro-batches cost, in seconds.

    Parameters
    ----------
    work
        Of a row in a worker.
    fixed
        Of a micro-batch, whatever its rows.
    copy
        To write or to read the total of a key whose slot moves.
    heard
        After how many further micro-batches the driver's decision reaches one: 1 if they are back to back, as the next
        one has begun when the driver hears of one.
    most
        The rows of a micro-batch at most, as from a source with a limit; the others wait for the next ones.
    """

    work: float
    fixed: float = 0.3
    copy: float = 1e-5
    heard: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        """Refuse times below 0 and numbers that are not whole."""
        for name in ("work", "fixed", "copy"):
            check_seconds(name, getattr(self, name))
        check_whole("heard", self.heard, least=0)
        most: Any = self.most
        if most is not None and (isinstance(most, bool) or not isinstance(most, Integral) or most < 1):
            raise SkewlessError(
                f"most is {most} rows a micro-batch; give a whole number of at least 1, or None for all that came"
            )


def announced(
    stream: Stream, owners: list[int], workers: int, batching: Batching, scheduler: Scheduler | None = None
) -> Flow:
    """Run a stream in micro-batches, one after the other, until all rows are done.

    A micro-batch takes the rows that have come when it begins, up to `most`, and all of them are done when its slowest
    worker is. When the driver has heard of one, the scheduler may announce a placement. The first micro-batch that
    begins after that still goes by the old one and leaves copies of the slots that move; the next one reads them and
    goes by the new one. No row waits for a state, so that none is kept.

    Parameters
    ----------
    stream
        The rows.
    owners
        The worker of each slot at first.
    workers
        The workers.
    batching
        What micro-batches cost.
    scheduler
        Decides what moves, from the rows of each slot in a micro-batch; nothing does without one.
    """
    check_owners(stream, owners, workers)
    place, planned = np.array(owners, np.int64), list(owners)
    done, worker = np.zeros(len(stream)), np.zeros(len(stream), np.int64)
    totals: list[dict[int, dict[int, int]]] = [{} for _ in range(workers)]  # of each worker, by slot
    moved: list[Moved] = []
    decided: list[tuple[int, float, list[Instruction]]] = []  # from which micro-batch on, and when
    announcement: tuple[float, list[Instruction]] | None = None  # copies were left, in force with the next
    first, batch, now, left = 0, 0, 0.0, 0.0
    while first < len(stream):
        start = max(now, float(stream.at[first]))
        end = int(np.searchsorted(stream.at, start, side="right"))
        end = end if batching.most is None else min(end, first + batching.most)
        reads = np.zeros(workers)
        if announcement is not None:
            told, pairs = announcement
            for pair in pairs:
                for slot in pair.slots:
                    copy = totals[pair.sender].pop(slot, {})
                    totals[pair.receiver][slot] = copy
                    reads[pair.receiver] += len(copy)
                place[list(pair.slots)] = pair.receiver
                moved.append(Moved(*pair, told, left, start))
            announcement = None
        slots = stream.slot[first:end]
        worker[first:end] = place[slots]
        _add(totals, stream, first, end, worker)
        loads = np.bincount(worker[first:end], minlength=workers) * batching.work + reads * batching.copy
        if decided and decided[0][0] <= batch:
            _from, told, pairs = decided.pop(0)
            for pair in pairs:
                copies = sum(len(totals[pair.sender].get(slot, ())) for slot in pair.slots)
                loads[pair.sender] += copies * batching.copy
            announcement = told, pairs
        now = start + batching.fixed + float(loads.max())
        done[first:end] = now
        left = now
        if scheduler is not None:
            busy = announcement is not None or bool(decided)
            pairs = scheduler.hear(np.bincount(slots, minlength=len(owners)).astype(np.float64), busy)
            planned = owners_after(pairs, planned, workers)
            if pairs:
                decided.append((batch + 1 + batching.heard, now, pairs))
        first, batch = end, batch + 1
    return Flow(
        stream.at,
        done,
        worker,
        np.zeros(len(stream)),
        tuple(moved),
        tuple({key: total for slot in each.values() for key, total in slot.items()} for each in totals),
    )


def _add(totals: list[dict[int, dict[int, int]]], stream: Stream, first: int, end: int, worker: Int64Array) -> None:
    pairs, where = np.unique(
        np.stack([worker[first:end], stream.slot[first:end], stream.key[first:end]]), axis=1, return_inverse=True
    )
    sums = np.bincount(where.ravel(), stream.value[first:end]).astype(np.int64)
    for me, slot, key, total in zip(*pairs.tolist(), sums.tolist(), strict=True):
        of_slot = totals[me].setdefault(slot, {})
        of_slot[key] = of_slot.get(key, 0) + total
