"""Prompt+, Figure 3.7a: the rates that schedulers sustain, by partitioner, by interval and by the size of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.figure import Check, Table, Tell
from experiments.prompt.rivals import ALL, OTHERS
from experiments.prompt.scheduling import AHEAD, GROUP, GROUPS, ONE, SCHEDULERS, Case, expected
from skewless.core.arrays import Int64Array
from skewless.simulate.arrivals import Keys

SHARES = (0.1, 0.25, 0.5, 0.65, 0.77)  # of the interval that scheduling takes: so intervals are
SIZES = (2, 5, 10, 20)  # of groups
STREAMS = ONCE, WORDS = ("keys that come once", "words")
FREE = "words whose partial results cost nothing"
FACTOR = 4.0
EXACT = 0.002  # of a rate; a hundredth would be three at the shortest interval, where work is a quarter of the time
UNPAID = (
    "Nobody waits for a message that is sent ahead, so that the gain is 1 / (1 - o) whatever G is: more than the "
    "formula, and the more so the larger o / G is."
)
EVERYONE = (*ALL, *OTHERS)
Rates = Mapping[str, float]
Swept = Mapping[tuple[str, int], float]


class Once:
    """Keys of which none comes twice, so that the work of a micro-batch is proportional to its tuples."""

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""
        return (np.arange(start, min(n, start + block)) for start in range(0, n, block))


@dataclass(frozen=True)
class Gains:
    """Rates that were found, and what they say of gains.

    Attributes
    ----------
    interval
        The interval of the matrix, in seconds.
    message
        Seconds of a message.
    matrix
        The rate of each scheduler, by partitioner.
    swept
        The rates of schedulers and sizes of groups, by stream and by the share of scheduling.
    without
        The rate of group-ahead without a scheduling window over that of groups.
    """

    interval: float
    message: float
    matrix: Mapping[str, Rates]
    swept: Mapping[tuple[str, float], Swept]
    without: float

    @property
    def by_partitioner(self) -> Rates:
        """The gain of group-ahead."""
        return {name: rates[AHEAD] / rates[ONE] for name, rates in self.matrix.items()}

    @property
    def at_ten(self) -> Mapping[str, list[float]]:
        """The gain of group-ahead by the share of scheduling, of each stream."""
        return {stream: [self._over(stream, share, AHEAD, GROUP) for share in SHARES] for stream in STREAMS}

    @property
    def fourfold(self) -> Rates:
        """The interval at which that gain is fourfold, of each stream."""
        return {
            stream: self.message / float(np.interp(FACTOR, gained, SHARES)) for stream, gained in self.at_ten.items()
        }

    def _over(self, stream: str, share: float, name: str, size: int) -> float:
        return self.swept[stream, share][name, size] / self.swept[stream, share][ONE, 1]

    def off(self, stream: str, name: str, sizes: Sequence[int]) -> float:
        """How far gains are from the formula, the most of all intervals and these sizes of groups."""
        return max(
            abs(self._over(stream, share, name, size) / expected(share, size) - 1) for share in SHARES for size in sizes
        )

    def unpaid(self, stream: str) -> float:
        """How far gains of group-ahead are from 1 / (1 - o), the most of all intervals and sizes of groups."""
        return max(abs(self._over(stream, share, AHEAD, size) * (1 - share) - 1) for share in SHARES for size in SIZES)

    def checks(self) -> tuple[Check, ...]:
        """What the figure shows, and what the formula says."""
        gained = self.by_partitioner.values()
        formula = "gain of {} over (1 - o/G) / (1 - o){}, the largest deviation"
        compared = ((GROUPS, SIZES, ""), (AHEAD, (GROUP,), f" at G = {GROUP}"))
        return (
            Check(
                f"3.7a, {ONCE}: {formula.format(GROUPS, '')} of all intervals and G",
                self.off(ONCE, GROUPS, SIZES),
                high=0.1,
            ),
            Check(
                f"3.7a, {ONCE}: {formula.format(AHEAD, f' at G = {GROUP}')}",
                self.off(ONCE, AHEAD, (GROUP,)),
                high=0.1,
                why=UNPAID,
            ),
            Check(
                f"3.7a, {ONCE}: the same at all G", self.off(ONCE, AHEAD, SIZES), high=0.1, essential=False, why=UNPAID
            ),
            *(
                Check(
                    f"3.7a, {stream}: {formula.format(name, where)}",
                    self.off(stream, name, sizes),
                    high=0.1,
                    essential=stream == WORDS,
                    why="The formula takes work to be proportional to tuples. A micro-batch of words emits one partial "
                    "result for each key of a block, and a larger micro-batch has fewer of them a tuple. Without the "
                    "message there is time for a larger micro-batch, so that the gain is more than that of the "
                    f"formula. The deviation is {self.off(FREE, name, sizes):.1%} with the same words if partial "
                    f"results cost nothing, and {self.off(ONCE, name, sizes):.1%} with {ONCE}.".replace("%", " %"),
                )
                for stream in (WORDS, FREE)
                for name, sizes, where in compared
            ),
            *(
                Check(
                    f"3.7a, {stream}: gain of group-ahead over 1 / (1 - o), as nobody waits for a message: the largest "
                    "deviation of all intervals and G",
                    self.unpaid(stream),
                    high=0.1,
                    essential=stream != FREE,
                    why="This formula too takes work to be proportional to tuples. The deviation is "
                    f"{self.unpaid(FREE):.1%} with the same words if partial results cost nothing, and "
                    f"{self.unpaid(ONCE):.1%} with {ONCE}: what is left of it with words is that a larger micro-batch "
                    "has fewer partial results a tuple.".replace("%", " %"),
                )
                for stream in (ONCE, WORDS, FREE)
            ),
            Check(
                f"3.7a, {ONCE}: rate of group-ahead without a scheduling window over that of groups, at the shortest "
                f"interval and G = {GROUP}",
                self.without,
                low=0.99,
                high=1.01,
                essential=False,
            ),
            Check(
                "3.7a: largest gain of group-ahead over its least among all partitioners, intervals of "
                f"{self.interval:g} s",
                max(gained) / min(gained),
                high=1.25,
            ),
            Check(
                "3.7a: gain of group-ahead over 1 / (1 - o), the largest deviation of all partitioners, intervals of "
                f"{self.interval:g} s",
                max(abs(each * (1 - self.message / self.interval) - 1) for each in gained),
                high=0.1,
            ),
            Check(
                "3.7a: rate of group-ahead over that of groups, the least of both streams, all intervals and G (by "
                "construction: it never waits longer for a message)",
                min(
                    self.swept[stream, share][AHEAD, size] / self.swept[stream, share][GROUPS, size]
                    for stream in STREAMS
                    for share in SHARES
                    for size in SIZES
                ),
                low=0.99,
                essential=False,
            ),
            *(
                Check(
                    f"3.7a, {stream}: interval at which the gain is {FACTOR:g}, over that at which 1 / (1 - o) is",
                    interval / fourfold(self.message),
                    low=0.9,
                    high=1.1,
                )
                for stream, interval in self.fourfold.items()
            ),
        )

    def tables(self) -> tuple[Table, ...]:
        """The matrix, and a table of gains for each stream."""
        return (
            Table(
                f"3.7a: highest rate in 1,000 tuples a second, intervals of {self.interval:g} s, groups of {GROUP}",
                ("partitioner", *SCHEDULERS, "group-ahead over one at a time"),
                tuple(
                    (name, *(rates[each] / 1e3 for each in SCHEDULERS), self.by_partitioner[name])
                    for name, rates in self.matrix.items()
                ),
            ),
            *(
                Table(
                    f"3.7a: gain over one at a time, Prompt, {stream}",
                    (
                        "interval, s",
                        "scheduling o",
                        *(f"{each}, G = {size}" for each in (GROUPS, AHEAD) for size in SIZES),
                        f"(1 - o/{GROUP}) / (1 - o)",
                        "1 / (1 - o)",
                    ),
                    tuple(
                        (
                            self.message / share,
                            share,
                            *(self._over(stream, share, each, size) for each in (GROUPS, AHEAD) for size in SIZES),
                            expected(share, GROUP),
                            1 / (1 - share),
                        )
                        for share in SHARES
                    ),
                )
                for stream in (*STREAMS, FREE)
            ),
        )


def fourfold(message: float) -> float:
    """The interval at which 1 / (1 - o) is fourfold, if a message takes so many seconds.

    >>> fourfold(0.75)
    1.0
    """
    return message / (1 - 1 / FACTOR)


def gains(base: Case, tell: Tell) -> Gains:
    """Search for the rates of a stream of words, for all partitioners, and by interval for Prompt."""
    message = base.cost.seconds(base.tasks)
    matrix: dict[str, Rates] = {}
    for name in EVERYONE:
        tell(f"{name}, intervals of {base.interval:g} s")
        matrix[name] = _rates(replace(base, technique=name))
    once: Keys = Once()
    free = replace(base, setting=replace(base.setting, partial=0.0))
    streams = {ONCE: replace(base, keys=once), WORDS: base, FREE: free}
    swept = {
        (stream, share): _swept(replace(case, interval=message / share), tell)
        for stream, case in streams.items()
        for share in SHARES
    }
    tell("no scheduling window")
    shortest = replace(streams[ONCE], interval=message / SHARES[-1], lead=0.0)
    grouped = swept[ONCE, SHARES[-1]][GROUPS, GROUP]
    without = shortest.highest(AHEAD, grouped, tolerance=EXACT) / grouped
    return Gains(base.interval, message, matrix, swept, without)


def _rates(case: Case) -> Rates:
    found: dict[str, float] = {}
    start = case.setting.start
    for name in SCHEDULERS:
        found[name] = start = case.highest(name, start)
    return found


def _swept(case: Case, tell: Tell) -> Swept:
    """The rates of one at a time, and of both kinds of groups of several sizes, all over as many micro-batches."""
    tell(f"{case.technique}, intervals of {case.interval:.2f} s")
    found = {(ONE, 1): case.highest(ONE, case.setting.start * (1 - case.share), tolerance=EXACT)}
    for size in SIZES:
        grouped = replace(case, group=size)
        for name in (GROUPS, AHEAD):
            found[name, size] = grouped.highest(name, found[ONE, 1] * expected(case.share, size), tolerance=EXACT)
    return found
