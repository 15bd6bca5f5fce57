"""Prompt+, section 5.4: what scheduling and partitioning gain on engines like Spark, Flink and Storm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.prompt.engines import (
    ENGINES,
    EVENT,
    FEATURES,
    FLINK,
    PLACE,
    RESCALE,
    SPARK,
    STEPS,
    STORM,
    STRAIGHT,
    UNSCHEDULED,
    between,
    like_spark,
    profile,
    scheduling,
)
from experiments.prompt.rates import tie
from experiments.prompt.rivals import PAPERS, PROMPT, best_candidates
from experiments.prompt.scheduling import AHEAD, ONE, Case, measured, setting_of
from experiments.prompt.scheduling import lines as setup_lines
from experiments.prompt.setting import tweets
from skewless.elastic import Observation, Parallelism, Scaler
from skewless.simulate import Followed, Source, steps

INTERVAL = 1.0
BATCHES = 40
FAILS = 10  # one micro-batch in so many
LOAD = 0.6  # of the highest rate, before it doubles
RISES = 10  # micro-batches until then
FOLLOWED = 80  # micro-batches of that stream: what piles up while tasks stop takes long to be worked off
MERGING = (1.0, 5.0, 20.0)  # times the cost of merging a partial result that was measured
PLACES = (0.0, PLACE, 1.0, 2.0)  # times the cost of a tuple, for putting it into blocks
OPERATIONS = (1, 2, STEPS)  # that a reduce stage of Spark consists of
Rates = Mapping[str, float]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Search for the rates that each engine sustains by scheduler and by partitioner, with failures and with a rise."""
    setting, words = setting_of(scale), tweets(scale)
    tasks = Parallelism(setting.blocks, setting.reducers)
    candidates = best_candidates(words.take(int(setting.start * INTERVAL)), setting)
    cases = {
        name: Case(
            words,
            setting,
            PROMPT,
            INTERVAL,
            tasks,
            scheduling(name, measured().cost),
            candidates=candidates,
            profile=profile(name, setting),
        )
        for name in ENGINES
    }
    rates: dict[str, Rates] = {}
    ahead: dict[str, float] = {}
    for name, case in cases.items():
        tell(name)
        rates[name] = by_partitioner(case)
        ahead[name] = case.highest(AHEAD, rates[name][PROMPT])
    scheduled = {name: ahead[name] / rates[name][PROMPT] for name in ENGINES}
    partitioned = {name: over_median(rates[name]) for name in ENGINES}
    over_each = {(name, each): rates[name][PROMPT] / rates[name][each] for name in ENGINES for each in PAPERS}
    tell("features one by one")
    features = {
        what: by_partitioner(replace(cases[SPARK], profile=engine, cost=cost))
        for what, engine, cost in between(setting, measured().cost)
    }
    tell("costs that were chosen")
    chosen = {
        (place, count): over_median(by_partitioner(replace(cases[SPARK], profile=like_spark(setting, place, count))))
        for place in PLACES
        for count in OPERATIONS
    }
    tell("costs of merging")
    merging = {
        (times, name): over_median(by_partitioner(_merging(cases[name], times)))
        for times in MERGING
        for name in (SPARK, FLINK)
    }
    gained = {what: over_median(each) for what, each in features.items()}
    steps_down = {what: gained[what] / before for before, what in zip(gained.values(), [*gained][1:], strict=False)}
    over_spark = {each: partitioned[FLINK] / gain for each, gain in chosen.items()}
    fewer = [each for each, ratio in over_spark.items() if ratio >= 1]
    kept, rising = {}, {}
    for name, case in cases.items():
        tell(f"{name}, failures and a rise")
        kept[name] = left_with_failures(case, rates[name][PROMPT])
        rising[name] = risen(case, LOAD * rates[name][PROMPT])
    untold = risen(cases[FLINK], LOAD * rates[FLINK][PROMPT], Untold)
    last = {**rising, f"{FLINK}, stops taken for work": untold}
    checks = (
        Check(
            "group-ahead over one at a time on Spark, over 1 / (1 - o), with o the share of scheduling",
            scheduled[SPARK] * (1 - cases[SPARK].share),
            low=0.9,
            high=1.1,
        ),
        Check(
            "group-ahead over one at a time on Spark, over the most on the others",
            scheduled[SPARK] / max(scheduled[FLINK], scheduled[STORM]),
            low=1.05,
            essential=False,
        ),
        *(
            Check(
                f"Prompt over the median of its rivals on {name}, over the same on Spark",
                partitioned[name] / partitioned[SPARK],
                low=1.0,
                why=_why(gained, steps_down, chosen, partitioned[FLINK], merging),
            )
            for name in (FLINK, STORM)
        ),
        Check(
            "Prompt over the median of its rivals if tuples go straight to tasks, over the same if they are put into "
            "blocks first, and all else is as on Spark without its scheduling",
            gained[STRAIGHT] / gained[UNSCHEDULED],
            low=1.0,
            essential=False,
        ),
        Check(
            "Prompt over each rival on Flink, over the same on Spark, the least",
            min(over_each[FLINK, each] / over_each[SPARK, each] for each in PAPERS),
            low=1.0,
            essential=False,
            why="It depends on the stage that a rival is slow in. Where stages overlap, only the slower stage "
            "counts: a "
            "rival that loses in the other one loses nothing.",
        ),
        Check(
            "Prompt over the median of its rivals on Flink, over the same on Spark if reducing is one operation there",
            over_spark[PLACE, 1],
            low=1.0,
            essential=False,
        ),
        *(
            Check(
                f"Prompt over the median of its rivals on Flink, over the same on Spark, if merging costs {times:g} "
                "times as much",
                merging[times, FLINK] / merging[times, SPARK],
                low=1.0,
                essential=False,
                why=f"Spark goes from {merging[1.0, SPARK]:.2f} to {merging[times, SPARK]:.2f} and Flink from "
                f"{merging[1.0, FLINK]:.2f} to {merging[times, FLINK]:.2f}: rivals have more partial results to merge, "
                "but as long as that is in the shorter of stages that overlap, it costs them nothing.",
            )
            for times in MERGING[1:]
        ),
        Check(
            "throughput that is left on Storm with failures, over the least of the others",
            kept[STORM] / min(kept[SPARK], kept[FLINK]),
            high=0.99,
            essential=False,
        ),
        *(
            check
            for name in (SPARK, FLINK)
            for check in (
                Check(f"W at the end, after the rate doubled, on {name}", float(rising[name].ratios[-1]), high=0.9),
                Check(
                    f"intervals from heartbeat to end of the last micro-batch, after the rate doubled, on {name}",
                    float(rising[name].delays[-1]),
                    high=1.0,
                ),
            )
        ),
        Check(
            "number of the last late micro-batch after the rate doubled, Flink over Spark",
            recovered(rising[FLINK]) / recovered(rising[SPARK]),
            high=2.0,
            essential=False,
            why=f"The last micro-batch that is late is number {recovered(rising[SPARK])} after the rise on Spark and "
            f"number {recovered(rising[FLINK])} on Flink. All tasks stop there for {RESCALE:g} s at each of "
            f"{changes(rising[FLINK])} changes, be it for more tasks or for fewer, and what arrives meanwhile is "
            "worked off with the part of an interval that W leaves.",
        ),
        Check(
            "W at the end, after the rate doubled, on Storm",
            float(rising[STORM].ratios[-1]),
            low=1.0,
            essential=False,
        ),
    )
    return Outcome(
        (
            *setup_lines(scale, setting),
            Scaled("engines", "Spark, Flink, Storm with Trident; no experiment", "three profiles of the simulator"),
            Scaled("tasks, interval", "not said", f"{tasks.map} map and {tasks.reduce} reduce tasks, {INTERVAL:g} s"),
            Scaled(
                "what features cost",
                "not said",
                f"chosen: {PLACE:g} times the cost of a tuple, {PLACE * setting.costs.tuple * 1e6:,.0f} µs, to put "
                f"one into a block of Spark; a reduce stage of {STEPS} operations there, of which each after the first "
                f"takes {setting.costs.emit * 1e6:,.0f} µs for a partial result, as emitting one does, where merging "
                f"one takes {setting.costs.partial * 1e6:,.0f} µs; {EVENT * 1e6:.0f} µs a control event of each map "
                f"task, {RESCALE:g} s to change the numbers of continuous tasks. The table says which features these "
                "are",
            ),
            Scaled(
                "what the profiles put in",
                "is not measured either",
                "scheduling costs nothing on Flink and Storm, so that nothing can be gained there; Storm does a whole "
                "micro-batch again, and cannot change the numbers of its tasks. Checks of these are details. "
                "Without failures, and as long as numbers of tasks stay, Storm's profile is Flink's",
            ),
            Scaled("failures", "not said", f"a task in every {FAILS}th micro-batch"),
            Scaled(
                "rate that doubles",
                "not said",
                f"from {LOAD:.0%} of the highest after micro-batch {RISES} of {FOLLOWED}; our step, d = 1. W has in it "
                "what is queued, also what arrived while tasks had stopped, and the scaler is told which part that is",
            ),
        ),
        f"Group-ahead scheduling gains {scheduled[SPARK]:.2f} times on Spark, {scheduled[FLINK]:.2f} on Flink and "
        f"{scheduled[STORM]:.2f} on Storm. Prompt has {partitioned[SPARK]:.2f} times the rate of the median of its "
        f"rivals on Spark, {partitioned[FLINK]:.2f} on Flink and {partitioned[STORM]:.2f} on Storm. Whether it gains "
        "more there turns on two costs of Spark that are chosen: it does for "
        f"{len(fewer)} of the {len(chosen)} pairs of these in a table. With failures {kept[SPARK]:.0%}, "
        f"{kept[FLINK]:.0%} and {kept[STORM]:.0%} of the throughput are left. When the rate doubles, Spark and Flink "
        "add "
        f"tasks and Storm cannot: in the end W is {rising[SPARK].ratios[-1]:.2f}, {rising[FLINK].ratios[-1]:.2f} and "
        f"{rising[STORM].ratios[-1]:.2f}. The last micro-batch that is late is number {recovered(rising[SPARK])} after "
        f"the rise on Spark and number {recovered(rising[FLINK])} on Flink, where each change stops all tasks for "
        f"{RESCALE:g} s.",
        checks,
        (
            Table("The five design features, and what is simulated of each", ("feature", *ENGINES), FEATURES),
            Table(
                "Highest rate in 1,000 tuples a second",
                ("engine", "Prompt, group-ahead", PROMPT, *PAPERS),
                tuple(
                    (name, ahead[name] / 1e3, *(rates[name][each] / 1e3 for each in (PROMPT, *PAPERS)))
                    for name in ENGINES
                ),
            ),
            Table(
                "What each technique gains",
                ("engine", "group-ahead", "Prompt, over the median rival", *(f"Prompt over {each}" for each in PAPERS)),
                tuple(
                    (name, scheduled[name], partitioned[name], *(over_each[name, each] for each in PAPERS))
                    for name in ENGINES
                ),
            ),
            Table(
                "From Spark to Flink, one feature more at a time: Prompt over the median rival, and over each",
                ("", "over the median rival", *(f"over {each}" for each in PAPERS)),
                tuple(
                    (what, gained[what], *(each[PROMPT] / each[rival] for rival in PAPERS))
                    for what, each in features.items()
                ),
            ),
            Table(
                "By the costs that were chosen for Spark: Prompt over the median rival there, on Flink "
                f"{partitioned[FLINK]:.2f}",
                (
                    "putting a tuple into a block, times the cost of a tuple",
                    *(f"reducing takes {_operations(count)}" for count in OPERATIONS),
                ),
                tuple((place, *(chosen[place, count] for count in OPERATIONS)) for place in PLACES),
            ),
            Table(
                "If merging a partial result cost more: Prompt over the median rival",
                ("times the cost measured", SPARK, FLINK),
                tuple((times, merging[times, SPARK], merging[times, FLINK]) for times in MERGING),
            ),
            Table(
                "Failures, and a rate that doubles",
                (
                    "engine",
                    "throughput left with failures",
                    "W at the end",
                    "intervals from heartbeat to end",
                    "map tasks",
                    "changes",
                    f"late micro-batches of {FOLLOWED - RISES}",
                    "last late one after the rise",
                ),
                tuple(
                    (
                        name,
                        kept.get(name, ""),
                        float(each.ratios[-1]),
                        float(each.delays[-1]),
                        int(each.map_tasks[-1]),
                        changes(each),
                        int((each.delays[RISES:] > 1 + 1e-9).sum()),
                        recovered(each) if each.delays[-1] <= 1 else "never",
                    )
                    for name, each in last.items()
                ),
            ),
        ),
        lambda figure: _draw(figure, scheduled, partitioned, rising),
    )


