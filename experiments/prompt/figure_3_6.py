"""Prompt+, Figure 3.6: how soon three schedulers restore stability after a spike in the middle of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines
from experiments.prompt.rivals import PROMPT
from experiments.prompt.scheduling import AHEAD, GROUP, GROUPS, ONE, SCHEDULERS, Case, measured, setting_of
from experiments.prompt.scheduling import lines as setup_lines
from experiments.prompt.setting import tweets
from skewless.core.errors import SkewlessError
from skewless.elastic import Parallelism, Scaler
from skewless.simulate import Followed, Source, steps

INTERVAL = 1.0
SPIKE, TIMES = 15, 2.0
BATCHES = 40
TASKS, MOST = Parallelism(16, 16), Parallelism(64, 64)
THRES = 0.9
WINDOWS = (1.0, 2.0)  # seconds of adjustment windows that are longer than a message; the thesis has about the second
REPORTS = (1.0, 2.0)  # seconds until the central scheduler has heard of a micro-batch; the thesis: asynchronously
Runs = Mapping[str, Followed]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Find the rate that each scheduler sustains, double one micro-batch, and let the numbers of tasks follow."""
    setting, words = setting_of(scale), tweets(scale)
    case = Case(words, setting, PROMPT, INTERVAL, TASKS, measured().cost)
    found: dict[str, Followed] = {}
    rates: dict[str, float] = {}
    for name in SCHEDULERS:
        tell(name)
        rates[name] = _calm(case, name, case.highest(name, setting.start / 2, THRES))
        found[name] = spiked(case, name, rates[name])
    adjusted = {each: spiked(replace(case, adjust=each), AHEAD, rates[AHEAD]) for each in WINDOWS}
    reported = {each: spiked(replace(case, report=each), AHEAD, rates[AHEAD]) for each in REPORTS}
    stays = {name: spiked(case, name, rates[name], follows=False) for name in SCHEDULERS}
    acts = {name: first_change(each) for name, each in found.items()}
    stable = {name: stable_from(each) for name, each in found.items()}
    checks = (
        Check("first micro-batch with more tasks, group-ahead", acts[AHEAD], high=17),
        Check("stable from micro-batch, group-ahead", stable[AHEAD], high=20),
        Check(
            f"first micro-batch with more tasks, group-ahead with the thesis's window of {WINDOWS[-1]:g} s",
            first_change(adjusted[WINDOWS[-1]]),
            high=17,
            why="What is decided after the spike comes into force after the window: the window of a message has more "
            "tasks from 17 on, and each second of a longer one is a micro-batch more.",
        ),
        Check(
            f"stable from micro-batch, group-ahead with an adjustment window of {WINDOWS[-1]:g} s",
            stable_from(adjusted[WINDOWS[-1]]),
            high=20,
        ),
        Check(
            f"first micro-batch with more tasks, group-ahead that hears of micro-batches {REPORTS[0]:g} s after they "
            "are done",
            first_change(reported[REPORTS[0]]),
            high=17,
            essential=False,
            why=f"Micro-batch {SPIKE} is done {found[AHEAD].delays[SPIKE - 1]:.2f} intervals after its heartbeat, and "
            f"the adjustment window is {case.cost.seconds(TASKS) * 1e3:.0f} ms: if it is heard of at once there are "
            f"more tasks from {acts[AHEAD]} on, {REPORTS[0]:g} s later from {first_change(reported[REPORTS[0]])} and "
            f"{REPORTS[1]:g} s later from {first_change(reported[REPORTS[1]])}.",
        ),
        Check(
            f"stable from micro-batch, group-ahead that hears of micro-batches {REPORTS[0]:g} s after they are done",
            stable_from(reported[REPORTS[0]]),
            high=20,
            essential=False,
            why="A report that is late by a micro-batch has more tasks come into force a micro-batch later.",
        ),
        Check("first micro-batch with more tasks, groups", acts[GROUPS], low=21, high=21),
        Check("first micro-batch with more tasks, one at a time", acts[ONE], low=16, high=16, essential=False),
        Check("micro-batches by which groups are stable later than group-ahead", stable[GROUPS] - stable[AHEAD], low=1),
        Check(
            "micro-batches that are late after the spike, group-ahead over one at a time",
            _late(found[AHEAD]) / max(1, _late(found[ONE])),
            high=2.0,
            essential=False,
            why="One at a time acts a micro-batch sooner, and its spike is smaller, because its rate is lower.",
        ),
        Check(
            "rate at the beginning, group-ahead over one at a time", rates[AHEAD] / rates[ONE], low=1.0, essential=False
        ),
    )
    return Outcome(
        (
            *setup_lines(scale, setting),
            Scaled("group, interval", "10 micro-batches, 1 s", f"{GROUP}, {INTERVAL:g} s"),
            Scaled(
                "rate", "the highest that each technique sustains", "the highest at which no task is added: W = 0.9"
            ),
            Scaled("spike", "micro-batch 15, up to 2 times", f"micro-batch {SPIKE} alone, {TIMES:g} times"),
            Scaled(
                "step", "as fast as possible", "straight to ceil(p W / 0.9), d = 1, from 16 + 16 tasks, at most 64 + 64"
            ),
            Scaled(
                "adjustment window",
                "about 2 micro-batches",
                f"{case.cost.seconds(TASKS) * 1e3:.0f} ms, a message; what is queued meanwhile keeps its tasks",
            ),
            Scaled("reports of workers", "asynchronous", "at once; later in a table"),
        ),
        f"Group-ahead has more tasks from micro-batch {acts[AHEAD]} on and is stable from {stable[AHEAD]} on (the "
        f"thesis: 17 and 20), groups from {acts[GROUPS]} and {stable[GROUPS]} (21 and later), one at a time from "
        f"{acts[ONE]} and {stable[ONE]}. With an adjustment window of {WINDOWS[-1]:g} s instead of "
        f"{case.cost.seconds(TASKS) * 1e3:.0f} ms group-ahead acts from {first_change(adjusted[WINDOWS[-1]])} on and "
        f"is stable from {stable_from(adjusted[WINDOWS[-1]])} on; if it hears of micro-batches {REPORTS[0]:g} s after "
        f"they are done, from {first_change(reported[REPORTS[0]])} and {stable_from(reported[REPORTS[0]])} on. The "
        f"schedulers started from {rates[AHEAD] / rates[ONE]:.2f} and {rates[GROUPS] / rates[ONE]:.2f} times the rate "
        "of one at a time. One doubled micro-batch drains by itself, and almost as soon: if tasks never change, "
        f"group-ahead is stable from {stable_from(stays[AHEAD])} on, groups from {stable_from(stays[GROUPS])} and one "
        f"at a time from {stable_from(stays[ONE])}.",
        checks,
        (
            Table(
                "After the spike",
                ("scheduler", "rate, tuples/s", "more tasks from", "stable from", "late", "most map tasks"),
                (
                    *(
                        (name, rates[name], acts[name], stable[name], _late(each), int(each.map_tasks.max()))
                        for name, each in found.items()
                    ),
                    *(
                        (f"{name}, tasks never change", rates[name], "", stable_from(each), _late(each), TASKS.map)
                        for name, each in stays.items()
                    ),
                ),
            ),
            Table(
                "Group-ahead by its adjustment window, at the same rate",
                ("seconds", "more tasks from", "stable from", "late"),
                tuple(
                    (seconds, first_change(each), stable_from(each), _late(each))
                    for seconds, each in {case.cost.seconds(TASKS): found[AHEAD], **adjusted}.items()
                ),
            ),
            Table(
                "Group-ahead by the time until it has heard of a micro-batch that is done, at the same rate",
                ("seconds", "more tasks from", "stable from", "late"),
                tuple(
                    (seconds, first_change(each), stable_from(each), _late(each))
                    for seconds, each in {0.0: found[AHEAD], **reported}.items()
                ),
            ),
            Table(
                "From heartbeat to end, in intervals",
                ("micro-batch", *SCHEDULERS, *(f"map tasks, {name}" for name in SCHEDULERS)),
                tuple(
                    (
                        number,
                        *(float(found[name].delays[number - 1]) for name in SCHEDULERS),
                        *(int(found[name].map_tasks[number - 1]) for name in SCHEDULERS),
                    )
                    for number in range(11, 31)
                ),
            ),
        ),
        lambda figure: _draw(figure, found),
    )


