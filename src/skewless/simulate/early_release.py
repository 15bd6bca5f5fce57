"""Early release: a micro-batch is cut a little before its interval ends, so that its plan is ready when it does."""

from __future__ import annotations

from collections import deque

import numpy as np

from skewless.core.errors import SkewlessError


class EarlyRelease:
    """Says how long before the end of an interval a micro-batch is cut.

    Planning takes time, and a plan that starts when the interval ends delays the micro-batch by that time. So the
    micro-batch takes only what arrives before the cut, and is planned between the cut and the end of the interval. What
    arrives after the cut belongs to the next micro-batch. The time between the two, the slack, is a high quantile of
    the last planning times and a little more, at most a share of the interval. The first micro-batch gets that share.

    Planning that takes longer than the slack delays its micro-batch by the difference. That happens if it suddenly
    takes much longer than it did, or longer than the share of the interval that it may have.

    Parameters
    ----------
    interval
        Seconds of a micro-batch.
    quantile
        Of the last planning times.
    headroom
        The quantile is multiplied by this, because the next micro-batch may have more keys than any before it.
    most
        The longest slack, as a share of the interval; the paper found 5 % to be enough.
    remember
        How many planning times count.

    Examples
    --------
    >>> release = EarlyRelease(interval=2.0)
    >>> release.slack
    0.1
    >>> release.took(0.02)
    >>> release.cut(end=6.0)
    5.975

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref: Prompt: dynamic data-partitioning for distributed
    micro-batch stream processing systems. SIGMOD 2020.
    """

    def __init__(
        self,
        interval: float,
        *,
        quantile: float = 0.99,
        headroom: float = 1.25,
        most: float = 0.05,
        remember: int = 100,
    ) -> None:
        if not interval > 0:
            raise SkewlessError(f"interval is {interval} s; give more than 0")
        if not 0 <= quantile <= 1 or not 0 <= most < 1:
            raise SkewlessError(f"quantile is {quantile} and most {most}; give shares from 0 to 1, and most below 1")
        if not headroom >= 1 or remember < 1:
            raise SkewlessError(f"headroom is {headroom} and remember {remember}; give at least 1 for both")
        self.interval, self.quantile, self.headroom, self.most = interval, quantile, headroom, most
        self._times: deque[float] = deque(maxlen=remember)

    @property
    def slack(self) -> float:
        """Seconds from the cut of the next micro-batch to the end of its interval."""
        longest = self.most * self.interval
        if not self._times:
            return longest
        # "higher" is a time that planning has taken; to go between two would be short of the longer one.
        usual = float(np.quantile(np.array(self._times), self.quantile, method="higher"))
        return min(longest, self.headroom * usual)

    def cut(self, end: float) -> float:
        """When the micro-batch whose interval ends at `end` is cut."""
        return end - self.slack

    def took(self, seconds: float) -> None:
        """Note how long a micro-batch was planned for."""
        if not seconds >= 0:
            raise SkewlessError(f"planning took {seconds} s; give at least 0")
        self._times.append(seconds)
