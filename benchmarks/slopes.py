"""Costs as slopes: what one more row, key or task takes, from the times of runs with more and more of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import FloatArray

TICK = 1 / os.sysconf("SC_CLK_TCK")
PARENT, FIRST_TIME, LAST_TIME = 1, 11, 15  # in /proc/<id>/stat, behind the name of the process


class Slope(NamedTuple):
    """Seconds for one more of something: by the median times, and the least and the most of single rounds."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True)
class Point:
    """A run, and how many it has of each thing that costs something."""

    amounts: tuple[float, ...]
    run: Callable[[], object]


def slopes(points: Sequence[Point], rounds: int, warming: int = 1) -> list[Slope]:
    """A slope in seconds of a core for each thing; all points run in turn, and the first rounds warm up."""
    times = np.array([[_cost(point.run) for point in points] for _ in range(warming + rounds)])
    return fitted([point.amounts for point in points], times[warming:])


def fitted(amounts: Sequence[tuple[float, ...]], times: FloatArray) -> list[Slope]:
    """The slopes of a straight line through the median times, and the least and the most of lines of single rounds.

    What a run costs at all is not in them. Nothing takes less than no time: where a slope comes out below 0, it is 0,
    and the others are those of a line without it.

    >>> [round(slope.seconds, 9) for slope in fitted([(1, 2), (2, 2), (2, 5)], np.array([[7.0, 8.0, 14.0]]))]
    [1.0, 2.0]
    """
    design = np.column_stack([np.array(amounts, dtype=np.float64), np.ones(len(amounts))])
    middle = np.median(times, axis=0)
    rows = np.vstack([middle, times])
    found = np.transpose([_line(design, row) for row in rows])
    return [Slope(float(each[0]), float(each.min()), float(each.max())) for each in found]


def _line(design: FloatArray, times: FloatArray) -> FloatArray:
    line = np.zeros(design.shape[1] - 1)
    kept = np.arange(design.shape[1])
    while True:
        found = np.linalg.lstsq(design[:, kept], times, rcond=None)[0]
        if (found[:-1] >= 0).all():
            line[kept[:-1]] = found[:-1]
            return line
        kept = np.delete(kept, np.argmin(found[:-1]))


def core_seconds() -> float:
    """Seconds of a core that this process and all that it started have taken: Spark's JVM and its Python workers."""
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended since
                continue
            parents[int(entry.name)] = int(fields[PARENT])
            ticks[int(entry.name)] = sum(map(int, fields[FIRST_TIME:LAST_TIME]))  # with children that have ended
    return TICK * sum(spent for process, spent in ticks.items() if _started_here(process, parents))


def _started_here(process: int, parents: dict[int, int]) -> bool:
    while process in parents:
        if process == os.getpid():
            return True
        process = parents[process]
    return False


def _cost(run: Callable[[], object]) -> float:
    start = core_seconds()
    run()
    return core_seconds() - start
