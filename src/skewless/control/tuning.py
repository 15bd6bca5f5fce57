"""The loop that tunes the batches of a stream's windows: what work took becomes costs, and costs become sizes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from skewless.chop.assignment import BatchAssignment
from skewless.chop.tuner import MOST, Tuner
from skewless.control.announcing import AnnouncingLoop
from skewless.control.batch_sizes import BatchSizes, Work
from skewless.control.loop import Chosen, Observed, copies_of
from skewless.control.version import Version
from skewless.core.errors import SkewlessError
from skewless.core.windows import BEFORE_ALL

GAIN = 0.05
"""A size that is faster by less is not worth a change."""


class Tuning(AnnouncingLoop):
    """Decides how many windows make a batch, while the query runs.

    Parameters
    ----------
    name
        The stream's name, for messages.
    folder
        The stream's folder.
    sizes
        The sizes to begin with.
    latency
        The seconds for which a window may wait.
    period
        The seconds between two choices.
    chosen
        What runs, and why.
    most
        The most windows in a batch.
    """

    folder: BatchSizes
    carried_on = 0  # whether all rows since were sent by an announcement is not known to a later run

    def __init__(
        self,
        name: str,
        folder: BatchSizes,
        sizes: BatchAssignment,
        latency: float,
        period: float,
        chosen: Chosen,
        most: int = MOST,
    ) -> None:
        super().__init__(name, sizes.workers, chosen, folder)
        windows = sizes.windows
        size, slide, workers = windows.size, windows.slide, sizes.workers
        self.tuner = Tuner(size, slide, workers, latency, unit=1e-6, period=period, most=most, once=True)
        self.begin_with(lambda: folder.write_sizes(0, sizes, 0, None))
        self.adopt()
        if (self.sizes.windows, self.sizes.workers) != (sizes.windows, sizes.workers):
            raise SkewlessError(
                f"the folder {folder.uri} is of windows {self.sizes.windows} on {self.sizes.workers} workers, not "
                f"{sizes.windows} on {sizes.workers}; name an empty folder with a new checkpoint"
            )
        self._reached: dict[int, int] = {}
        self._lowest: int | None = None
        self._arrived = 0

    def started(self, query: str, run: str) -> None:
        """Also go back to the sizes before, if the run that ended found that those in force came too early."""
        super().started(query, run)
        with self._changed:
            if self.whose == query and self.folder.refused(self.version.force):
                self.adopt()

    def begin(self, query: str) -> None:
        """Go by what the folder says, without what an earlier run announced: its start may be heard of late."""
        super().begin(query)
        if self.announced:
            self.withdraw()

    def adopt(self) -> None:
        """Read the sizes in force, or those before them if a worker found that they came too early."""
        if self.folder.refused(self.version.force):
            self.say(Version(self.folder.before(self.version.force)))
        self.sizes = self.folder.sizes(self.version.force)
        self.tuner.batch = self.sizes.batch

    def change(self, batch: int) -> None:
        """Have batches of another size, from a window on that no row has reached."""
        with self._changed:
            number = self.next_number()
            if not self._reached:
                raise SkewlessError("no micro-batch has ended yet; try again after one")
            highest = max(self._reached.values())
            # As far ahead as all rows so far reach, so that the next micro-batch does not come there first.
            ahead = highest - (self._lowest if self._lowest is not None else highest)  # in all micro-batches together
            self.tuner.batch = batch
            window = highest + 1 + max(ahead // max(1, self.batches) * 2, self.sizes.batch, batch)
            self.folder.write_sizes(number, self.sizes.changed(batch, window), self.version.force, self.whose)
            self.say(Version(self.version.force, number))

    def describe(self) -> list[str]:
        """What runs and why, and the size of batches."""
        coming = f"; version {self.version.announced} is announced" if self.announced else ""
        return [*super().describe(), f"{self.sizes.batch} windows make a batch{coming}"]

    def learn(self, seen: Observed) -> None:
        """Learn what a micro-batch went by, how far its rows reached, and how long they took."""
        ran_by, reached = self.ran_by(seen.control), max(note[0] for note in seen.notes)
        self.loads = copies_of([note[2:] for note in seen.notes], self.workers)
        if reached == BEFORE_ALL:
            return  # no row had a time
        self._add(self.folder.take_work(seen.batch))
        with self._changed:
            known = self._reached.get(ran_by.announced, BEFORE_ALL)
            self._reached[ran_by.announced] = max(reached, known)
            self._lowest = reached if self._lowest is None else min(reached, self._lowest)
            self._arrived += sum(note[1] for note in seen.notes)
            if self.announced:
                self._settle(ran_by)
                return
        span = (max(self._reached.values()) - self._lowest) * self.sizes.windows.slide
        density = self._arrived / span if span > 0 else None
        batch = self.tuner.tune(time.monotonic(), self._arrived, density)
        if batch == self.sizes.batch or density is None:
            return
        if self._is_as_good(batch):
            self.tuner.batch = self.sizes.batch
            return
        if not self.free():
            return
        if seen.watermark is not None:  # leave out the sizes of windows that are over
            self.sizes = self.sizes.from_window(self.sizes.windows.open_at(seen.watermark))
        self.change(batch)

    def _add(self, works: Sequence[Work]) -> None:
        """Learn what workers did in a micro-batch, and how many windows ended in it."""
        busy = [work for work in works if work.windows]
        for work in busy:
            self.tuner.add(work.updates, work.windows, work.rows, work.seconds)
        if busy:
            ended = max(work.ended[1] for work in busy) - min(work.ended[0] for work in busy)
            self.tuner.ended(ended, np.sum([work.starts for work in busy], axis=0))

    def _is_as_good(self, batch: int) -> bool:
        """Whether the size of now keeps the bound, and is nearly as fast as another."""
        model, tuner = self.tuner.model, self.tuner
        if model is None or not tuner.estimator.resolved or self.sizes.batch > tuner.most:
            return False
        now, then = model.throughput([self.sizes.batch, batch])
        kept = model.latency(self.sizes.batch, tuner.period) <= tuner.latency
        return bool(kept and then < (1 + GAIN) * now)

    def _settle(self, ran_by: Version) -> None:
        """Put an announced version in force once a micro-batch went by it; drop it if rows were there before."""
        number = self.version.announced
        if ran_by.announced != number:
            return
        sizes = self.folder.sizes(number)
        others = [last for announced, last in self._reached.items() if announced != number]
        if max(others, default=BEFORE_ALL) < sizes.sizes[-1][0]:
            self.sizes = sizes
            self._reached = {0: max(self._reached.values())}
            self.say(Version(number))
        else:
            self._reached[0] = max(self._reached.values())
            self.say(Version(self.version.force))