def by_partitioner(case: Case) -> Rates:
    """The highest rates with Prompt and with its rivals, one micro-batch at a time."""
    start = case.setting.start
    return {each: replace(case, technique=each).highest(ONE, start) for each in (PROMPT, *PAPERS)}


def over_median(rates: Rates) -> float:
    """Prompt's rate over the median of its rivals'."""
    return rates[PROMPT] / float(np.median([rates[each] for each in PAPERS]))


def _merging(case: Case, times: float) -> Case:
    return replace(case, setting=replace(case.setting, merging=times * case.setting.merging))


def _operations(count: int) -> str:
    return f"{count} operation{'s' if count > 1 else ''}"


def _why(
    gained: Rates,
    steps_down: Rates,
    chosen: Mapping[tuple[float, int], float],
    on_flink: float,
    merging: Mapping[tuple[float, str], float],
) -> str:
    """Why partitioning does not gain more on Flink than on Spark, with the features and the costs that it turns on."""
    least = min(steps_down.values())
    lost = [f"{what} ({step:.2f} times)" for what, step in steps_down.items() if tie(step / least)]
    one = {place: chosen[place, 1] for place in PLACES}
    whole = {place: chosen[place, STEPS] for place in PLACES}
    return (
        f"It turns on two costs of Spark that are chosen; on Flink it is {on_flink:.2f}. With {_operations(STEPS)} of "
        f"reducing, and {_listed(PLACES)} times the cost of a tuple to put it into a block, it is "
        f"{_listed(whole.values(), '.2f')} on Spark; with one operation it is {_listed(one.values(), '.2f')}. Putting "
        "tuples into blocks takes everybody as long, and dilutes what partitioning gains, as the thesis has it. "
        "Further operations go over all partial results, of which rivals make more than Prompt, so that they add to "
        "what it gains, where the thesis takes them to dilute it. From Spark to Flink one feature at a time, the gain "
        f"goes {' to '.join(f'{each:.2f}' for each in gained.values())}; it falls most with: {' and '.join(lost)}"
        f"{', a tie as rates are found' if len(lost) > 1 else ''}. Where stages overlap, the shorter one costs nobody "
        "anything, and by the costs measured that is reducing. If only merging a partial result cost "
        f"{_listed(MERGING[1:])} times as much, it would be "
        f"{_listed([merging[each, FLINK] for each in MERGING[1:]], '.2f')} on Flink, and "
        f"{_listed([merging[each, SPARK] for each in MERGING[1:]], '.2f')} on Spark."
    )


