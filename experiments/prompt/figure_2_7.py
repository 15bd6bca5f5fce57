"""Prompt, Figure 2.7: the highest throughput while the rate follows a sine, and under ever more skew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import lines
from experiments.prompt.one_batch import PLANNED, of_one_batch
from experiments.prompt.rates import Rates, factor, least, lowest, relative, said, ties
from experiments.prompt.rivals import EXTRA, IN_TASKS, PACKINGS, PAPERS, PROMPT, RIVALS, TASKS, WITH_TASKS
from experiments.prompt.setting import (
    AMPLITUDE,
    CORES,
    PERIOD,
    PLANNING,
    SORTED,
    Setting,
    cluster_lines,
    skewed,
    slower,
    submissions,
    trips,
    tweets,
)
from experiments.prompt.throughput import TOLERANCE, candidates_of_cam, sustained_all, sustained_planning
from skewless.simulate.arrivals import Rate, varying
from skewless.workload import Spikes

INTERVALS = (1.0, 2.0, 3.0)
SKEWED_AT = 3.0  # seconds of the intervals of 2.7d
EXPONENTS = (0.1, 0.6, 0.9, 1.2, 1.5, 1.8, 2.0)
OTHERWISE = (0.5, 2.0)  # times what a partial result costs
OTHERWISE_AT = 2.0  # seconds of their intervals
FEWER = 32  # cores, as of two nodes
SLOWER = (5.0, 10.0)  # times, for cores that leave micro-batches with hardly more tuples than keys
FASTER = 0.25  # times what work takes, for cores with so many tuples a key that partial results cost next to nothing
SPIKE, SPIKE_LASTS = 2.0, 1.0  # times the rate between spikes, and seconds in each period
SIZE: dict[Scale, float] = {"small": 1.0, "full": 4.0}  # times that all work takes longer, for runs that end


def run(scale: Scale, tell: Tell) -> Outcome:
    """Search for the rate that each technique sustains, at three intervals and at several exponents."""
    setting = Setting(scale, slower=SIZE[scale])
    words = tweets(scale)
    sines = [sustained_all(WITH_TASKS, words, setting, each, tell) for each in INTERVALS]
    costly = [replace(setting, partial=times) for times in OTHERWISE]
    otherwise = [sustained_all(WITH_TASKS, words, each, OTHERWISE_AT, tell) for each in costly]
    workloads = {"taxis": trips(), "jobs": submissions()}
    others = [sustained_all(WITH_TASKS, each, setting, OTHERWISE_AT, tell) for each in workloads.values()]
    spikes = sustained_all(WITH_TASKS, words, setting, OTHERWISE_AT, tell, shape=_spikes)
    steady = sustained_all(("time-based", "shuffle"), words, setting, OTHERWISE_AT, tell, amplitude=0.0)
    few = replace(setting, blocks=FEWER, reducers=FEWER)
    few_sine = sustained_all(WITH_TASKS, words, few, SKEWED_AT, tell)
    few_zipf = sustained_all(WITH_TASKS, skewed(EXPONENTS[-1], scale), few, SKEWED_AT, tell, amplitude=0.0)
    speeds = [replace(setting, slower=times * setting.slower) for times in (FASTER, *SLOWER)]
    fast, *slow = (sustained_all(WITH_TASKS, words, each, INTERVALS[0], tell) for each in speeds)
    smaller = slow[-1]
    parts = [of_one_batch(name, words.take(int(each[PROMPT]))) for each in (smaller, sines[0]) for name in PLANNED]
    tell("prompt, other costs of planning")
    as_slow = PLANNING * SIZE[scale] * slower(scale)  # as all other work
    plannings = (*(times * PLANNING for times in OTHERWISE), as_slow, SORTED)
    best = [max(found[name] for name in RIVALS) for found in sines]
    over_best = [
        [sustained_planning(a_key, words, setting, at) / rate for at, rate in zip(INTERVALS, best, strict=True)]
        for a_key in plannings
    ]
    zipf = [sustained_all(WITH_TASKS, skewed(z, scale), setting, SKEWED_AT, tell, amplitude=0.0) for z in EXPONENTS]
    candidates = [candidates_of_cam(words, setting, each) for each in INTERVALS]
    candidates_of_others = [candidates_of_cam(each, setting, OTHERWISE_AT) for each in workloads.values()]
    candidates_of_zipf = [candidates_of_cam(skewed(z, scale), setting, SKEWED_AT) for z in EXPONENTS]
    streams = [*sines, *others, spikes, *zipf]
    by_z = dict(zip(EXPONENTS, zipf, strict=True))
    at_z = {f"z = {z:g}": found for z, found in by_z.items()}
    over_two = [max(factor(found, (name,)) for found in sines) for name in ("cAM", "time-based")]
    at_middle = sines[INTERVALS.index(OTHERWISE_AT)]
    lost = at_middle["time-based"] / at_middle["shuffle"]
    lost_steady = steady["time-based"] / steady["shuffle"]
    checks = (
        Check(
            "2.7a-c: Prompt over the best rival of the thesis, the least of the intervals",
            min(factor(found, PAPERS) for found in sines),
            low=1.0,
        ),
        Check(
            "2.7a-c: Prompt over the better packing of Figure 2.3, the least of the intervals",
            min(factor(found, tuple(PACKINGS)) for found in sines),
            low=1.0,
        ),
        Check("2.7a-c: Prompt over cAM, the most", over_two[0], low=2.0),
        Check(
            "2.7a-c: Prompt over time-based blocks, the most",
            over_two[1],
            low=2.0,
            why="Time-based blocks lose by their partial results, which are cheap at the costs that were measured. If "
            f"these cost twice as much, Prompt is {factor(otherwise[1], ('time-based',)):.1f} times ahead.",
        ),
        Check(
            "2.7a-c: throughput at 3 s over that at 1 s, the least of all",
            min(sines[-1][name] / sines[0][name] for name in (PROMPT, *PAPERS)),
            low=1.0,
        ),
        Check(
            "2.7a-c: time-based blocks over the least of the other rivals, the most",
            max(found["time-based"] / lowest(found) for found in sines),
            high=1.0,
            essential=False,
            why=f"Hash and cAM are lower still: the most frequent word is {setting.blocks * words.top:.1f} times the "
            f"fair load of one of {setting.blocks} cores, and both keep it on one. With {FEWER} cores, of which it "
            f"fills less than one, time-based blocks have {few_sine['time-based'] / lowest(few_sine):.2f} times the "
            f"least of the others. The sine costs them {1 - lost / lost_steady:.0%} against shuffling, which has as "
            "many fragments: most of what they lose, they lose by splitting keys.",
        ),
        Check(
            "2.7a-c: Prompt over cAM and time-based blocks, the most",
            max(over_two),
            low=2.0,
            high=4.0,
            essential=False,
            why=f"It is more than in the thesis. How much more depends on the cores: with {FEWER} of them Prompt is "
            f"{factor(few_sine, ('cAM',)):.1f} times ahead of cAM and {factor(few_sine, ('time-based',)):.1f} times "
            "of time-based blocks at 3 s, and on what partial results cost, as the third table shows.",
        ),
        Check(
            "2.7a-c: Prompt over the best rival with partial results at half and at twice the cost, the least",
            min(factor(found, RIVALS) for found in otherwise),
            low=1.0,
        ),
        Check(
            f"2.7a-c: Prompt over the best rival if planning takes {1e9 * SORTED:,.0f} ns a key, the least",
            min(over_best[-1]),
            low=1.0,
            why="Early release hides planning up to 5 % of the interval; the rest delays the micro-batch.",
        ),
        Check(
            "taxis and jobs, sine: Prompt over the best rival of the thesis, the least",
            min(factor(found, PAPERS) for found in others),
            low=1.0,
            essential=False,
            why="The thesis shows neither stream in this figure. On taxis Prompt has "
            f"{factor(others[0], PAPERS):.2f} of the best rival, on jobs {factor(others[1], PAPERS):.2f}.",
        ),
        Check("2.7d: Prompt over hash from z = 1.2 on, the least", least(by_z, "hash", 1.2), low=2.0),
        Check("2.7d: Prompt over PK5 from z = 1.8 on, the least", least(by_z, "PK5", 1.8), low=2.0),
        Check(
            "2.7d: Prompt over the best rival of the thesis, the least of all z",
            min(factor(found, PAPERS) for found in zipf),
            low=1.0,
        ),
        Check(
            f"2.7d: Prompt over PK5 at z = {EXPONENTS[-1]:g}",
            factor(zipf[-1], ("PK5",)),
            low=2.0,
            high=5.0,
            essential=False,
            why=f"It is more than in the thesis. The most frequent key has {skewed(2.0, scale).frequencies[0]:.0%} of "
            f"the tuples, and PK5 has 5 of {CORES} cores for it. With {FEWER} cores Prompt is "
            f"{factor(few_zipf, ('PK5',)):.1f} times ahead.",
        ),
        Check(
            "2.7a: Prompt over the best rival on cores that are 5 and 10 times slower, the least",
            min(factor(found, RIVALS) for found in slow),
            low=1.0,
            essential=False,
            why="What tuples and partial results cost beside each other was measured; by how much all cores are slower "
            "than those was chosen, so that a micro-batch has as many tuples as the thesis says, and who is ahead "
            f"depends on that. On cores that are 5 times slower still Prompt has {factor(slow[0], RIVALS):.2f} of the "
            f"best rival and {factor(slow[0], (EXTRA,)):.2f} of bounded. On cores that are 10 times slower "
            f"a micro-batch has about {parts[0].tuples / parts[0].keys:.0f} tuples a key. Algorithm 2 fills "
            f"the room that is left in blocks with the largest keys, so that the first is on {parts[0].first} of them, "
            f"against {parts[1].first} by first fit, and its partial results all go to one reduce task: the busiest "
            f"merges {parts[0].busiest}, {parts[0].busiest / parts[0].average:.2f} times the average, by first fit "
            f"{parts[1].busiest}. With {parts[2].tuples / parts[2].keys:.0f} tuples a key map tasks outweigh that, and "
            "Prompt is ahead because its blocks have equally many keys.",
        ),
        Check(
            f"2.7a: Prompt over the best rival on cores that are {1 / FASTER:g} times faster",
            factor(fast, RIVALS),
            low=1.0,
            essential=False,
            why="There a micro-batch has so many tuples a key that partial results, of which there are no more than "
            "words in each block, cost little beside tuples, and what splits keys freely loses less by it.",
        ),
        Check(
            "words, a rate with spikes: Prompt over the best rival of the thesis",
            factor(spikes, PAPERS),
            low=1.0,
            essential=False,
            why="The thesis has no spikes in this figure.",
        ),
        Check(
            f"Prompt in {TASKS} tasks, as in streams on Spark, over the best rival of the thesis, the least of all "
            "workloads above",
            min(each[IN_TASKS] / max(each[name] for name in PAPERS) for each in streams),
            low=1.0,
            essential=False,
            why="Tasks that never talk leave a block up to 1 % above its share in tuples, and have more keys in the "
            "fullest block than one receiver. The thesis has one receiver.",
        ),
        Check(
            f"Prompt in {TASKS} tasks over bounded, the least of all workloads above",
            min(each[IN_TASKS] / each[EXTRA] for each in streams),
            low=1.0,
            essential=False,
            why="The thesis has neither. Both place a key by its hash as far as they can.",
        ),
    )
    return Outcome(
        (
            *cluster_lines(scale, SIZE[scale]),
            Scaled("stream of 2.7a-c", "not said", f"words of tweets, {words.words:,} of them, the first 2.69 %"),
            Scaled(
                "rate of 2.7a-c", "a sine, not said", f"period {PERIOD:g} s, {AMPLITUDE:.0%} of the mean either way"
            ),
            Scaled(
                "taxis, jobs", "not in this figure", "those of DEBS and of the Google cluster, with the rate of 2.7a-c"
            ),
            Scaled("stream of 2.7d", "SynD, up to 10,000,000 keys", f"SynD, {skewed(1.0, scale).keys:,} keys"),
            Scaled(
                "highest throughput",
                "before back-pressure",
                "mean rate at which every micro-batch is processed within its interval, found to "
                f"{TOLERANCE:.0%}: up to {1 + TOLERANCE:g} times another rate is a tie",
            ),
            Scaled(
                "planning of Prompt and the packings",
                "hidden by early release",
                f"{1e9 * PLANNING:.0f} ns a key, as measured for Algorithm 2 with keys in order already, because the "
                "receiver is not slower with the cores; sorting comes on top. Half of that is tried too, and, with "
                f"room for sorting, twice that, {1e9 * as_slow:,.0f} ns as if the receiver were slower, and "
                f"{1e9 * SORTED:,.0f} ns, more than Figure 2.9b has for a key with sorting",
            ),
            Scaled(
                "speed of a core",
                "not said",
                "that of a core here would give 320 cores micro-batches of tens of millions of tuples. By how much all "
                "work takes longer than measured is chosen, so that a micro-batch has as many tuples as the thesis "
                f"speaks of; cores that are {1 / FASTER:g} times faster and up to {SLOWER[-1]:g} times slower are "
                "tried too",
            ),
            Scaled(
                IN_TASKS,
                "one receiver",
                f"as streams on Spark: {TASKS} receivers that never talk, and reduce buckets by the hash of the key. "
                "What they and bounded take to decide is part of the tasks that read, and not charged",
            ),
            Scaled(
                "candidates of cAM",
                "the best for each workload",
                f"of 2, 3, 5, 10 and all: {_listed(candidates)} at 1, 2 and 3 s, {_listed(candidates_of_others)} on "
                f"taxis and jobs, {_listed(candidates_of_zipf)} by rising z",
            ),
            Scaled(
                "rate with spikes",
                "not in this figure",
                f"{SPIKE:g} times the rate between them, for {SPIKE_LASTS:g} s in each {PERIOD:g} s",
            ),
        ),
        f"Prompt sustains {said(sines, PAPERS)} times the rate of the best rival of the thesis at intervals of 1, 2 "
        f"and 3 s, and up to {over_two[0]:.1f} times that of cAM and {over_two[1]:.1f} times that of time-based blocks "
        f"(the thesis: up to 2 to 4 times). Under Zipf it is {least(by_z, 'hash', 1.2):.1f} times ahead of hash from "
        f"z = 1.2 on and {least(by_z, 'PK5', 1.8):.1f} times ahead of PK5 from 1.8 on. It is a tie with the best "
        f"rival of the thesis{ties({**dict(zip(workloads, others, strict=True)), **at_z})}. As {TASKS} tasks of a "
        f"stream it sustains {min(each[IN_TASKS] / each[PROMPT] for each in streams):.0%} to "
        f"{max(each[IN_TASKS] / each[PROMPT] for each in streams):.0%} of what one receiver does, and "
        f"{min(each[IN_TASKS] / each[EXTRA] for each in streams):.2f} to "
        f"{max(each[IN_TASKS] / each[EXTRA] for each in streams):.2f} times what bounded does.",
        checks,
        (
            _table("2.7a-c: highest mean rate in 1,000 tuples a second, sine", "interval, s", INTERVALS, sines),
            _table("The same over Prompt's", "interval, s", INTERVALS, [relative(found) for found in sines]),
            _table(
                f"The same over Prompt's at {OTHERWISE_AT:g} s, if partial results cost so many times as much",
                "times",
                OTHERWISE,
                [relative(found) for found in otherwise],
            ),
            Table(
                "2.7a-c: Prompt's rate, if planning takes so long, over that of the best rival",
                ("ns a key", *(f"intervals of {at:g} s" for at in INTERVALS)),
                tuple((f"{1e9 * a_key:,.0f}", *each) for a_key, each in zip(plannings, over_best, strict=True)),
            ),
            _table(
                f"Other workloads: highest mean rate in 1,000 tuples a second, sine or spikes, intervals of "
                f"{OTHERWISE_AT:g} s",
                "keys",
                (*workloads, "words, spikes"),
                [*others, spikes],
            ),
            _table("2.7d: highest rate in 1,000 tuples a second, intervals of 3 s", "z", EXPONENTS, zipf),
            _table(
                f"2.7c with {FEWER} cores: highest mean rate in 1,000 tuples a second",
                "interval, s",
                (3.0,),
                [few_sine],
            ),
            _table(f"2.7d with {FEWER} cores", "z", EXPONENTS[-1:], [few_zipf]),
            _table("2.7a on cores that are so many times slower", "times", (FASTER, *SLOWER), [fast, *slow]),
            Table(
                "Micro-batches of one second at Prompt's mean rate in the last table and in 2.7a",
                (
                    "technique",
                    "tuples",
                    "keys",
                    "blocks with the first key",
                    "partial results of a reduce task",
                    "of the busiest",
                    "most keys of a block",
                ),
                tuple(
                    (each.name, each.tuples, each.keys, each.first, each.average, each.busiest, each.most_keys)
                    for each in parts
                ),
            ),
            Table(
                f"Time-based blocks over shuffling, intervals of {OTHERWISE_AT:g} s",
                ("the rate follows a sine", "the rate is constant"),
                ((lost, lost_steady),),
            ),
        ),
        lambda figure: _draw(figure, sines, zipf),
    )


def _spikes(mean: float) -> Rate:
    """Spikes within a micro-batch, with this rate on average over a period."""
    base = mean / (1 + (SPIKE - 1) * SPIKE_LASTS / PERIOD)
    return varying(Spikes(base, SPIKE * base, every=PERIOD, lasts=SPIKE_LASTS, first=OTHERWISE_AT))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _table(title: str, what: str, at: Sequence[float | str], found: Sequence[Rates]) -> Table:
    return Table(
        title,
        (what, *WITH_TASKS),
        tuple((x, *(each[name] / 1000 for name in WITH_TASKS)) for x, each in zip(at, found, strict=True)),
    )


def _draw(figure: Any, sines: Sequence[Rates], zipf: Sequence[Rates]) -> None:
    left, right = figure.subplots(1, 2)
    for axes, xs, found, x, title in (
        (left, INTERVALS, sines, "interval, s", "a-c: tweets, sine"),
        (right, EXPONENTS, zipf, "Zipf exponent z", "d: SynD, intervals of 3 s"),
    ):
        shown = {name: [each[name] / 1000 for each in found] for name in WITH_TASKS}
        lines(axes, xs, shown, x=x, y="1,000 tuples a second" if axes is left else "", title=title)
        axes.set_ylim(bottom=0)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=(len(labels) + 1) // 2, frameon=False)


FIGURE = Figure(
    "prompt-2.7",
    "Throughput under a variable rate and under skew",
    "While the rate follows a sine, Prompt sustains up to 2 to 4 times the throughput of cAM and time-based blocks; "
    "all techniques gain with longer intervals, and time-based blocks have the lowest throughput. Under Zipf Prompt "
    "keeps the highest throughput at every exponent, 2 to 5 times that of others.",
    run,
)
