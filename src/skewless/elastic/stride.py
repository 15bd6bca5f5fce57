"""How far a decision goes: one task at a time, as in the paper, or straight to the number that is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skewless.elastic.observation import Observation
from skewless.elastic.parallelism import SIDES, Bounds, Direction, Parallelism, Side
from skewless.elastic.zones import ROUNDING, Zones

SAME = 0.05  # rates or numbers of keys that differ by less than this share are the same load


def same(was: float, now: float) -> bool:
    """Whether two rates, or two numbers of keys, are the same load.

    >>> same(1000, 1050), same(1000, 1051)
    (True, False)
    """
    return abs(now - was) <= SAME * was


@dataclass(frozen=True)
class Case:
    """What a decision goes by: the direction, the numbers in force, and the micro-batch that speaks for the last d.

    `tried` has the numbers and the micro-batch of the scale-out before, if W has been too high ever since.
    """

    direction: Direction
    now: Parallelism
    seen: Observation
    zones: Zones
    bounds: Bounds
    tried: tuple[Parallelism, Observation] | None = None

    @property
    def free(self) -> tuple[Side, ...]:
        """The sides that are not at their bound."""
        return self.bounds.free(self.direction, self.now)

    def enough(self, then: Parallelism) -> bool:
        """Whether these numbers are expected to be enough for what was seen."""
        return self.zones.enough(self.seen.scaled(self.now, then).ratio)


Stride = Callable[[Case, tuple[Side, ...]], Parallelism]


def one(case: Case, sides: tuple[Side, ...]) -> Parallelism:
    """One task more, or one fewer, on each of these sides.

    A task is only given up if the others are expected to be enough. The paper does not say so, but of two workers with
    W = 0.8 the second one cannot go.

    >>> seen = Observation(interval=1.0, processing=0.6, rows=10, keys=10, map_time=0.4, reduce_time=0.2)
    >>> case = Case("in", Parallelism(4, 2), seen, Zones(), Bounds(Parallelism(1, 1), Parallelism(8, 8)))
    >>> one(case, ("map", "reduce"))  # 0.53 + 0.20, and then 0.53 + 0.40, which is too much
    Parallelism(map=3, reduce=2)
    """
    then = case.now
    for side in sides:
        number = then.of(side) + (1 if case.direction == "out" else -1)
        further = then.changed(side, case.bounds.nearest(side, number))
        if case.direction == "out" or case.enough(further):
            then = further
    return then


def straight(case: Case, sides: tuple[Side, ...]) -> Parallelism:
    """Straight to the numbers with which W is expected to be `thres`.

    If nothing is known about the parts of the processing time, all of it is taken to be inversely proportional to the
    number of tasks: ceil(p W / thres). With fixed costs that is too few, though never too few when tasks are given up.
    The times of the stages tell which part of the time shrinks with these sides. So does a scale-out under the same
    load: from what it gained follows what the next one will gain.

    If the times of the stages are known and the other side may grow as well, these sides grow to ceil(p W / thres), and
    the slower stage makes up what is missing then. Otherwise a side with a small part of the time could grow without
    end to save the last hundredth of W.

    >>> seen = Observation(interval=1.0, processing=2.0, rows=10, keys=10)
    >>> bounds = Bounds(Parallelism(1, 1), Parallelism(16, 16))
    >>> straight(Case("out", Parallelism(2, 2), seen, Zones(), bounds), ("map",))  # 2 * 2.0 / 0.9 = 4.4
    Parallelism(map=5, reduce=2)
    >>> seen = Observation(interval=1.0, processing=2.0, rows=10, keys=10, map_time=1.6, reduce_time=0.4)
    >>> straight(Case("out", Parallelism(2, 2), seen, Zones(), bounds), ("map",))  # 2 * 1.6 / (0.9 - 0.4) = 6.4
    Parallelism(map=7, reduce=2)
    >>> seen = Observation(interval=1.0, processing=0.95, rows=10, keys=10, map_time=0.85, reduce_time=0.1)
    >>> straight(Case("out", Parallelism(8, 1), seen, Zones(), bounds), ("reduce",))  # 0.85 + 0.05, or 0.76 + 0.1
    Parallelism(map=8, reduce=2)
    """
    if case.direction == "out" and case.seen.staged and len(case.free) > len(sides):
        *_, last = _by_ratio(case, sides), *_one_by_one(case, _by_ratio(case, sides))
        return last
    shrinking = next(
        part for part in (_gained(case, sides), _staged(case, sides), case.seen.ratio) if _left(case, part) > 0
    )
    return _times(case, sides, shrinking / _left(case, shrinking))


def _by_ratio(case: Case, sides: tuple[Side, ...]) -> Parallelism:
    """The numbers if all of W shrank with these sides."""
    return _times(case, sides, case.seen.ratio / case.zones.thres)


def _times(case: Case, sides: tuple[Side, ...], factor: float) -> Parallelism:
    """So many times the tasks on these sides, within the bounds."""
    then = case.now
    for side in sides:
        number = math.ceil(case.now.of(side) * factor * (1 - ROUNDING / 2))
        then = then.changed(side, case.bounds.nearest(side, number))
    return then


def _left(case: Case, shrinking: float) -> float:
    """What `thres` leaves for the part of W that shrinks, once the rest has had its time."""
    return case.zones.thres - (case.seen.ratio - shrinking)


def _staged(case: Case, sides: tuple[Side, ...]) -> float:
    """The part of W that is the time of these sides' stages; all of it, if their times are not known."""
    return min(case.seen.ratio, sum(case.seen.time(side) for side in sides) / case.seen.interval)


