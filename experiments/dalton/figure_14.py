"""Dalton, Figure 14: how often partitioners should tell each other, and how the interval follows the reducer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from experiments.costs import MULTIPLES, said, work
from experiments.dalton import adapting
from experiments.dalton.rivals import DEFAULTS, Rival
from experiments.dalton.team import (
    PARAMETERS,
    PRINTED,
    SEVERAL,
    WORK,
    Point,
    apart,
    cooperation,
    point,
    telling,
)
from experiments.dalton.two_sources import KEYS, SINCE, START, THREADS, two_streams
from experiments.dalton.word_count import SEARCHED, THIRDS, TOLERANCE, Setup, longer, of_a_run, part, together
from experiments.figure import Cell, Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import lines
from skewless.simulate import Partitioners, Run, sustainable
from skewless.simulate.arrivals import Keys
from skewless.split import Dalton

FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1 / 2}
SECONDS = 300.0
NEVER = float("inf")
INTERVALS = (1.0, 5.0, 10.0, 20.0, 40.0, NEVER)
COMPARED = (1.0, 10.0, NEVER)  # with other parameters and other costs
SEEDS = (0, 1, 2)
SHARED = "dalton, loads shared"
NEAR = 0.95  # of the best rate
THRESHOLDS = (
    "together every 10 s, 1 of what all have",
    "apart, 1 of one's own",
    "apart, 2 of one's own",
    "together every 10 s, 0.5 of what all have",
)

Swept = dict[tuple[str, str], dict[float, list[Point]]]
"""By algorithm and stream, for each interval a point of each seed."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """Sweep DSYNC for two kinds of sources, then let the reducer become slower and fast again."""
    setup = Setup(THREADS, FRACTION[scale], THIRDS)
    keys = round(KEYS * setup.fraction)
    by_seed = [two_streams(keys, seed) for seed in SEEDS]
    streams = by_seed[0]
    swept: Swept = {}
    for stream in streams:
        tell(f"14a: {stream}")
        swept["dalton", stream] = {interval: _seeds(setup, by_seed, stream, interval) for interval in INTERVALS}
        found = partial(_point, setup, streams[stream])
        swept[SHARED, stream] = {
            interval: [found(SHARED, partial(cooperation, setup, 2, interval, merge="shared"), interval)]
            for interval in COMPARED[:2]
        }
        printed = partial(cooperation, setup, 2, options=PRINTED)
        swept[PARAMETERS, stream] = {
            interval: [found(PARAMETERS, partial(printed, interval), interval)] for interval in COMPARED
        }
    tell("14a: the paper's parameters, values not shared")
    mixed = next(iter(streams))
    valueless = _point(
        setup, streams[mixed], PARAMETERS, lambda: cooperation(setup, 2, 10.0, options=PRINTED, values=False), 10.0
    )
    tell("14a: the paper's parameters, by threshold")
    thresholds = by_threshold(setup, streams[mixed])
    adapted, settled, paces = adapting.rates(scale, tell)
    isolated = adapting.isolated(tell)
    by_costs: dict[tuple[str, float], list[float]] = {}
    by_tell: dict[tuple[str, float], dict[float, float]] = {}
    for stream, sources in streams.items():
        known = {interval: swept["dalton", stream][interval][0].rate for interval in COMPARED}
        for times in MULTIPLES:
            tell(f"14a: {stream}, costs x {times:g}")
            found = partial(_point, replace(setup, merging=times), sources, "dalton")
            by_costs[stream, times] = [
                rate if times == 1 else found(partial(cooperation, setup, 2, interval), interval, rate).rate
                for interval, rate in known.items()
            ]
            found = partial(_point, setup, sources, "dalton")
            by_tell[stream, times] = {
                interval: known[interval]
                if times == 1
                else found(
                    partial(cooperation, setup, 2, interval, tell=times * telling(interval)), interval, known[interval]
                ).rate
                for interval in COMPARED[:2]
            }
    checks = tuple(
        check
        for stream in streams
        for check in _sweep_checks(
            setup,
            stream,
            swept["dalton", stream],
            {times: found[1.0] / found[10.0] for (of, times), found in by_tell.items() if of == stream},
            f"{_printed(swept[PARAMETERS, mixed], valueless)} {_unsplit(thresholds)}",
        )
    )
    checks += tuple(
        Check(f"14b: DSYNC, phase {number + 1}", found, low=expected, high=expected)
        for number, (found, expected) in enumerate(zip(settled, adapting.EXPECTED, strict=True))
    )
    checks += (adapting.check(paces, isolated),)
    one = {interval: _mean(found) for interval, found in swept["dalton", mixed].items()}
    return Outcome(
        (
            Scaled("servers", "64 threads", f"{THREADS}: 56 combiners, 8 reducers"),
            Scaled("full scale", "all of it", "half of the keys and of the rate (14a), as said at each scale"),
            Scaled("windows", "60 s by 20 s", "60 s by 20 s"),
            Scaled(
                "keys, rate",
                "100,000 to 1,000,000, not said",
                f"{keys:,}: {part(setup.fraction)} of 100,000, and of the rate{longer(setup.fraction)}",
            ),
            Scaled("time at a rate (14a)", "not said", f"{SECONDS:g} s, the last {SECONDS - SINCE:g} s counted"),
            Scaled(
                "a phase of the reducer (14b)",
                "5,000 s",
                f"{adapting.PHASE[scale]:g} s, {part(adapting.FRACTION)} of the keys and rate",
            ),
            Scaled(
                "time of the reducer",
                "not said",
                f"{WORK:.2g} s as measured (14a); {', '.join(f'{each:g}' for each in adapting.TIMES)} s (14b), chosen: "
                "DSYNC settles where it is longer than the work and at most twice as long, so that any first time "
                "above 5 s and below 10 s gives 10, 20, 40, 10 s, and the time of 14a would leave it at its shortest",
            ),
            Scaled(
                "time of a partitioner for a message",
                "not said",
                f"by the tuples since the last one, measured twice: {_told_by()}",
            ),
            Scaled(
                "seeds",
                "not said",
                f"{len(SEEDS)} for dalton in 14a, {len(adapting.SEEDS)} in 14b, with the mean and its standard error; "
                "else 1",
            ),
            of_a_run(
                max(each.rate for found in swept.values() for some in found.values() for each in some),
                setup.fraction,
                SECONDS,
            ),
            SEARCHED,
            DEFAULTS,
            Scaled("costs", "not said", said()),
        ),
        f"With a uniform and a Zipf source, messages every 10 s sustain {one[10.0].rate:,.0f} tuples a second, every "
        f"second {one[1.0].rate:,.0f}, and none {one[NEVER].rate:,.0f}. {alike(one)} A message every second takes "
        f"{telling(1.0):.2g} s of a partitioner; if it took twice as long, every second would sustain "
        f"{by_tell[mixed, 2.0][1.0]:,.0f}. DSYNC settles at "
        f"{', '.join(f'{each:g}' for each in settled)} s as merging takes "
        f"{', '.join(f'{each:g}' for each in adapting.TIMES)} s. {adapting.beaten(paces)}",
        checks,
        (
            *(_table(name, swept, list(streams)) for name in ("dalton", SHARED, PARAMETERS)),
            Table(
                f"14a: the paper's parameters, {mixed}",
                ("", *_COLUMNS),
                (
                    ("common values every 10 s", *_cells(swept[PARAMETERS, mixed][10.0])),
                    ("hot keys and load every 10 s, values of one's own", *_cells([valueless])),
                    ("no messages", *_cells(swept[PARAMETERS, mixed][NEVER])),
                ),
            ),
            Table(
                f"14a: the paper's parameters, {mixed}, at {START:,.0f} tuples a second, by the threshold of hot keys",
                ("fair shares of a worker", "max/avg", "fragments of the hottest key"),
                tuple((name, *found) for name, found in thresholds.items()),
            ),
            Table(
                "14a: dalton's rate with messages every second over that with one every 10 s, by what a message takes",
                ("a partitioner's time for a message", *streams),
                tuple(
                    (
                        f"{times * telling(1.0):.2g} s every second, {times * telling(10.0):.2g} s every 10 s",
                        *(round(by_tell[each, times][1.0] / by_tell[each, times][10.0], 3) for each in streams),
                    )
                    for times in MULTIPLES
                ),
            ),
            Table(
                "14a: dalton's rate over that with messages every 10 s, by the costs of merging",
                ("", *(f"{stream}: {_dsync(each)}" for stream in streams for each in COMPARED if each != 10.0)),
                tuple(_relative(merging, by_costs, list(streams)) for merging in MULTIPLES),
            ),
            Table(
                "14b: rates that the cluster could do, tuples a second, by phase of the reducer; the paper's text has "
                "none",
                ("", *(f"{each:g} s" for each in adapting.TIMES)),
                (("DSYNC, s", *settled), *(_row(name, pace) for name, pace in paces.items())),
            ),
            Table(
                f"14b: rates of a fixed interval, merging takes {adapting.BASE:g} s or no time, {adapting.ALONE:g} s",
                ("messages", "share of the time that partitioners wait", "tuples a second"),
                tuple(
                    (name, adapting.BASE * adapting.ISOLATED[name][2] / adapting.ISOLATED[name][0], found)
                    for name, found in isolated.items()
                ),
            ),
        ),
        lambda figure: _draw(figure, swept, adapted, adapting.PHASE[scale]),
    )


def alike(found: Mapping[float, Point]) -> str:
    """Whether being near the best says anything of an interval.

    >>> alike({1.0: Point(96.0, 1.0, 1.0), 10.0: Point(100.0, 1.0, 1.0)})
    'The lowest rate of all intervals is 0.960 times the highest, so that each of them is near the best.'
    """
    least = min(each.rate for each in found.values()) / max(each.rate for each in found.values())
    near = ", so that each of them is near the best" if least >= NEAR else ""
    return f"The lowest rate of all intervals is {least:.3f} times the highest{near}."


def _told_by() -> str:
    return ", ".join(f"{telling(interval):.2g} s every {interval:g} s" for interval in INTERVALS[:3])


def _dsync(interval: float) -> str:
    return "never" if interval == NEVER else f"{interval:g}"


def _relative(merging: float, rates: dict[tuple[str, float], list[float]], streams: Sequence[str]) -> tuple[Cell, ...]:
    cells: list[Cell] = [f"merging x {merging:g}"]
    for stream in streams:
        found = dict(zip(COMPARED, rates[stream, merging], strict=True))
        cells += [round(found[interval] / found[10.0], 2) for interval in COMPARED if interval != 10.0]
    return tuple(cells)


_COLUMNS = ("tuples a second", "max/avg", "fragments of the hottest key")


def _row(name: str, rates: Sequence[Measured]) -> tuple[Cell, ...]:
    return name, *rates


def _cells(points: Sequence[Point]) -> tuple[Cell, ...]:
    columns = ([getattr(each, name) for each in points] for name in ("rate", "imbalance", "fragments"))
    if len(points) == 1:
        rate, *rest = (column[0] for column in columns)
        return round(rate), *rest
    return tuple(Measured.of(column) for column in columns)


def _table(name: str, swept: Swept, streams: Sequence[str]) -> Table:
    return Table(
        f"14a: {name}",
        ("DSYNC, s", *(f"{stream}: {what}" for stream in streams for what in _COLUMNS)),
        tuple(
            (_dsync(interval), *(cell for stream in streams for cell in _cells(swept[name, stream][interval])))
            for interval in swept[name, streams[0]]
        ),
    )


def _mean(points: Sequence[Point]) -> Point:
    rate, imbalance, fragments = (
        sum(getattr(each, name) for each in points) / len(points) for name in ("rate", "imbalance", "fragments")
    )
    return Point(rate, imbalance, fragments)


def _seeds(
    setup: Setup, streams: Sequence[Mapping[str, tuple[Keys, Keys]]], stream: str, interval: float
) -> list[Point]:
    """What dalton sustains with the streams and the exploration of each seed."""
    found: list[Point] = []
    for seed, each in zip(SEEDS, streams, strict=True):
        start = found[0].rate if found else START
        team = partial(cooperation, setup, 2, interval, seed=seed)
        found.append(_point(setup, each[stream], "dalton", team, interval, start))
    return found


def _point(
    setup: Setup,
    sources: Sequence[Keys],
    name: str,
    team: Callable[[], Partitioners],
    interval: float,
    start: float = START,
) -> Point:
    rival = SEVERAL[PARAMETERS if name == PARAMETERS else "dalton"]

    def at(rate: float) -> Run:
        partitioners = apart(setup, rival, 2) if interval == NEVER else team()
        return together(setup, sources, rival, partitioners, rate, SECONDS, watch=(0,))

    return point(sustainable(at, start, SINCE, TOLERANCE), SINCE)


def _printed(points: Mapping[float, Sequence[Point]], valueless: Point) -> str:
    """What messages do with the paper's parameters, and which part of them does it."""
    ten, never = _mean(points[10.0]), _mean(points[NEVER])
    cause = "the common values" if 2 * valueless.rate > ten.rate + never.rate else "which keys are hot, and when,"
    return (
        f"With the paper's parameters, and a uniform and a Zipf source, the ratio is {never.rate / ten.rate:.2f}; with "
        f"messages about hot keys and load alone, and values of one's own, it is {never.rate / valueless.rate:.2f}, so "
        f"that it is {cause} that decide{'' if cause.endswith('values') else 's'}."
    )


