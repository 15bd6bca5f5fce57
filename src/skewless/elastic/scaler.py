"""Algorithm 4 of Prompt+: as many map and reduce tasks as keep the processing time within the interval."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from skewless.core.errors import SkewlessError
from skewless.elastic.observation import Observation
from skewless.elastic.parallelism import SIDES, Bounds, Direction, Parallelism, Side
from skewless.elastic.stride import Case, Stride, ease, one, same, straight
from skewless.elastic.zones import Zone, Zones

STRIDES: dict[str, Stride] = {"one": one, "straight": straight}
_FOLLOWS = {"map": "rate", "reduce": "number of keys"}


@dataclass(frozen=True)
class Decision:
    """A change of the numbers of tasks, and what it followed.

    Parameters
    ----------
    direction
        "out" for more tasks, "in" for fewer.
    before, after
        The numbers of tasks.
    followed
        The sides that followed a change of their load. There is none if W alone was the reason. Where the other side
        has changed too, it was the slower stage, and made up what these do not gain.

    Examples
    --------
    >>> print(Decision("out", Parallelism(2, 1), Parallelism(5, 1), ("map",)))
    2 map and 1 reduce tasks became 5 and 1, because the rate rose
    """

    direction: Direction
    before: Parallelism
    after: Parallelism
    followed: tuple[Side, ...]

    @property
    def reason(self) -> str:
        """Why, in words.

        >>> Decision("in", Parallelism(5, 1), Parallelism(2, 1), ()).reason
        'micro-batches took too little of their interval'
        >>> Decision("out", Parallelism(80, 1), Parallelism(110, 2), ("map",)).reason
        'the rate rose, and the slower stage made up the rest'
        """
        if not self.followed:
            return f"micro-batches took too {'much' if self.direction == 'out' else 'little'} of their interval"
        verb = "rose" if self.direction == "out" else "fell"
        alone = all(self.before.of(side) == self.after.of(side) for side in SIDES if side not in self.followed)
        rest = "" if alone else ", and the slower stage made up the rest"
        return f"the {' and the '.join(_FOLLOWS[side] for side in self.followed)} {verb}{rest}"

    def __str__(self) -> str:
        before, after = self.before, self.after
        numbers = f"{before.map} map and {before.reduce} reduce tasks became {after.map} and {after.reduce}"
        return f"{numbers}, because {self.reason}"


class Scaler:
    """Follows the load with the numbers of map and reduce tasks, one micro-batch after the other.

    W is the processing time of a micro-batch over the interval. After `d` consecutive micro-batches with W above
    `thres` tasks are added, and after `d` consecutive ones with W at most `thres - step` tasks are given up. Map tasks
    follow the rate of rows, and reduce tasks the number of keys; both follow if both changed. What has changed is found
    by comparison with the last micro-batch before W entered its zone; up to a twentieth of it is no change. This
    repeats until W is between the two. For `d` micro-batches after a decision, none is made in the reverse direction.

    This follows the prose of section 3.5, and differs from the print of Algorithm 4. The print has no scale-in and no
    grace; it resets its count only when it adds tasks, and not when W falls back, so that its micro-batches need not be
    consecutive; and it acts at the micro-batch after the d-th.

    The paper leaves some cases open. If W is too high and neither load rose, the slower stage grows; if W is low and
    neither fell, the stage that can best spare a task gives it up. The same is done if the side that should follow is
    at its bound. No task is given up if the others are expected to be too slow without it. Of the `d` micro-batches the
    least extreme one counts, so that a decision goes no further than all of them ask for. The exception is W above
    `thres` with more rows in each of the `d` than in the one before: rows pile up then, and the newest one counts.

    Where an engine stops all tasks to change their numbers, what is left of the stop makes W high though the numbers
    are right. An observation tells that part as `stopped`: no tasks are added because of it, and none are given up
    until it is worked off. Without this each change would bring about the next.

    After a spike that the bounds allow for, "straight" has W at most `thres` again within 2 d + 2 micro-batches. These
    are micro-batches in which rows do not pile up: a source without a limit gives a micro-batch all rows that came
    while the one before ran. Until tasks are added, each is longer than the one before then, and the tasks that are
    added have the backlog to work off too. This takes more time the larger `d` is; the guide has an example.

    Parameters
    ----------
    least, most
        The bounds of the numbers of tasks.
    start
        The numbers to start with; `least` if not given.
    stride
        How far a decision goes. "one" is the paper's: one task at a time. "straight" goes straight to the number that
        is needed, ceil(p W / thres) if only W is known, and back down the same way.
    d
        The number of consecutive micro-batches that a decision needs, and the length of the grace. The paper gives no
        value.
    thres
        W above which tasks are added.
    step
        How far W has to be below `thres` before tasks are given up.

    Examples
    --------
    A rate that rises to the sixfold and falls again, where 1000 rows keep a map task busy for a second:

    >>> scaler = Scaler(Parallelism(2, 1), Parallelism(16, 1), d=2)
    >>> for rows in [1600] * 3 + [9600] * 4 + [1600] * 4:
    ...     seconds = rows / 1000 / scaler.parallelism.map
    ...     now = scaler.observe(Observation(interval=1.0, processing=seconds, rows=rows, keys=50))
    ...     print(f"{seconds:.2f}", now.map, end="; ")
    0.80 2; 0.80 2; 0.80 2; 4.80 2; 4.80 11; 0.87 11; 0.87 11; 0.15 11; 0.15 2; 0.80 2; 0.80 2;
    >>> print(scaler.last)
    11 map and 1 reduce tasks became 2 and 1, because the rate fell

    References
    ----------
    A. S. Abdelhamid: Efficient distributed processing over micro-batched data streams. Dissertation, Purdue University,
    2021. Section 3.5 and Algorithm 4 (Prompt+).
    """

    def __init__(
        self,
        least: Parallelism,
        most: Parallelism,
        start: Parallelism | None = None,
        *,
        stride: str = "straight",
        d: int = 3,
        thres: float = 0.9,
        step: float = 0.1,
    ) -> None:
        if not isinstance(stride, str) or stride not in STRIDES:
            raise SkewlessError(f"no stride {stride!r}; there are {', '.join(STRIDES)}")
        if not isinstance(d, int) or isinstance(d, bool) or d < 1:
            raise SkewlessError(f"d is {d!r}; give a whole number of micro-batches, at least 1")
        self.bounds = Bounds(least, most)
        self.zones = Zones(thres, step)
        self.parallelism = least if start is None else start
        if self.parallelism not in self.bounds:
            raise SkewlessError(f"start is {start}; give numbers from {least} to {most}")
        self.stride = stride
        self.d = d
        self.last: Decision | None = None
        self._since = 0  # micro-batches since the last decision
        self._zone: Zone = "stay"
        self._run: deque[Observation] = deque(maxlen=d)  # the last ones of this zone, since the last decision
        self._newest: Observation | None = None
        self._before: Observation | None = None  # the last one before this zone
        self._tried: tuple[Parallelism, Observation] | None = None

    def observe(self, seen: Observation) -> Parallelism:
        """The numbers of tasks from now on, after one more micro-batch."""
        if seen.ran is not None and seen.ran != self.parallelism:
            return self.parallelism
        zone = self.zones.of(seen.ratio)
        if zone == "out" and seen.stopped:
            seen = seen.unstopped
            zone = "out" if self.zones.of(seen.ratio) == "out" else "stay"
        if zone != self._zone:
            self._run.clear()
            self._zone, self._before, self._tried = zone, self._newest, None
        self._newest = seen
        self._run.append(seen)
        self._since += 1
        if zone != "stay" and len(self._run) == self.d and not self._reverses(zone):
            self._decide(zone)
        return self.parallelism

    def _reverses(self, direction: Direction) -> bool:
        """Whether a decision would reverse the last one within its grace."""
        return self.last is not None and self.last.direction != direction and self._since <= self.d

    def _decide(self, direction: Direction) -> None:
        seen = self._speaker(direction)
        case = Case(direction, self.parallelism, seen, self.zones, self.bounds, self._tried)
        stride = STRIDES[self.stride]
        followed = tuple(side for side in case.free if self._changed(side, direction, seen))
        then = stride(case, followed) if followed else self.parallelism
        if then == self.parallelism:
            followed, then = (), ease(case, stride)
        if then == self.parallelism:
            return
        self._tried = (self.parallelism, seen) if direction == "out" else None
        self.last = Decision(direction, self.parallelism, then, followed)
        self.parallelism = then
        self._since = 0
        self._run.clear()

    def _speaker(self, direction: Direction) -> Observation:
        """The micro-batch that speaks for the last d."""
        rows = [each.rows for each in self._run]
        if direction == "out" and all(now > was and not same(was, now) for was, now in pairwise(rows)):
            return self._run[-1]  # rows pile up, so that the least extreme is the oldest, from before they did
        least_extreme = min if direction == "out" else max
        return least_extreme(reversed(self._run), key=lambda each: each.ratio)  # the newest of equal ones

    def _changed(self, side: Side, direction: Direction, seen: Observation) -> bool:
        """Whether what this side follows has changed in this direction since W entered its zone."""
        if self._before is None:
            return False
        was, now = self._before.load(side), seen.load(side)
        return not same(was, now) and (now > was) == (direction == "out")
