"""Prompt+, Figure 3.7b: how many micro-batches are late by each scheduler, at the same rates and the same spikes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.figure import Cell, Check, Measured, Table, Tell
from experiments.prompt.scheduling import AHEAD, GROUPS, ONE, SCHEDULERS, Case
from skewless.core.arrays import FloatArray
from skewless.elastic import Parallelism, Scaler
from skewless.elastic.parallelism import SIDES, Side
from skewless.simulate import Followed, Source, steps
from skewless.simulate.arrivals import Rate

BATCHES = 200  # of each run
SEEDS = tuple(range(1, 9))  # of the times of its spikes
MUCH = 0.75  # late micro-batches over those of another scheduler, at which they are much fewer
LOADS = (0.45, 0.6, 0.9)  # of the highest rate of one at a time; spikes of the first are within it
CALM, BEYOND = LOADS[0], LOADS[1:]
EVERY, LASTS, TIMES = 20, 4, 2.0  # micro-batches between spikes on average, and of a spike; how high it is
THRES = 0.9
WINDOW, REPORT = 2.0, 1.0  # seconds of the thesis's adjustment window, and until a late report is heard of
Runs = tuple[Followed, ...]


@dataclass(frozen=True)
class Lateness:
    """Runs at several rates.

    Attributes
    ----------
    found
        By the rate, as a share of the highest of one at a time, and by the scheduler.
    stay
        The same, if all of the cluster's tasks run all the time.
    soon
        Group-ahead without an adjustment window, by the rate.
    window, report
        Group-ahead with the thesis's adjustment window, and with reports that come late, at the higher rates.
    floor, least
        Each scheduler at the first of the rates, if none has fewer tasks than one at a time has mostly there; and how
        many these are.
    own
        Each scheduler at the first of these shares of its own highest rate.
    more
        The highest rate of group-ahead over that of one at a time.
    """

    found: Mapping[float, Mapping[str, Runs]]
    stay: Mapping[float, Mapping[str, Runs]]
    soon: Mapping[float, Runs]
    window: Mapping[float, Runs]
    report: Mapping[float, Runs]
    floor: Mapping[str, Runs]
    least: Parallelism
    own: Mapping[str, Runs]
    more: float

    def said(self) -> str:
        """How many were late, in words."""
        return "; at ".join(
            f"{load:.0%} of the highest rate of one at a time {percent(each[AHEAD])} of its micro-batches are late, "
            f"{percent(each[GROUPS])} of those in groups and {percent(each[ONE])} one at a time"
            for load, each in self.found.items()
        )

    def reason(self, load: float) -> str:
        """Why group-ahead has not fewer late ones, or not many fewer, at a rate."""
        found, stay = self.found[load], self.stay[load]
        return (
            "What counts is how soon tasks are added, and how many are there when a spike comes. One at a time acts a "
            f"micro-batch sooner: at this rate {percent(found[ONE])} of its micro-batches are late and "
            f"{percent(found[AHEAD])} of group-ahead's, but {percent(self.soon[load])} of these without an adjustment "
            f"window. Group-ahead has {_tasks(found[AHEAD]):.1f} tasks on average, and one at a time "
            f"{_tasks(found[ONE]):.1f}. If all {_tasks(stay[AHEAD]):.0f} tasks run all the time, "
            f"{percent(stay[AHEAD])} of group-ahead's are late, {percent(stay[GROUPS])} in groups and "
            f"{percent(stay[ONE])} one at a time.{self._causes() if load == CALM else ''}"
        )

    def _causes(self) -> str:
        """What makes group-ahead later, by runs in which it acts as soon, or has no fewer tasks than one at a time."""
        ahead, one, soon = self.found[CALM][AHEAD], self.found[CALM][ONE], self.soon[CALM]
        floor = self.floor[AHEAD]
        return (
            f" Group-ahead is late {apart(fewer(ahead, one))} times as often as one at a time. Without the adjustment "
            f"window it has {_tasks(soon):.1f} tasks on average, and is late {apart(fewer(soon, one))} times as often "
            f"as one at a time and {apart(fewer(soon, ahead))} times as often as with the window. With the window, but "
            f"no fewer than {self.least.map} map and {self.least.reduce} reduce tasks, as many as one at a time mostly "
            f"has, it has {_tasks(floor):.1f}, and is late {apart(fewer(floor, self.floor[ONE]))} times as often as "
            f"one at a time and {apart(fewer(floor, ahead))} times as often as without that bound. "
            f"{counted(fewer(soon, ahead), fewer(floor, ahead), fewer(soon, floor))}"
        )

    def checks(self) -> tuple[Check, ...]:
        """Fewer than each of the two, many fewer than the better one, and what explains where it is not so."""
        over = {
            (load, name): fewer(found[AHEAD], found[name])
            for load, found in self.found.items()
            for name in (ONE, GROUPS)
        }
        return (
            *(
                Check(
                    f"3.7b: late micro-batches at {load:.0%} of the highest rate of one at a time, group-ahead over "
                    f"{name} plus two standard errors",
                    _at_most(over[load, name]),
                    high=1.0,
                    why=self.reason(load),
                )
                for load in LOADS
                for name in (ONE, GROUPS)
            ),
            *(
                Check(
                    f"3.7b: late micro-batches at {load:.0%}, group-ahead over the better of the two, much fewer",
                    max(over[load, name].mean for name in (ONE, GROUPS)),
                    high=MUCH,
                    why=self.reason(load),
                )
                for load in LOADS
            ),
            *(
                Check(
                    f"3.7b: the same at {load:.0%} if all tasks run all the time, plus two standard errors",
                    max(_at_most(fewer(self.stay[load][AHEAD], self.stay[load][name])) for name in (ONE, GROUPS)),
                    high=MUCH,
                    essential=False,
                    why=self.reason(load),
                )
                for load in BEYOND
            ),
            Check(
                f"3.7b: late micro-batches at {CALM:.0%}, group-ahead over one at a time plus two standard errors, if "
                "neither has fewer tasks than one at a time mostly has",
                _at_most(fewer(self.floor[AHEAD], self.floor[ONE])),
                high=1.0,
                essential=False,
                why=self.reason(CALM),
            ),
            Check(
                f"3.7b: late micro-batches at {CALM:.0%}, group-ahead without an adjustment window over one at a time "
                "plus two standard errors",
                _at_most(fewer(self.soon[CALM], self.found[CALM][ONE])),
                high=1.0,
                essential=False,
            ),
            *(
                Check(
                    f"3.7b: late micro-batches at {load:.0%}, group-ahead {what} over one at a time plus two standard "
                    "errors",
                    _at_most(fewer(runs[load], self.found[load][ONE])),
                    high=1.0,
                    essential=False,
                    why=f"The window of a message has {times(over[load, ONE])} times as many, this one "
                    f"{times(fewer(runs[load], self.found[load][ONE]))}.",
                )
                for what, runs in (
                    (f"with an adjustment window of {WINDOW:g} s", self.window),
                    (f"that hears of micro-batches {REPORT:g} s late", self.report),
                )
                for load in BEYOND
            ),
            Check(
                f"3.7b: group-ahead over one at a time plus two standard errors, if each has {CALM:.0%} of its own "
                "highest rate",
                _at_most(fewer(self.own[AHEAD], self.own[ONE])),
                high=1.0,
                essential=False,
                why=f"It is {times(fewer(self.own[AHEAD], self.own[ONE]))}. One at a time then has less to do, and "
                "acts a micro-batch sooner: group-ahead gives fewer violations at the same rate, not at "
                f"{self.more:.2f} times the rate.",
            ),
        )

    def tables(self) -> tuple[Table, ...]:
        """The shares of late micro-batches and the tasks, and how many times as many group-ahead has."""
        rows: dict[str, Mapping[str, Runs]] = {}
        rows |= {f"{load:.0%} of the highest of one at a time": self.found[load] for load in LOADS}
        rows[f"{CALM:.0%} of its own highest"] = self.own
        floor = f"at least {self.least.map} map and {self.least.reduce} reduce tasks"
        rows[f"{CALM:.0%} of the highest of one at a time, {floor}"] = self.floor
        others = (
            ("no adjustment window", self.soon),
            (f"an adjustment window of {WINDOW:g} s", self.window),
            (f"reports {REPORT:g} s late", self.report),
        )
        for what, runs in others:
            for load, found in runs.items():
                # The others have no such window and hear at once.
                rows[f"{load:.0%} of the highest of one at a time, {what}"] = {AHEAD: found}
        for load in LOADS:
            rows[f"{load:.0%} of the highest of one at a time, all tasks all the time"] = self.stay[load]
        compared = {
            what: {**self.found[load], **found}
            for what, found in rows.items()
            for load in LOADS
            if what.startswith(f"{load:.0%}")
        }
        return (
            Table(
                f"3.7b: share of micro-batches that are late, {len(SEEDS)} seeds",
                ("rate", *SCHEDULERS, *(f"tasks on average, {name}" for name in SCHEDULERS)),
                tuple(_row(what, found) for what, found in rows.items()),
            ),
            Table(
                "3.7b: late micro-batches of group-ahead over those of the others at the same rate",
                ("rate", *(f"over {name}" for name in (ONE, GROUPS))),
                tuple(
                    (what, *(fewer(found[AHEAD], found[name]) for name in (ONE, GROUPS)))
                    for what, found in compared.items()
                ),
            ),
        )


def lateness(base: Case, rates: Mapping[str, float], tell: Tell) -> Lateness:
    """Runs of all schedulers at shares of the highest rate of one at a time, which `rates` has with the others'."""
    found: dict[float, dict[str, Runs]] = {}
    stay: dict[float, dict[str, Runs]] = {}
    soon: dict[float, Runs] = {}
    for load in LOADS:
        tell(f"late micro-batches at {load:.0%}")
        rate = load * rates[ONE]
        found[load] = {name: lates(base, name, rate) for name in SCHEDULERS}
        stay[load] = {name: lates(base, name, rate, follows=False) for name in SCHEDULERS}
        soon[load] = lates(replace(base, adjust=0.0), AHEAD, rate)
    tell("late micro-batches with a longer window, and with late reports")
    window = {load: lates(replace(base, adjust=WINDOW), AHEAD, load * rates[ONE]) for load in BEYOND}
    report = {load: lates(replace(base, report=REPORT), AHEAD, load * rates[ONE]) for load in BEYOND}
    own = {name: lates(base, name, CALM * rates[name]) for name in SCHEDULERS}
    tell("late micro-batches with as many tasks at least")
    least = Parallelism(*(_mostly(found[CALM][ONE], side) for side in SIDES))
    floor = {name: lates(base, name, CALM * rates[ONE], least=least) for name in SCHEDULERS}
    return Lateness(found, stay, soon, window, report, floor, least, own, rates[AHEAD] / rates[ONE])


