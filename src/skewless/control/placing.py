"""The loop of a placed stream: what a micro-batch observed becomes, at times, a placement that moves slots.

Measure: packers count the rows of every slot, and `observe` the most frequent keys. Analyse: counts fade from batch to
batch, so that a spike does not move state. Plan: when the busiest worker has more than `alpha` times the average, the
placer is asked; what it proposes is taken if it brings more rows down to the average, over the next batches, than the
move of keys and of their bytes is worth. Activate: the placement is announced. The micro-batch after the first that
knew of it goes by it, without waiting for this loop, which hears of both later and then writes that it is in force.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from skewless.control.announcing import AnnouncingLoop
from skewless.control.loop import Chosen, Observed, log
from skewless.control.placements import Placements
from skewless.control.scaling import Scaling
from skewless.control.version import Version
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place import FadingCounts, Move, Placement, Placer, Rule, moves
from skewless.place.base import whole

LEAST = 16
"""A key of fewer rows in a micro-batch is not told apart: it may have been sampled but once or twice."""


class Placing(AnnouncingLoop):
    """Decides which worker owns each slot of a running query.

    Parameters
    ----------
    name
        The stream's name, for messages.
    placer
        The placer that proposes placements.
    folder
        The stream's folder.
    workers
        The workers that are active at the start.
    partitions
        The partitions of state: no more workers than that can ever be active.
    rule
        When to move state.
    retain
        The micro-batches that Spark could replay: for so long nothing that they would need is deleted.
    chosen
        What runs, and why.
    watched
        How many of the most frequent keys are observed in a micro-batch; None if that is not known.
    scaling
        What decides the number of active workers; None if that only changes by `rebalance`.
    """

    folder: Placements
    carried_on = 1

    def __init__(
        self,
        name: str,
        placer: Placer,
        folder: Placements,
        workers: int,
        partitions: int,
        rule: Rule,
        retain: int,
        chosen: Chosen,
        watched: int | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        super().__init__(name, workers, chosen, folder, scaling)
        self.placer, self.rule, self.partitions, self._retain = placer, rule, partitions, retain
        self._recent = FadingCounts(placer.slots, rule.memory)
        self._rested = rule.rest  # the first placement may be changed at once
        self._rows = 0  # of the last micro-batch
        asked = placer.watched(partitions)
        self._blind: str | None = None
        """What the placer asks for in vain, in words."""
        if watched is not None and watched < asked:
            self._blind = f"{placer.name} asks for the {asked} most frequent keys, and the {watched} first are watched"
            log.info("stream %s: %s; rarer ones stay in their tail slots", name, self._blind)
        first = partial(placer.place, Counts.none(), None, workers)
        self.begin_with(lambda: folder.write_placement(first().with_version(0), 0, None))
        self.adopt()
        if self.placement.tail_slots != placer.slots:
            raise SkewlessError(
                f"the folder {folder.uri} has {self.placement.tail_slots} slots, and slots is {placer.slots}; "
                "state stays in the slots it was made with, so give the same number"
            )
        if self.placement.workers > partitions:
            raise SkewlessError(
                f"the folder {folder.uri} has slots on {self.placement.workers} workers, and the session has "
                f"{partitions} shuffle partitions; set spark.sql.shuffle.partitions to what it was then"
            )

    def adopt(self) -> None:
        """Read the placement in force, and the number of workers of the one that is to come."""
        # For each version, the first micro-batch that is known to have run by it; those before may have been undone.
        self._since: dict[int, int] = {}
        self.placement = self.folder.placement(self.version.force)
        self.workers = self.folder.placement(self.version.to_come or self.version.force).workers
        if self.scaling is not None:
            self.scaling.go_on(self.workers)

    @property
    def stuck(self) -> bool:
        """Whether no micro-batch that is over can have gone by the announced placement."""
        return not self.folder.left(self.version)

    def started(self, query: str, run: str) -> None:
        """Also settle what was withdrawn, as nothing runs: if it is not in force now, it never will be."""
        super().started(query, run)
        with self._changed:
            if self.whose == query and self.version.withdrawn and self.stuck:
                self._settle(Version(self.version.force))

    def take_back(self, paused: str | None) -> None:
        """Let the next micro-batch find out whether the announced placement is in force already, or never will be."""
        self.say(replace(self.version, withdrawn=True), paused)
        self.adopt()

    def proposed(self, workers: int | None = None) -> Placement:
        """What the placer would have now."""
        return self.placer.place(self._recent.counts(), self.placement, workers or self.workers)

    def announce(self, placement: Placement) -> None:
        """Have a placement come into force as soon as state could be handed over."""
        with self._changed:
            number = self.next_number()
            self.folder.announce(placement.with_version(number), self.version.force, self.whose)
            self.workers = placement.workers
            self.say(Version(self.version.force, number))

    def rebalance(self, workers: int | None = None, *, dry: bool = False) -> tuple[Move, ...]:
        """Ask the placer now, whatever the rule says; the moves it makes, or with `dry` would make."""
        if workers is not None:
            advice = ", as this query has state in that many partitions, or leave workers= out"
            workers = whole("workers", workers, 1, self.partitions, advice)
        if workers is not None and self.scaling is not None:
            raise SkewlessError(
                f"workers is {workers}, but {self.scaling.asked} of this query follow the load; leave workers= out"
            )
        with self._changed:
            self.reread()
        placement = self.proposed(workers)
        found = moves(self.placement, placement)
        if not dry and placement is not self.placement:
            self.announce(placement)
        return found

    def describe(self) -> list[str]:
        """What runs and why, and which placement is in force."""
        own = f", {len(self.placement.keys)} keys have slots of their own" if len(self.placement.keys) else ""
        coming = f"; placement {self.version.announced} is announced" if self.announced else ""
        return [
            *super().describe(),
            f"placement {self.placement.version} is in force: {self.placement.tail_slots} slots{own}{coming}",
            *([self._blind] if self._blind else []),
        ]

    def learn(self, seen: Observed) -> None:
        """Learn from what was counted of a micro-batch, and take the next step."""
        ran_by, counts = self.ran_by(seen.control), np.sum(np.array(seen.notes, dtype=np.int64), axis=0)
        placement = self.placement if ran_by.force == self.placement.version else self.folder.placement(ran_by.force)
        loads = np.bincount(placement.owners, counts, self.partitions)
        self.loads = {
            worker: int(rows) for worker, rows in enumerate(loads.tolist()) if rows or worker < placement.workers
        }
        self._count(placement, counts, seen.counts)
        if self.scaling is not None:
            self.scaling.follow(seen, placement.workers)
        with self._changed:
            self._since.setdefault(ran_by.force, seen.batch)
            coming = self.version.announced
            if coming and coming in (ran_by.to_come, ran_by.force):
                self._settle(Version(coming))
                self._rested = -1 if ran_by.to_come else 0  # the one that is done did not go by it, if it knew of it
                ran_by = self.version
            elif coming and ran_by == self.version:
                self._settle(Version(ran_by.force))  # it is withdrawn, and was not in force
            self._forget(seen.batch)
            if self.announced or ran_by != self.version:
                return  # what is in force was not seen yet
            self._rested += 1
        if self.paused:
            return
        if self.scaling is not None and self.scaling.workers != self.workers:
            if self.free():
                self.announce(self.proposed(self.scaling.workers))
        elif self._rested >= self.rule.rest:
            self._plan()

    def begin(self, query: str) -> None:
        """As the folder says; and a run has its own trigger."""
        super().begin(query)
        if self.scaling is not None:
            self.scaling.begin(query)

    def _plan(self) -> None:
        seen, rule = self._recent.counts(), self.rule
        before = rule.loads(self.placement, seen, self.partitions)
        if not rule.asks(before, self.workers):
            return
        placement = self.placer.place(seen, self.placement, self.workers)
        if placement is self.placement:
            return
        after, moved = rule.loads(placement, seen, self.partitions), rule.moved(self.placement, placement, seen)
        state = self.folder.state_bytes() * rule.moved(self.placement, placement, seen, rule.state)
        if rule.pays(before, after, moved, self._rows, state, self.workers) and self.free():
            self.announce(placement)

    def _settle(self, version: Version) -> None:
        """What was announced is in force, or never will be."""
        withdrawn = self.version.withdrawn
        self.say(version, self.folder.paused())
        self.placement = self.folder.placement(version.force)
        self.workers = self.placement.workers
        if withdrawn and self.scaling is not None and self.scaling.workers != self.workers:
            self.scaling.go_on(self.workers)

    def _count(self, placement: Placement, counts: Int64Array, top: Counts | None) -> None:
        """Let what was counted be known: tracked keys exactly, other hot keys as sampled, and the rest by slot."""
        self._rows = int(counts.sum())
        tail = counts[: placement.tail_slots].copy()
        known = {
            key: int(rows) for key, rows in zip(placement.keys.tolist(), counts[len(tail) :].tolist(), strict=True)
        }
        if top is not None:
            for key, count in zip(top.keys.tolist(), top.counts.tolist(), strict=True):
                if key not in known and count >= LEAST:
                    slot = key % len(tail)
                    known[key] = min(int(count), int(tail[slot]))
                    tail[slot] -= known[key]
        keys, rows = np.array(list(known), dtype=np.int64), np.array(list(known.values()), dtype=np.int64)
        came = rows > 0
        self.placer.learn(Counts(keys[came], rows[came], int(counts.sum()), tail))
        self._recent.add(keys, rows, int(counts.sum()), tail)

    def _forget(self, batch: int) -> None:
        """Delete what no replay can need: moves to a version are needed for as long as its first micro-batch is."""
        done = [version for version, since in self._since.items() if version and since + self._retain <= batch]
        if done:
            self._since = {version: since for version, since in self._since.items() if version not in done}
            self.folder.forget(max(done))


def placed(placer: Placer, seen: Counts | None, workers: int) -> Placement:
    """The placement for rows that are counted already."""
    first = placer.place(Counts.none(), None, workers)
    return first if seen is None else placer.place(seen, first, workers)