def by_threshold(setup: Setup, sources: Sequence[Keys]) -> dict[str, tuple[float, float]]:
    """The busiest combiner over the average, and the fragments of the hottest key, with the paper's parameters.

    Partitioners that talk compare a key with a fair share of what all of them have, the others with one of their own
    tuples. So with two equal sources a threshold of 2 apart is as high as one of 1 together.
    """

    def own(threshold: float) -> Partitioners:
        rival = Rival(lambda n, slides: Dalton.as_printed(n, slide=None, slides=slides, hot_at=threshold))
        return apart(setup, rival, 2)

    def common(threshold: float) -> Partitioners:
        return cooperation(setup, 2, 10.0, options=PRINTED | {"hot_at": threshold})

    found = {}
    for name, team in zip(THRESHOLDS, (common(1.0), own(1.0), own(2.0), common(0.5)), strict=True):
        each = together(setup, sources, SEVERAL[PARAMETERS], team, START, SECONDS, watch=(0,))
        late = each.time > SINCE
        found[name] = float(each.max_over_avg[late].mean()), float(each.watched[late].mean())
    return found


def _unsplit(thresholds: Mapping[str, tuple[float, float]]) -> str:
    """Why common values do not help: the threshold of all leaves whole what is frequent in one source only."""
    both, own, twice, half = (thresholds[name][0] for name in THRESHOLDS)
    return (
        "Partitioners that talk have the paper's threshold, a worker's fair share of what all sources have. It leaves "
        f"whole what is frequent in one source only: at {START:,.0f} tuples a second the busiest combiner then has "
        f"{both:.3f} times the average. Apart, with a fair share of one's own tuples, it has {own:.3f} times, and with "
        f"twice that, which is as high as the threshold of both, {twice:.3f} times; together with half the threshold, "
        f"{half:.3f} times."
    )