def _listed(numbers: Iterable[float], form: str = "g") -> str:
    *first, last = (format(each, form) for each in numbers)
    return f"{', '.join(first)} and {last}"


def left_with_failures(case: Case, rate: float) -> float:
    """The part of the throughput that is left if tasks fail now and then, by the work of the busiest at a rate."""
    failures = range(FAILS, BATCHES + 1, FAILS)
    healthy, failing = (case.run(ONE, Source(case.keys, rate), BATCHES, failures=each) for each in ((), failures))
    return healthy.demand / failing.demand


class Untold(Scaler):
    """A scaler that is not told which part of W a stop has left, and takes it for work."""

    def observe(self, seen: Observation) -> Parallelism:
        """The numbers of tasks from now on."""
        return super().observe(replace(seen, stopped=0.0))


def risen(case: Case, rate: float, kind: type[Scaler] = Scaler) -> Followed:
    """A rate that doubles, scheduled by Prompt+, with numbers of tasks that may follow.

    One at a time on Spark, more tasks take more time of the scheduler than they save.
    """
    most = Parallelism(4 * case.tasks.map, 4 * case.tasks.reduce)
    scaler = kind(Parallelism(4, 4), most, case.tasks, d=1)
    source = Source(case.keys, steps((0, rate), (RISES * case.interval, 2 * rate)))
    return case.run(AHEAD, source, FOLLOWED, scaler)


