"""Several partitioners on the simulated cluster: those that learn together, and the streams of their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.costs import MEASURED, SLOWER, message
from experiments.dalton.rivals import RIVALS, Rival
from experiments.dalton.word_count import Setup
from skewless.core.arrays import Int64Array
from skewless.simulate import Cooperation, Partitioners, Sustained
from skewless.simulate.arrivals import Keys
from skewless.split import Broadcast, CooperativeDalton, QTableReducer

WORK = SLOWER * MEASURED["merge"]
"""Seconds that merging the tables takes."""

TELL = SLOWER * MEASURED["tell"]
"""Seconds that a partitioner takes to send its table and to take over the common one, after the most tuples."""

TOGETHER = 280_000.0
"""Tuples a second of all partitioners, about as many as the figures find; it decides how many a message is about."""


def telling(interval: float, partitioners: int = 2, rate: float = TOGETHER) -> float:
    """Seconds of a partitioner for a message and its answer, by the interval from one to the next.

    >>> telling(10.0) == TELL
    True
    >>> telling(1.0) < telling(5.0) < TELL
    True
    """
    return message(rate * interval / partitioners)


PARAMETERS = "dalton, the paper's parameters"
"""Learns together as `dalton` does, by the average of the tables as the paper means it."""

SEVERAL: dict[str, Rival] = {
    **{name: rival for name, rival in RIVALS.items() if name != "dalton as printed"},
    PARAMETERS: RIVALS["dalton as printed"],
    "cam": Rival(RIVALS["cam"].make),
}
"""The algorithms with several partitioners: those of cAM choose differently, so that its keys are reduced too."""

FORWARDING = (
    "by dalton where its partitioners synchronise in the slide; by dagreedy as if its partitioners were told for "
    "nothing which keys the other one splits; not by partitioners of dalton that do not talk, as they cannot know"
)
"""What is forwarded with several partitioners, for the setup of a figure."""

PRINTED: dict[str, Any] = {"hot_at": 1.0, "choices": 1, "max_split": None}
OURS: dict[str, Any] = {"hot_at": 0.1}


@dataclass(frozen=True)
class Point:
    """A rate that is sustained, and how tuples were spread at that rate.

    Attributes
    ----------
    rate
        Tuples a second.
    imbalance
        The load of the busiest combiner over the average.
    fragments
        The combiners that hold the hottest key.
    """

    rate: float
    imbalance: float
    fragments: float


def point(found: Sustained, since: float) -> Point:
    """What was sustained, and the means of what the run at that rate had after some seconds, with key 0 watched."""
    late = found.run.time > since
    return Point(found.rate, float(found.run.max_over_avg[late].mean()), float(found.run.watched[late].mean()))


@dataclass(frozen=True)
class Alternating:
    """The tuples of two streams in turn.

    >>> from skewless.simulate import Recorded
    >>> one, other = Recorded(np.array([1, 2])), Recorded(np.array([7, 8]))
    >>> next(Alternating(one, other).blocks(4, block=4))
    array([1, 7, 2, 8])
    """

    one: Keys
    other: Keys

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, or one less if `n` is odd, at most `block` of them at a time."""
        pairs = zip(self.one.blocks(n // 2, block // 2), self.other.blocks(n // 2, block // 2), strict=True)
        for one, other in pairs:
            yield np.stack([one, other], axis=1).ravel()


class FixedReducer(QTableReducer):
    """A Q-table reducer that never changes the interval.

    With `values=False` it tells which keys are hot and the load of all, but every partitioner keeps its own values.
    With `later`, the interval from the first broadcast on is another than until then, so that the messages that follow
    are shifted by the first interval.
    """

    def __init__(self, *arguments: Any, values: bool = True, later: float | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tells_values = values
        self._later = later

    def reduce(self, start: float, work: float, query: Any = 0) -> Broadcast:
        """Merge the messages of a round."""
        fixed = self.interval(query) if self._later is None else self._later
        common = super().reduce(start, work, query)
        self._intervals[query] = fixed
        return replace(common, interval=fixed, values=common.values if self._tells_values else None)


def cooperation(
    setup: Setup,
    partitioners: int,
    interval: float,
    *,
    merge: str = "normalised",
    options: dict[str, Any] | None = None,
    adaptive: bool = False,
    work: float | Callable[[float], float] = WORK,
    tell: float | None = None,
    values: bool = True,
    first: float | None = None,
    seed: int = 0,
) -> Cooperation:
    """Daltons that learn together: by default ours, whose tables are averaged as the paper means it.

    A message takes a partitioner `tell` seconds, or as long as with so many tuples from one to the next if it is None.
    The first messages are sent at `first`, or after an interval if it is None, and with it all others are shifted.
    """
    options = OURS if options is None else options
    workers = setup.cluster(RIVALS["dalton"]).combiners
    start = interval if first is None else first
    common: dict[str, Any] = {"interval": start, "merge": merge, "hot_at": options["hot_at"]}
    reducer = (
        QTableReducer(partitioners, workers, **common)
        if adaptive
        else FixedReducer(partitioners, workers, values=values, later=interval, **common)
    )
    team = [
        CooperativeDalton(workers, slide=None, slides=setup.slides, seed=100 * seed + number, **options)
        for number in range(partitioners)
    ]
    return Cooperation(reducer, team, work=work, tell=telling(interval, partitioners) if tell is None else tell)


class Told(Partitioners):
    """Partitioners that do not talk to each other, but are told for nothing which keys the others may have split.

    So the keys that none of them split are forwarded, as with a single partitioner.
    """

    @property
    def synced(self) -> bool:
        """Whether all knew within the slide which keys are hot at the others: they always do."""
        return True


def apart(setup: Setup, rival: Rival, partitioners: int, *, told: bool = False) -> Partitioners:
    """Partitioners of any algorithm that do not talk to each other.

    They forward nothing, as none knows which keys the others split, unless they are `told`.
    """
    splitter = rival.make(setup.cluster(rival).combiners, setup.slides)
    return (Told if told else Partitioners).like(splitter, partitioners)
