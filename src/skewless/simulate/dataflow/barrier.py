"""Implicit barriers: which of its input channels have delivered a control message to an operator."""

from __future__ import annotations

from collections.abc import Sequence

from skewless.core.errors import SkewlessError


class Barriers:
    """The control messages that an operator has had from each of its channels.

    Channels are FIFO, and control messages are in total order, so that the last one of a channel says which it has
    delivered, and barriers are complete in the order of their times.

    Examples
    --------
    >>> barriers = Barriers(2)
    >>> barriers.arrive(0, 8), barriers.arrive(1, 8)    # complete with the second
    (False, True)
    >>> barriers.passed(0, 8), barriers.passed(0, 9)
    (True, False)
    """

    def __init__(self, channels: int) -> None:
        if channels < 1:
            raise SkewlessError(f"channels is {channels}; an operator needs at least 1")
        self._last = [-1] * channels
        self._marker: dict[int, int] = {}

    def arrive(self, channel: int, time: int) -> bool:
        """Count the message of a channel; whether all channels have delivered it now."""
        if time <= self._last[channel]:
            raise SkewlessError(
                f"channel {channel} delivered control message {time} after {self._last[channel]}; their times rise"
            )
        self._last[channel] = time
        self._marker[time] = self._marker.get(time, 0) + 1
        complete = self._marker[time] == len(self._last)
        if complete:
            del self._marker[time]
        return complete

    def passed(self, channel: int, time: int) -> bool:
        """Whether this channel has delivered the control message of that time."""
        return self._last[channel] >= time

    def latest(self, channel: int, times: Sequence[int]) -> int | None:
        """Of these times, which rise, the latest that the channel has delivered; None if it has delivered none."""
        last = self._last[channel]
        return next((time for time in reversed(times) if time <= last), None)