def recovered(found: Followed) -> int:
    """The number of the last late micro-batch, counted from the rise."""
    late = np.flatnonzero(found.delays[RISES:] > 1 + 1e-9)
    return int(late[-1]) + 1 if len(late) else 0


def changes(found: Followed) -> int:
    """How often the numbers of tasks changed from the rise on."""
    numbers = np.stack([found.map_tasks, found.reduce_tasks])[:, RISES - 1 :]
    return int((np.diff(numbers) != 0).any(axis=0).sum())


def _draw(figure: Any, scheduled: Rates, partitioned: Rates, rising: Mapping[str, Followed]) -> None:
    left, right = figure.subplots(1, 2)
    at = np.arange(len(ENGINES))
    left.bar(at - 0.2, [scheduled[name] for name in ENGINES], 0.4, label="group-ahead over one at a time")
    left.bar(at + 0.2, [partitioned[name] for name in ENGINES], 0.4, label="Prompt over the median rival")
    left.set_xticks(at, ENGINES)
    left.axhline(1.0, color="0.5", linewidth=0.8)
    left.set_ylabel("times the throughput")
    left.legend(frameon=False, fontsize=7)
    for number, name in enumerate(ENGINES):
        right.plot(np.arange(1, FOLLOWED + 1), rising[name].ratios, marker="os^"[number], markersize=3, label=name)
    right.axhline(0.9, color="0.5", linewidth=0.8)
    right.set_xlabel("micro-batch; the rate doubles after 10")
    right.set_ylabel("W")
    right.set_ylim(bottom=0)
    right.legend(frameon=False, fontsize=7)


FIGURE = Figure(
    "prompt-5.4",
    "Other engines",
    "Scheduling gains most on Spark, whose tasks are short-lived; partitioning gains more on Flink and Storm, which "
    "move "
    "data straight to tasks that live on. Storm cannot change the number of its tasks, and replays whole "
    "micro-batches.",
    run,
)
