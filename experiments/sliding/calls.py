"""What the calls of Linear Road's statistics cost without Spark: one for each window, or for each pane and window."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.core.windows import Windows
from skewless.operators.windows.function import Call, MergeCall, PaneCall, WindowCall
from skewless.operators.windows.slices import Slices, slices
from skewless.workload.linear_road import LinearRoad

RATIO = 100
ROWS, KEYS_OF, TIMES = 1_000_000, 19, 3
"""As many reports as on Spark, of which those of one in so many segments and directions, so many times."""

Statistics = tuple[int, float, float, float]
_SPEED = pa.schema([("speed", pa.float64())])
_ANSWER = pa.schema([("n", pa.int64()), ("least", pa.float64()), ("most", pa.float64()), ("mean", pa.float64())])


@dataclass(frozen=True)
class Called:
    """Calls of one function.

    Parameters
    ----------
    calls
        How many calls there are for a row of the stream.
    given
        The rows, or the answers for panes, that a call is given on average.
    seconds
        Of a processor, for a call: to cut what it is given, to run it, and to keep what it gives.
    """

    calls: float
    given: float
    seconds: float

    @property
    def of_row(self) -> float:
        """Seconds of a processor for a row of the stream."""
        return self.calls * self.seconds


@dataclass(frozen=True)
class Calls:
    """What is called by window, and by pane: for each pane, and for each window with the answers for its panes."""

    window: Called
    pane: Called
    merge: Called


def of_window(key: tuple[Any, ...], window: Any, rows: pa.Table) -> Statistics:
    """Count, min, max and mean of a window's speeds."""
    speeds = rows["speed"].to_numpy()
    return len(speeds), float(speeds.min()), float(speeds.max()), float(speeds.mean())


def of_pane(key: tuple[Any, ...], pane: Any, rows: pa.Table) -> Statistics:
    """Count, min, max and sum of a pane's speeds."""
    least, most = pc.min_max(rows["speed"]).as_py().values()
    return rows.num_rows, least, most, pc.sum(rows["speed"]).as_py()


def of_panes(key: tuple[Any, ...], window: Any, panes: list[Statistics]) -> Statistics:
    """Count, min, max and mean of a window, from those of its panes."""
    n, least, most, total = zip(*panes, strict=True)
    return sum(n), min(least), max(most), sum(total) / sum(n)


class Road:
    """Linear Road's reports of some segments and directions, cut into windows and panes.

    Parameters
    ----------
    rows
        Reports of all segments and directions.
    keys_of
        Of so many segments and directions, one is taken.
    """

    def __init__(self, rows: int, keys_of: int) -> None:
        taken = LinearRoad(expressways=3, vehicles=30_000).take(rows)
        way = (taken.expressway.astype(np.int64) * 2 + taken.direction) * 100 + taken.segment
        some = way % keys_of == 0
        keys, group = np.unique(way[some], return_inverse=True)
        times = taken.time[some].astype(np.int64) * 1_000_000
        order = np.lexsort((times, group))
        self.windows = Windows.of(f"{RATIO} seconds", "1 second")
        self.keys = [(key,) for key in keys.tolist()]
        self.speeds = pa.record_batch([pa.array(taken.speed[some][order].astype(np.float64))], schema=_SPEED)
        self.of_windows = slices(group[order], times[order], self.windows)
        self.of_panes = slices(group[order], times[order], self.windows.panes)
        starts = self.of_panes.starts  # panes are in the order of their rows
        first, end = (np.searchsorted(starts, edge) for edge in (self.of_windows.starts, self.of_windows.stops))
        self.of_answers = Slices(self.of_windows.groups, self.of_windows.windows, first, end)

    def by_window(self) -> pa.Table:
        """The statistics of every window, from its rows."""
        return self._run(WindowCall(of_window, _SPEED, _ANSWER, arrow=True), self.speeds, self.windows, self.of_windows)

    def by_pane(self) -> pa.RecordBatch:
        """The answer for every pane, from its rows."""
        call = PaneCall(of_pane, _SPEED, arrow=True)
        answers = self._run(call, self.speeds, self.windows.panes, self.of_panes)
        return answers.combine_chunks().to_batches()[0]

    def merged(self, answers: pa.RecordBatch) -> pa.Table:
        """The statistics of every window, from the answers for its panes."""
        return self._run(MergeCall(of_panes, _ANSWER), answers, self.windows, self.of_answers)

    def _run(self, call: Call, rows: pa.RecordBatch, windows: Windows, found: Slices) -> pa.Table:
        pieces = [columns for _which, columns in call.run(rows, self.keys, windows, found)]
        return pa.concat_tables(pa.Table.from_arrays(columns, schema=call.schema) for columns in pieces)


def called(rows: int = ROWS, keys_of: int = KEYS_OF, times: int = TIMES) -> Calls:
    """Time the calls on the stream that was measured on Spark: windows of 100 s, a slide of 1 s, keys as there."""
    road = Road(rows, keys_of)
    answers = road.by_pane()
    took = np.full((times, 3), np.inf)
    for i in range(times):
        start = process_time()
        road.by_window()
        after_windows = process_time()
        road.by_pane()
        after_panes = process_time()
        road.merged(answers)
        took[i] = np.diff([start, after_windows, after_panes, process_time()])
    parts = (road.of_windows, road.of_panes, road.of_answers)
    return Calls(
        *(
            Called(
                len(part.starts) / road.speeds.num_rows,
                float((part.stops - part.starts).mean()),
                seconds / len(part.starts),
            )
            for part, seconds in zip(parts, took.min(axis=0).tolist(), strict=True)
        )
    )
