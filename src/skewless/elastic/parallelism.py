"""How many tasks run at the two stages of a micro-batch, and the bounds that these numbers stay in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from skewless.core.errors import SkewlessError

Side = Literal["map", "reduce"]
Direction = Literal["in", "out"]
SIDES: tuple[Side, Side] = ("map", "reduce")


@dataclass(frozen=True)
class Parallelism:
    """The number of map tasks and the number of reduce tasks, the paper's p and r.

    Examples
    --------
    >>> Parallelism(4, 2).of("reduce"), Parallelism(4, 2).changed("map", 5)
    (2, Parallelism(map=5, reduce=2))
    """

    map: int
    reduce: int

    def __post_init__(self) -> None:
        """Refuse what is no number of tasks."""
        for side in SIDES:
            number = getattr(self, side)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise SkewlessError(f"{number!r} {side} tasks; give a whole number of at least 1")

    def of(self, side: Side) -> int:
        """The number of tasks of one side."""
        return self.map if side == "map" else self.reduce

    def changed(self, side: Side, number: int) -> Parallelism:
        """The same with another number of tasks on one side."""
        return replace(self, map=number) if side == "map" else replace(self, reduce=number)


@dataclass(frozen=True)
class Bounds:
    """The fewest and the most tasks of each side.

    Examples
    --------
    >>> bounds = Bounds(Parallelism(2, 1), Parallelism(16, 1))
    >>> bounds.free("out", Parallelism(4, 1)), bounds.nearest("map", 40)
    (('map',), 16)
    """

    least: Parallelism
    most: Parallelism

    def __post_init__(self) -> None:
        """Refuse what is no numbers of tasks, and bounds that are crossed."""
        for name, numbers in (("least", self.least), ("most", self.most)):
            if not isinstance(numbers, Parallelism):
                raise SkewlessError(
                    f"{name} is {numbers!r}; give the numbers of map and of reduce tasks, such as Parallelism(2, 1)"
                )
        for side in SIDES:
            least, most = self.least.of(side), self.most.of(side)
            if least > most:
                raise SkewlessError(f"at least {least} and at most {most} {side} tasks; give the smaller number first")

    def __contains__(self, now: Parallelism) -> bool:
        return all(self.least.of(side) <= now.of(side) <= self.most.of(side) for side in SIDES)

    def nearest(self, side: Side, number: int) -> int:
        """The number within the bounds of this side that is nearest to the given one."""
        return min(max(number, self.least.of(side)), self.most.of(side))

    def free(self, direction: Direction, now: Parallelism) -> tuple[Side, ...]:
        """The sides that are not yet at the bound of this direction."""
        end = self.most if direction == "out" else self.least
        return tuple(side for side in SIDES if now.of(side) != end.of(side))