def _sweep_checks(
    setup: Setup, stream: str, points: Mapping[float, Sequence[Point]], by_tell: Mapping[float, float], printed: str
) -> tuple[Check, ...]:
    every, ten, never = (_mean(points[interval]) for interval in COMPARED)
    nearest = max(points, key=lambda interval: _mean(points[interval]).rate)
    best = _mean(points[nearest])
    bound = 0.95
    routed, told = 2 / work(setup.slides).route, telling(1.0)
    return (
        Check(
            f"14a, {stream}: rate without messages over that with one every 10 s",
            never.rate / ten.rate,
            high=0.9,
            why="Partitioners that balance their own tuples also balance the sum: the busiest combiner has "
            f"{never.imbalance:.3f} times the average without messages and {ten.imbalance:.3f} with them. So silence "
            f"costs little but fragments, {never.fragments:.0f} of the hottest key instead of {ten.fragments:.0f}, and "
            f"with windows of 60 s by 20 s these cost little. {printed}",
        ),
        Check(
            f"14a, {stream}: rate with messages every 10 s over the best",
            ten.rate / best.rate,
            low=bound,
            why=f"The best is {'no message at all' if nearest == NEVER else f'a message every {nearest:g} s'}. What a "
            "partitioner knows of the others is as old as the last message. Where both have the same stream, both then "
            "send the same keys to the same workers until the next one: the busiest combiner has "
            f"{ten.imbalance:.3f} times the average with messages every 10 s, {best.imbalance:.3f} at the best, and "
            f"{never.imbalance:.3f} without messages.",
        ),
        Check(
            f"14a, {stream}: rate with messages every second over that with one every 10 s",
            every.rate / ten.rate,
            high=bound,
            why=f"A message every second takes {told:.2g} s of a partitioner, and in the rest of a second two of them "
            f"route {(1 - told) * routed:,.0f} tuples, which is not clearly less than what the combiners can do. "
            f"Messages every second would cost {1 - bound:.0%} only if one took at least "
            f"{1 - bound * ten.rate / routed:.2g} s. With half, once and twice the time that was measured the ratio is "
            f"{', '.join(f'{each:.3f}' for each in by_tell.values())}.",
        ),
    )


