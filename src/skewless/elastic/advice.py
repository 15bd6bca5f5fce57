"""How much of a micro-batch is fixed cost, and the trigger with which it would be little."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, SupportsFloat

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

FEWEST = 5  # micro-batches to learn from
LITTLE = 0.1  # the share of fixed cost that is little
APART = 0.1  # numbers of rows that differ by less than this share say nothing about the cost of a row


class Timed(NamedTuple):
    """A micro-batch that is done: when it began, its rows, and how long it took.

    `outside` is the part of `seconds` that was not spent on its rows for sure, such as for planning and for the logs.
    """

    began: float
    rows: float
    seconds: float
    outside: float = 0.0


@dataclass(frozen=True)
class Advice:
    """What the fixed cost of micro-batches is, and which trigger makes it small; made by `advise`.

    Attributes
    ----------
    fixed
        Seconds that a micro-batch takes whatever its rows.
    a_row
        Seconds more for each row.
    rate
        Rows a second.
    share
        The part of the time of the micro-batches so far that is fixed cost.
    trigger
        Seconds between micro-batches that are advised; None if no trigger keeps up with the rate, or none is within the
        latency, or if rows take no time that could be seen and no latency is given.
    share_then
        The share of the fixed cost with that trigger.
    latency, little
        What was asked for: the longest time from a row's arrival to its result, and the share that is little.
    exact
        Whether the fixed cost was found from micro-batches with different numbers of rows. If those were all alike, it
        is the time that was spent outside of the rows for sure, and may be more.

    Examples
    --------
    >>> print(advise([Timed(t, rows, 0.4 + rows / 50_000) for t, rows in enumerate((8e3, 9e3, 9e3, 8e3, 6e3, 8e3))]))
    A micro-batch takes 400 ms and 20.0 us a row: 72 % of its time is fixed cost at 8,000 rows/s. With a trigger of 22 s
    it is 10 %, and a row waits 26 s at most.
    """

    fixed: float
    a_row: float
    rate: float
    share: float
    trigger: float | None
    share_then: float | None
    latency: float | None
    little: float
    exact: bool

    @property
    def busy(self) -> float:
        """The part of the time that the rows alone take; from 1 on, no trigger keeps up."""
        return self.a_row * self.rate

    def took(self, trigger: float) -> float:
        """Seconds that a micro-batch takes with this trigger."""
        return self.fixed + self.busy * trigger

    def __str__(self) -> str:
        least = "" if self.exact else "at least "
        said = (
            f"A micro-batch takes {least}{self.fixed * 1e3:,.0f} ms and {self.a_row * 1e6:,.1f} us a row: "
            f"{self.share:.0%} of its time is fixed cost at {self.rate:,.0f} rows/s."
        ).replace("%", " %")
        if self.busy >= 1:
            return (
                f"{said} The rows alone take more time than there is: no trigger helps, more workers or fewer rows do."
            )
        if self.trigger is None and self.latency is None:
            return (
                f"{said} More rows take no more time here, so nothing speaks against a longer trigger but the latency."
            )
        if self.trigger is None:
            return f"{said} No trigger answers within {self.latency:g} s: more workers or a longer latency do."
        assert self.share_then is not None
        then = f"{self.share_then:.0%}".replace("%", " %")
        waits = f"a row waits {self.trigger + self.took(self.trigger):.2g} s at most."
        if self.share_then > self.little * (1 + 1e-9):
            longest = f"The longest trigger within {self.latency:g} s is {self.trigger:.2g} s: it is {then} then."
            return f"{said} {longest}{self._limited}"
        return f"{said} With a trigger of {self.trigger:.2g} s it is {then}, and {waits}{self._limited}"

    @property
    def _limited(self) -> str:
        """What to do about a source with a limit, where micro-batches look as if there might be one."""
        if self.exact:
            return ""
        return (
            " All micro-batches had about as many rows: if the source limits them, raise its limit with the trigger, "
            "or a longer trigger has no more rows."
        )


def advise(batches: Sequence[Timed], latency: float | None = None, little: float = LITTLE) -> Advice:
    """Say how much of these micro-batches is fixed cost, and with which trigger it is little.

    The time of a micro-batch is taken to be a fixed cost and a cost for each row: the median of the slopes between all
    pairs, and of what is left, so that a few slow micro-batches do not matter. A trigger of t seconds gives
    micro-batches of `rate` t rows. The one advised is the shortest with which the fixed cost is at most `little` of
    them and each is done before the next begins. If that takes longer than `latency` from a row's arrival to its
    result, it is the longest that does not.

    Rows are taken to come by the clock. Where a source gives each micro-batch as many rows whatever the trigger, as
    `rate-micro-batch` and a limit such as `maxOffsetsPerTrigger` do, its rate is not known, and the trigger that is
    advised holds only if the limit is raised with it.

    Parameters
    ----------
    batches
        The last micro-batches with rows, in the order of time; at least five.
    latency
        The longest time, in seconds, that a row may wait for its result; without it, any time will do.
    little
        The share of fixed cost to get below.

    Examples
    --------
    >>> seen = [Timed(t, rows, 0.3 + rows / 10_000) for t, rows in enumerate((2000, 4000, 3000, 2000, 4000, 3000))]
    >>> found = advise(seen, latency=5.0)
    >>> round(found.fixed, 3), round(found.share, 2), round(found.trigger, 2), round(found.share_then, 2)
    (0.3, 0.51, 3.56, 0.21)
    """
    if latency is not None and not isinstance(latency, SupportsFloat):
        raise SkewlessError(f"latency is {latency!r}; give seconds as a number, such as 5.0")
    if latency is not None and not (math.isfinite(latency) and latency > 0):
        raise SkewlessError(f"latency is {latency} seconds; give a finite number above 0")
    if not isinstance(little, SupportsFloat):
        raise SkewlessError(f"little is {little!r}; give a share above 0 and below 1, such as 0.1")
    if not 0 < little < 1:
        raise SkewlessError(f"little is {little}; give a share above 0 and below 1, such as 0.1")
    for batch in batches:
        if not isinstance(batch, Timed):
            raise SkewlessError(f"a micro-batch is {batch!r}; give Timed(began, rows, seconds)")
        for name, value in zip(Timed._fields, batch, strict=True):
            if not isinstance(value, SupportsFloat):
                raise SkewlessError(f"{name} of a micro-batch is {value!r}; give a number")
        if not (math.isfinite(batch.rows) and batch.rows >= 0):
            raise SkewlessError(f"a micro-batch had {batch.rows} rows; give a finite number of at least 0")
    seen = [batch for batch in batches if batch.rows > 0]
    if len(seen) < FEWEST:
        raise SkewlessError(f"{len(seen)} micro-batches with rows are done; wait until there are {FEWEST}")
    for batch in seen:
        if not (math.isfinite(batch.seconds) and batch.seconds >= 0):
            raise SkewlessError(f"a micro-batch took {batch.seconds} seconds; give a finite number of at least 0")
        if not 0 <= batch.outside <= batch.seconds:
            raise SkewlessError(
                f"of a micro-batch of {batch.seconds} seconds {batch.outside} were outside of its rows; give a number "
                f"from 0 to {batch.seconds}"
            )
    for before, after in pairwise(seen):
        if not before.began <= after.began:
            raise SkewlessError(
                f"a micro-batch that began at {after.began} s comes after one that began at {before.began} s; give "
                "them in the order of time, from after the last time that the clock was set back"
            )
    rows, seconds = np.array([batch.rows for batch in seen]), np.array([batch.seconds for batch in seen])
    fixed, a_row, exact = _fit(rows, seconds, np.array([batch.outside for batch in seen]))
    span = seen[-1].began - seen[0].began
    if not span > 0:
        raise SkewlessError(f"{len(seen)} micro-batches began within {span} s; give them in the order of time")
    rate = float(rows[1:].sum()) / span  # the rows of a micro-batch came since the one before began
    whole = fixed + a_row * rows
    share = float((fixed / np.where(whole > 0, whole, 1.0)).mean())
    trigger = _trigger(fixed, a_row * rate, latency, little)
    then = None
    if trigger is not None:
        took = fixed + a_row * rate * trigger
        then = fixed / took if took > 0 else 0.0
    return Advice(fixed, a_row, rate, share, trigger, then, latency, little, exact)


def _fit(rows: FloatArray, seconds: FloatArray, outside: FloatArray) -> tuple[float, float, bool]:
    """The fixed cost, the cost of a row, and whether the rows differ enough to tell the two apart."""
    first, second = np.triu_indices(len(rows), 1)
    far = np.abs(rows[first] - rows[second]) > APART * np.maximum(rows[first], rows[second])
    least = float(np.median(outside))
    if far.sum() < FEWEST:
        return least, max(0.0, float(np.median((seconds - least) / rows))), False
    slopes = (seconds[first] - seconds[second])[far] / (rows[first] - rows[second])[far]
    a_row = max(0.0, float(np.median(slopes)))
    fixed = max(least, float(np.median(seconds - a_row * rows)))
    return fixed, a_row, True


def _trigger(fixed: float, busy: float, latency: float | None, little: float) -> float | None:
    if busy >= 1:
        return None
    keeps_up = fixed / (1 - busy)
    is_little = fixed * (1 - little) / (little * busy) if busy > 0 else math.inf
    wanted = max(keeps_up, is_little)
    if latency is None:
        return wanted if math.isfinite(wanted) else None
    longest = (latency - fixed) / (1 + busy)  # a row that just missed a micro-batch waits for the next, and its time
    if longest < keeps_up:
        return None
    return min(wanted, longest)