def spiked(case: Case, name: str, rate: float, *, follows: bool = True) -> Followed:
    """A stream at this rate, one micro-batch of which is larger, with numbers of tasks that follow or stay."""
    at = (SPIKE - 1) * case.interval
    source = Source(case.keys, steps((0, rate), (at, TIMES * rate), (at + case.interval, rate)))
    scaler = Scaler(Parallelism(4, 4), MOST, case.tasks, stride="straight", d=1, thres=THRES)
    return case.run(name, source, BATCHES, scaler if follows else None)


def _calm(case: Case, name: str, rate: float) -> float:
    """The highest rate, up to this one, at which no micro-batch before the spike has the scaler act."""
    for _ in range(20):
        before = spiked(case, name, rate)
        worst = float(before.ratios[: SPIKE - 1].max())
        if worst <= THRES:
            return rate
        rate *= THRES / worst * 0.999
    raise SkewlessError(f"{name} adds tasks at {rate:g} tuples a second already; give a load that is more even")


def first_change(found: Followed) -> int:
    """The first micro-batch that ran with more tasks than at the beginning."""
    more = (found.map_tasks > found.map_tasks[0]) | (found.reduce_tasks > found.reduce_tasks[0])
    return int(np.argmax(more)) + 1 if more.any() else len(more) + 1


def stable_from(found: Followed) -> int:
    """The micro-batch after the last late one, among as many as a group has, from the spike on.

    Those that come later do not count: the first of a group waits for its message, and may be late without a spike.
    """
    late = found.delays[SPIKE - 1 : SPIKE - 1 + GROUP] > 1 + 1e-9
    return SPIKE + (int(np.flatnonzero(late)[-1]) + 1 if late.any() else 0)


def _late(found: Followed) -> int:
    return int((found.delays[SPIKE - 1 :] > 1 + 1e-9).sum())


def _draw(figure: Any, found: Runs) -> None:
    left, right = figure.subplots(1, 2)
    at = np.arange(11, 31)
    late = {name: each.delays[at - 1].tolist() for name, each in found.items()}
    lines(left, at.tolist(), late, x="micro-batch", y="intervals", title="from heartbeat to end")
    left.axhline(1.0, color="0.5", linewidth=0.8)
    tasks = {name: (each.map_tasks + each.reduce_tasks)[at - 1].tolist() for name, each in found.items()}
    lines(right, at.tolist(), tasks, x="micro-batch", y="", title="tasks")
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.set_xticks([11, 13, 15, 17, 19, 21, 25, 30])
    legend(figure, left)


FIGURE = Figure(
    "prompt-3.6",
    "Stability after a spike",
    "Of groups of 10, micro-batch 15 is doubled: Prompt+ runs with more tasks from micro-batch 17 on and is stable "
    "by 20, "
    "about as soon as scheduling one at a time, while groups cannot act before 21.",
    run,
)