def _draw(figure: Any, swept: Swept, adapted: list[tuple[float, float]], phase: float) -> None:
    left, right = figure.subplots(1, 2)
    shown = {
        stream: [_mean(found[interval]).rate / 1000 for interval in INTERVALS]
        for (name, stream), found in swept.items()
        if name == "dalton"
    }
    ticks = range(len(INTERVALS))
    lines(left, ticks, shown, x="DSYNC, s", y="1,000 tuples a second", title="a: how often to synchronise")
    left.set_xticks(ticks, [_dsync(each) for each in INTERVALS])
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=6)
    right.step([0.0, *(at for at, _ in adapted)], [20.0, *(each for _, each in adapted)], where="post")
    for number, factor in enumerate((1, 2, 4, 1)):
        right.axvline(number * phase, color="grey", linewidth=0.6)
        right.text((number + 0.5) * phase, 44, f"{factor}x", ha="center")
    right.set_ylim(0, 48)
    right.set_xlabel("seconds")
    right.set_ylabel("DSYNC, s")
    right.set_title("b: DSYNC as the reducer takes 2x, 4x, 1x its time", fontsize=9)


FIGURE = Figure(
    "dalton-14",
    "How often partitioners synchronise",
    "With two partitioners, throughput is low if they never synchronise and best if they do so every 10 s, as more "
    "frequent messages cost more than they bring; and DSYNC goes from 10 to 20 and 40 s as the Q-table reducer takes "
    "twice and four times as long, and back to 10 s.",
    run,
)
