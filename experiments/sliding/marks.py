"""What the paper's split stage writes on each row: the windows that contain it, and whether it closes one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows


@dataclass(frozen=True, eq=False)
class Marks:
    """The first and last window that contain each row, and whether the row closes a window."""

    first: Int64Array
    last: Int64Array
    closer: BoolArray


def marks(windows: Windows, times: Int64Array, then: int | None = None) -> Marks:
    """Mark rows that come in order of time.

    A row closes a window if it is the last one in it. Of rows with equal times that is the last one, and in sparse time
    it need not lie on the window's last instant.

    Parameters
    ----------
    windows
        The windows of time or of row numbers. The numbers are the paper's less one: its tuple i is row i - 1 here, its
        window j is window j - 1.
    times
        The time or number of each row, never falling.
    then
        Where the stream goes on: the next row's time, or a watermark. If not given, one after the last row, which is
        right for row numbers. For times it closes what ends there, as if no equal time came next.

    Examples
    --------
    >>> found = marks(Windows(size=3, slide=1, rows=True), np.arange(5))
    >>> found.first, found.last, found.closer
    (array([0, 0, 0, 1, 2]), array([0, 1, 2, 3, 4]), array([False, False,  True,  True,  True]))
    >>> marks(Windows(10, 5), np.array([8, 9, 9, 13]), then=20).closer
    array([False, False,  True,  True])

    References
    ----------
    C. Balkesen, N. Tatbul: Scalable data partitioning techniques for parallel sliding window processing over data
    streams. DMSN 2011 (section 2.2).
    """
    times = as_times(times)
    if len(times) and (np.diff(times) < 0).any():
        raise SkewlessError("times fall; sort the rows by time before they are marked")
    after = times[-1:] + 1 if then is None else np.array([then], np.int64)
    if len(times) and after[0] < times[-1]:
        raise SkewlessError(f"the stream goes on at {then}, before its last row at {times[-1]}; give a later time")
    # A window is closed between two rows if the first open one is another after it.
    first = windows.first(np.append(times, after[: len(times)]))
    return Marks(first[: len(times)], windows.last(times), first[1:] > first[: len(times)])


def as_times(times: Int64Array) -> Int64Array:
    """Times as a flat array of longs; anything but whole numbers is refused."""
    times = np.asarray(times)
    if times.ndim != 1 or not np.can_cast(times.dtype, np.int64):
        raise SkewlessError(
            f"times are {times.dtype} of shape {times.shape}; give one flat array of whole numbers, "
            "such as microseconds since 1970 or row numbers"
        )
    return np.ascontiguousarray(times, dtype=np.int64)
