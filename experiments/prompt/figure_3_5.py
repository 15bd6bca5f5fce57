"""Prompt+, Figure 3.5: throughput and tasks while the rate rises and falls, and while the number of keys does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend
from experiments.prompt.rivals import PROMPT
from experiments.prompt.scheduling import AHEAD, GROUP, Case, measured, setting_of
from experiments.prompt.scheduling import lines as setup_lines
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.hashing import xxhash64
from skewless.elastic import Decision, Observation, Parallelism, Scaler
from skewless.simulate import Followed, Source, steps
from skewless.simulate.arrivals import Rate

INTERVAL = 1.0
LEVELS = (1, 2, 4, 8, 4, 2, 1)
LASTS: dict[Scale, int] = {"small": 16, "full": 30}  # micro-batches of a level
LONG = 200  # micro-batches of a level that leaves one task at a time enough of them
KEYS = 1500  # at level 1
LEAST, START, MOST = Parallelism(2, 1), Parallelism(16, 1), Parallelism(256, 64)  # merging costs little
RUNS = {"rate": "the rate", "keys": "the number of keys", "both": "both"}
STRIDES = ("straight", "one")
D = 1
APART = 1.5  # growth of the side that follows over that of the other one, at which they are told apart


@dataclass(frozen=True)
class Changing:
    """Keys that are even at any time; how many there are depends on how many tuples have come.

    `numbers` has pairs of a tuple's number and the number of keys from then on.
    """

    numbers: tuple[tuple[int, int], ...]

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""
        begins, keys = np.array(self.numbers).T
        for start in range(0, n, block):
            at = np.arange(start, min(n, start + block))
            yield xxhash64(at) % keys[np.searchsorted(begins, at, side="right") - 1]


class Recording(Scaler):
    """A scaler that keeps its decisions, each with the number of its micro-batch and the W that it went by."""

    def __init__(self, stride: str, most: Parallelism = MOST) -> None:
        super().__init__(LEAST, most, START, stride=stride, d=D)
        self.decisions: list[tuple[int, float, Decision]] = []
        self._number = 0

    def observe(self, seen: Observation) -> Parallelism:
        """The numbers of tasks from now on, after one more micro-batch."""
        self._number += 1
        before, now = self.last, super().observe(seen)
        if self.last is not None and self.last is not before:
            self.decisions.append((self._number, seen.ratio, self.last))
        return now


def run(scale: Scale, tell: Tell) -> Outcome:
    """Find a rate that the first tasks sustain, and let rate, keys or both rise to the eightfold and fall."""
    setting, lasts = setting_of(scale), LASTS[scale]
    case = Case(Changing(((0, KEYS),)), setting, PROMPT, INTERVAL, START, measured().cost)
    rate = case.highest(AHEAD, setting.start / 8, below=0.85)
    found: dict[tuple[str, str], Followed] = {}
    decided: dict[tuple[str, str], list[tuple[int, float, Decision]]] = {}
    for what in RUNS:
        for stride in STRIDES:
            tell(f"{RUNS[what]}, stride {stride}")
            found[what, stride] = followed(case, what, rate, lasts, scaler := Recording(stride))
            decided[what, stride] = scaler.decisions
    tell(f"levels of {LONG} micro-batches, stride one")
    slowly = followed(case, "rate", rate, LONG, Recording("one"))
    tell("one reduce task")
    alone = followed(case, "rate", rate, lasts, Recording("straight", Parallelism(MOST.map, START.reduce)))
    tell("merging takes no time")
    free = replace(case, setting=replace(setting, merging=0.0))
    unmerged = followed(free, "rate", free.highest(AHEAD, setting.start / 8, below=0.85), lasts, Recording("straight"))
    ours = {what: found[what, "straight"] for what in RUNS}
    grown = {(what, side): _grown(ours[what], side, lasts) for what in RUNS for side in ("map", "reduce")}
    out = [decision for _, _, decision in decided["rate", "straight"] if decision.direction == "out"]
    merging = [decision for decision in out if decision.after.reduce > decision.before.reduce]
    checks = (
        *(
            Check(
                f"throughput over what arrived at the end of each level, {RUNS[what]} changes",
                _least(ours[what], lasts),
                low=0.95,
            )
            for what in RUNS
        ),
        Check("map tasks at 8 times the rate, over those at first", grown["rate", "map"], low=4.0),
        Check("reduce tasks at 8 times the keys, over those at first", grown["keys", "reduce"], low=2.0),
        Check(
            "growth of map tasks over that of reduce tasks at 8 times the rate",
            grown["rate", "map"] / grown["rate", "reduce"],
            low=APART,
            why=f"Our step is the cause. One task at a time and with levels of {LONG} micro-batches there are "
            f"{_top(slowly, LONG)} at the end of that level, and with our step and at most one reduce task "
            f"{_top(alone, lasts)}: at these costs one reduce task is enough, and of what arrives "
            f"{_least(slowly, LONG):.0%} and {_least(alone, lasts):.0%} are done at the end of every level. With our "
            f"step there are {_top(ours['rate'], lasts)}. It has the slower stage make up what the side that follows "
            f"does not gain, so that the other side grows too: {len(merging)} of the {len(out)} decisions for more "
            "tasks add reduce tasks. While the rows that have queued are worked off there are up to "
            f"{ours['rate'].map_tasks.max()} map and {ours['rate'].reduce_tasks.max()} reduce tasks; afterwards those "
            "are given up that can best be spared, whichever side they were added to.",
        ),
        Check(
            f"the same one task at a time, as in the thesis, with levels of {LONG} micro-batches",
            _grown(slowly, "map", LONG) / _grown(slowly, "reduce", LONG),
            low=APART,
        ),
        Check(
            "the same where merging partial results takes no time",
            _grown(unmerged, "map", lasts) / _grown(unmerged, "reduce", lasts),
            low=APART,
            essential=False,
        ),
        Check(
            "growth of reduce tasks over that of map tasks at 8 times the keys",
            grown["keys", "reduce"] / grown["keys", "map"],
            low=APART,
            why="A map task emits a partial result for each key, so that more keys are more work for map tasks too.",
        ),
        Check(
            "all tasks at the end, over those at first, the most",
            max(_at_end(ours[what], ("map", "reduce"), lasts) for what in RUNS),
            high=1.5,
        ),
        *(
            Check(
                f"{side} tasks at the end, over those at first, the most",
                max(_at_end(ours[what], (side,), lasts) for what in RUNS),
                high=1.5,
                essential=False,
                why="When only the rate falls, only the map side gives up tasks, until W is in the zone in which "
                "nothing changes. The reduce tasks that made up the rest when it rose stay, and there are fewer map "
                f"tasks than at first. One task at a time, with long levels, {_tasks(slowly, side)[-1]} {side} tasks "
                f"are left of {_tasks(slowly, side)[LONG - 1]}; where merging partial results takes no time, "
                f"{_tasks(unmerged, side)[-1]} {side} tasks are left of {_tasks(unmerged, side)[lasts - 1]}.",
            )
            for side in ("map", "reduce")
        ),
        Check(
            "throughput over what arrived at the end of each level, one task at a time",
            min(_least(found[what, "one"], lasts) for what in RUNS),
            low=0.95,
            essential=False,
            why=f"A level lasts {lasts} micro-batches, in which at most {lasts} tasks are added to each side.",
        ),
        Check(
            f"the same with levels of {LONG} micro-batches, the rate changes",
            _least(slowly, LONG),
            low=0.95,
            essential=False,
        ),
    )
    return Outcome(
        (
            *setup_lines(scale, setting),
            Scaled(
                "tasks",
                "a pool of executors of 4 cores",
                f"{START.map} + {START.reduce} at first, at most {MOST.map} + {MOST.reduce}",
            ),
            Scaled(
                "load",
                "rises, later falls; by how much is not said",
                f"levels 1, 2, 4, 8, 4, 2, 1 of {lasts} micro-batches; {rate:,.0f} tuples/s and {KEYS} even keys at "
                "level 1",
            ),
            Scaled("scheduling", "group-ahead", f"group-ahead, G = {GROUP}, intervals of {INTERVAL:g} s, d = {D}"),
            Scaled("back-pressure", "disabled", "none"),
        ),
        f"With our step at least {min(_least(each, lasts) for each in ours.values()):.0%} of what arrives is done at "
        "the end "
        f"of every level. At 8 times the rate there are {grown['rate', 'map']:.1f} times the map tasks and "
        f"{grown['rate', 'reduce']:.1f} times the reduce tasks, at 8 times the keys {grown['keys', 'map']:.1f} and "
        f"{grown['keys', 'reduce']:.1f} times. That both sides grow with the rate is our step's doing, in which the "
        "slower stage makes up the rest: one task at a time and with long levels there are "
        f"{_grown(slowly, 'map', LONG):.1f} times the map tasks and {_grown(slowly, 'reduce', LONG):.1f} times the "
        "reduce tasks.",
        checks,
        (
            *(_table(what, stride, found[what, stride], lasts) for what in RUNS for stride in STRIDES),
            Table(
                "The rate changes, stride straight: all decisions",
                ("after micro-batch", "W", "map tasks", "reduce tasks", "because"),
                tuple(
                    (number, ratio, decision.after.map, decision.after.reduce, decision.reason)
                    for number, ratio, decision in decided["rate", "straight"]
                ),
            ),
            _table("rate", "straight, merging takes no time", unmerged, lasts),
            _table("rate", "straight, at most one reduce task", alone, lasts),
            _table("rate", f"one, levels of {LONG} micro-batches", slowly, LONG),
        ),
        lambda figure: _draw(figure, found),
    )


def followed(case: Case, what: str, rate: float, lasts: int, scaler: Scaler) -> Followed:
    """All levels of the rate, of the number of keys, or of both."""
    times = [level * lasts * case.interval for level in range(len(LEVELS))]
    rates = [rate * (level if what in ("rate", "both") else 1) for level in LEVELS]
    tuples = np.concatenate([[0], np.cumsum(np.array(rates) * lasts * case.interval)[:-1]]).astype(int).tolist()
    numbers = tuple(
        (begin, KEYS * (level if what in ("keys", "both") else 1)) for begin, level in zip(tuples, LEVELS, strict=True)
    )
    changing: Rate = steps(*zip(times, rates, strict=True))
    return case.run(AHEAD, Source(Changing(numbers), changing), lasts * len(LEVELS), scaler)


def _levels(found: Followed, lasts: int) -> FloatArray:
    """Throughput over what arrived, in the second half of each level."""
    half = lasts // 2
    ends = [(level + 1) * lasts for level in range(len(LEVELS))]
    shares = []
    for end in ends:
        since, until = found.heartbeats[end - half - 1], found.heartbeats[end - 1]
        # A micro-batch that just arrived is done an interval later, if all is well.
        done = (found.finishes > since + found.interval) & (found.finishes <= until + found.interval)
        shares.append(found.tuples[done].sum() / found.tuples[end - half : end].sum())
    return np.array(shares)


def _least(found: Followed, lasts: int) -> float:
    return float(_levels(found, lasts).min())


def _tasks(found: Followed, side: str) -> Int64Array:
    return found.map_tasks if side == "map" else found.reduce_tasks


def _grown(found: Followed, side: str, lasts: int) -> float:
    tasks = _tasks(found, side)
    top = (LEVELS.index(max(LEVELS)) + 1) * lasts - 1
    return float(tasks[top] / tasks[lasts - 1])


def _top(found: Followed, lasts: int) -> str:
    """The tasks at the end of the highest level, in words."""
    top = (LEVELS.index(max(LEVELS)) + 1) * lasts - 1
    return f"{found.map_tasks[top]} map and {found.reduce_tasks[top]} reduce tasks"


def _at_end(found: Followed, sides: tuple[str, ...], lasts: int) -> float:
    tasks = sum((_tasks(found, side) for side in sides), np.zeros(len(found.tuples), np.int64))
    return float(tasks[-1] / tasks[lasts - 1])


def _table(what: str, stride: str, found: Followed, lasts: int) -> Table:
    ends = [(level + 1) * lasts - 1 for level in range(len(LEVELS))]
    done = _levels(found, lasts)
    return Table(
        f"{RUNS[what]} changes, stride {stride}, at the end of each level".capitalize(),
        ("level", "done over arrived", "W", "map tasks", "reduce tasks", "late of its micro-batches"),
        tuple(
            (
                level,
                float(done[number]),
                float(found.ratios[end]),
                int(found.map_tasks[end]),
                int(found.reduce_tasks[end]),
                int((found.delays[end - lasts + 1 : end + 1] > 1 + 1e-9).sum()),
            )
            for number, (level, end) in enumerate(zip(LEVELS, ends, strict=True))
        ),
    )


def _draw(figure: Any, found: dict[tuple[str, str], Followed]) -> None:
    axes = figure.subplots(2, 2, sharex=True)
    for column, what in enumerate(("rate", "keys")):
        ours = found[what, "straight"]
        at = np.arange(1, len(ours.tuples) + 1, 2)
        window = np.ones(4) / 4
        done = np.convolve(ours.throughput(1), window, "same")
        load = ours.tuples / ours.interval if what == "rate" else ours.keys
        top, bottom = axes[0, column], axes[1, column]
        top.plot(at, load[at - 1] / 1e3, color="0.6", label="tuples/s" if what == "rate" else "keys of a micro-batch")
        if what == "rate":
            top.plot(at, done[at - 1] / 1e3, color="C0", label="done")
        top.set_title(f"{RUNS[what]} changes", fontsize=9)
        top.set_ylabel("1,000")
        top.legend(frameon=False, fontsize=7)
        shown = {
            f"{side}, {stride}": _tasks(found[what, stride], side)[at - 1].tolist()
            for stride in STRIDES
            for side in ("map", "reduce")
        }
        for number, (name, tasks) in enumerate(shown.items()):
            style = "-" if "straight" in name else ":"
            bottom.plot(at, tasks, style, color=f"C{number % 2}", label=name)
        bottom.set_xlabel("micro-batch")
        bottom.set_ylabel("tasks")
    legend(figure, axes[1, 0])


FIGURE = Figure(
    "prompt-3.5",
    "Elasticity",
    "Prompt+ adds map tasks when the rate rises and reduce tasks when the number of keys does, and gives them up "
    "when they "
    "fall, so that its throughput follows what arrives.",
    run,
)