def lates(case: Case, name: str, rate: float, *, follows: bool = True, least: Parallelism | None = None) -> Runs:
    """A run for each of the seeds."""
    return tuple(_run(case, name, rate, seed, follows, least) for seed in SEEDS)


def _run(case: Case, name: str, rate: float, seed: int, follows: bool, least: Parallelism | None = None) -> Followed:
    """A stream with spikes at random times, the same ones for all, with numbers of tasks that follow or stay.

    If nothing else is given, those that follow are at least a quarter of all.
    """
    fewest = Parallelism(case.tasks.map // 4, case.tasks.reduce // 4) if least is None else least
    scaler = Scaler(fewest, case.tasks, case.tasks, d=1, thres=THRES) if follows else None
    return case.run(name, Source(case.keys, spikes(rate, case.interval, BATCHES, seed)), BATCHES, scaler)


def _mostly(found: Runs, side: Side) -> int:
    """The median number of tasks of this side, over all micro-batches of all runs."""
    tasks = [each.map_tasks if side == "map" else each.reduce_tasks for each in found]
    return int(np.median(np.concatenate(tasks)))


def fewer(ours: Sequence[Followed], theirs: Sequence[Followed]) -> Measured:
    """Late micro-batches of all runs over those of others with the same seeds; its error is that of the jackknife."""
    pairs = np.array([(a.violations, b.violations) for a, b in zip(ours, theirs, strict=True)])
    all_of_them = pairs.sum(axis=0)
    ratio = _ratio(all_of_them)
    without = np.array([_ratio(all_of_them - pair) for pair in pairs])
    error = np.sqrt((len(pairs) - 1) / len(pairs) * ((without - without.mean()) ** 2).sum())
    return Measured(ratio, float(error))


def _ratio(pair: FloatArray) -> float:
    return float(pair[0] / max(1e-9, pair[1]))


def spikes(rate: float, interval: float, batches: int, seed: int) -> Rate:
    """A rate that is higher for some micro-batches, from random ones on."""
    random = np.random.default_rng(seed)
    begins = np.flatnonzero(random.random(batches) < 1 / EVERY)
    high = np.zeros(batches + 1, bool)
    for begin in begins:
        high[begin : begin + LASTS] = True
    high[:5] = False  # at first everybody finds its numbers
    changes = np.flatnonzero(np.diff(high, prepend=~high[:1]))
    return steps(*((float(at * interval), TIMES * rate if high[at] else rate) for at in changes))


def percent(found: Runs) -> str:
    """The share of late ones and its standard error, in words."""
    share = late(found)
    return f"{100 * share.mean:.1f} ± {100 * share.error:.1f} %"


def times(ratio: Measured) -> str:
    """A ratio and its standard error, in words.

    >>> times(Measured(0.923, 0.061))
    '0.92 ± 0.06'
    """
    return f"{ratio.mean:.2f} ± {ratio.error:.2f}"


def apart(ratio: Measured) -> str:
    """The same, and whether two standard errors tell it apart from 1.

    >>> apart(Measured(0.92, 0.06)), apart(Measured(0.78, 0.05))
    ('0.92 ± 0.06 (two standard errors do not tell this from 1)', '0.78 ± 0.05')
    """
    near = abs(ratio.mean - 1) <= 2 * ratio.error
    return f"{times(ratio)}{' (two standard errors do not tell this from 1)' if near else ''}"


def counted(soon: Measured, floor: Measured, between: Measured) -> str:
    """What counts, by how much less late group-ahead is if it acts as soon, if it has no fewer tasks, and the former
    over the latter.

    >>> fewer_late, as_late = Measured(0.8, 0.05), Measured(0.98, 0.04)
    >>> counted(fewer_late, fewer_late, fewer_late)
    'So both count, and how soon tasks are added counts more.'
    >>> counted(fewer_late, fewer_late, as_late)
    'So both count; which counts more, two standard errors do not tell.'
    >>> counted(fewer_late, as_late, fewer_late)
    'So how soon tasks are added counts; of how many are there, two standard errors do not tell it.'
    """
    both = (("how soon tasks are added", soon), ("how many are there", floor))
    count = [name for name, ratio in both if _at_most(ratio) < 1]
    if not count:
        return "Two standard errors do not tell that either counts."
    if len(count) == 1:
        (other,) = (name for name, _ in both if name not in count)
        return f"So {count[0]} counts; of {other}, two standard errors do not tell it."
    if abs(between.mean - 1) <= 2 * between.error:
        return "So both count; which counts more, two standard errors do not tell."
    return f"So both count, and {both[between.mean > 1][0]} counts more."


def _at_most(ratio: Measured) -> float:
    """The ratio plus two standard errors."""
    return ratio.mean + 2 * ratio.error


def late(found: Runs) -> Measured:
    """The share of late ones in each of the runs."""
    return Measured.of([each.violations for each in found])


def _row(what: str, found: Mapping[str, Runs]) -> tuple[Cell, ...]:
    late_ones = (late(found[name]) if name in found else "" for name in SCHEDULERS)
    return (what, *late_ones, *(_tasks(found[name]) if name in found else "" for name in SCHEDULERS))


def _tasks(found: Runs) -> float:
    return float(np.mean([(each.map_tasks + each.reduce_tasks).mean() for each in found]))