def _gained(case: Case, sides: tuple[Side, ...]) -> float:
    """The part of W that shrinks with the tasks of these sides, from what the scale-out before has gained.

    With W = a / s + c for s times the tasks, two measurements give a and c. Where the sides grew unequally, the one
    that grew more counts, so that the part is rather too small, and the number that follows is rather too large.
    """
    staged = _staged(case, sides)
    if case.tried is None:
        return staged
    before, seen = case.tried
    grown = {side: case.now.of(side) / before.of(side) for side in SIDES}
    moved = tuple(side for side in SIDES if grown[side] != 1)
    alike = all(same(seen.load(side), case.seen.load(side)) for side in SIDES)
    if moved != sides or not alike or case.seen.ratio >= seen.ratio:
        return staged
    return min(staged, (seen.ratio - case.seen.ratio) / (max(grown.values()) - 1))


def ease(case: Case, stride: Stride) -> Parallelism:
    """The numbers if nothing changed that a side could follow, or if the sides that should follow have no room.

    Where the times of the stages are known, the slower stage grows, and the stage that can best spare a task shrinks:
    by one task, or straight on until W is expected to be right. Where they are not known, both sides grow; tasks are
    given up by both sides straight on, or one at a time by the side that has more.

    >>> seen = Observation(interval=1.0, processing=2.0, rows=10, keys=10, map_time=1.6, reduce_time=0.4)
    >>> case = Case("out", Parallelism(2, 2), seen, Zones(), Bounds(Parallelism(1, 1), Parallelism(16, 16)))
    >>> ease(case, one), ease(case, straight)  # 3.2 / 7 + 0.8 / 2 = 0.857
    (Parallelism(map=3, reduce=2), Parallelism(map=7, reduce=2))
    """
    if stride is straight:
        if not case.seen.staged:
            return straight(case, case.free)
        *_, last = case.now, *_one_by_one(case, case.now)
        return last
    return next(_one_by_one(case, case.now), case.now)


def _one_by_one(case: Case, then: Parallelism) -> Iterator[Parallelism]:
    """The numbers of tasks on the way from these to a W that is right."""
    while free := case.bounds.free(case.direction, then):
        if case.direction == "out":
            if case.enough(then):
                return
            times = case.seen.scaled(case.now, then)
            slower = free[-1] if times.time(free[-1]) > times.time(free[0]) * (1 + ROUNDING) else free[0]
            if times.staged and times.time(slower) == 0:
                return  # more tasks for a stage without work gain nothing
            for side in (slower,) if times.staged else free:
                then = then.changed(side, then.of(side) + 1)
        else:
            fewer = [then.changed(side, then.of(side) - 1) for side in free]
            ratios = [case.seen.scaled(case.now, numbers).ratio for numbers in fewer]
            then = fewer[-1] if ratios[-1] < ratios[0] * (1 - ROUNDING) else fewer[0]
            if not case.enough(then):
                return
        yield then
