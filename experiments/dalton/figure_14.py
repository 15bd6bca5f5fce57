"""Dalton, Figure 14: how often partitioners should tell each other, and how the interval follows the reducer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.costs import MULTIPLES, said
from experiments.dalton.rivals import RIVALS
from experiments.dalton.team import PRINTED, TELL, WORK, Alternating, apart, cooperation
from experiments.dalton.word_count import THIRDS, TOLERANCE, Setup, capacity, together
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import lines
from skewless.simulate import Partitioners, Run, sustainable
from skewless.simulate.arrivals import Keys
from skewless.workload import Zipf

THREADS = 64
FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1 / 4}
PHASE: dict[Scale, float] = {"small": 500.0, "full": 5000.0}
PHASE_FRACTION = 1 / 32
KEYS, EXPONENT = 100_000, 1.5
SECONDS, SINCE, START = 300.0, 180.0, 200_000.0
NEVER = float("inf")
INTERVALS = (1.0, 5.0, 10.0, 20.0, 40.0, NEVER)
COMPARED = (1.0, 10.0, NEVER)  # with other costs
BASE = 7.0  # seconds that the Q-table reducer takes in 14b: an interval of 10 s is the shortest that is long enough
EXPECTED = (10.0, 20.0, 40.0, 10.0)


SHARED = "dalton, loads shared"


@dataclass(frozen=True)
class Point:
    """A rate that is sustained, and how tuples were spread at that rate."""

    rate: float
    imbalance: float
    fragments: float


def run(scale: Scale, tell: Tell) -> Outcome:
    """Sweep DSYNC for two kinds of sources, then let the reducer become slower and fast again."""
    setup = Setup(THREADS, FRACTION[scale], THIRDS)
    keys = round(KEYS * setup.fraction)
    uniform, skewed = (Zipf(0.0, keys, seed=1), Zipf(0.0, keys, seed=2)), (Zipf(EXPONENT, keys, seed=3),) * 2
    streams: dict[str, tuple[Keys, Keys]] = {
        "one uniform, one Zipf": (uniform[0], skewed[0]),
        "both the same": (Alternating(uniform[0], skewed[0]), Alternating(uniform[1], Zipf(EXPONENT, keys, seed=4))),
    }
    teams: dict[str, Callable[[float], Partitioners]] = {
        "dalton": lambda interval: cooperation(setup, 2, interval),
        SHARED: lambda interval: cooperation(setup, 2, interval, merge="shared"),
        "dalton as printed": lambda interval: cooperation(setup, 2, interval, options=PRINTED),
    }
    swept: dict[tuple[str, str], list[Point]] = {}
    for stream, sources in streams.items():
        for name, team in teams.items():
            tell(f"14a: {name}, {stream}")
            swept[name, stream] = [_point(setup, sources, name, team, interval) for interval in INTERVALS]
    adapted, settled, paces = _adapting(scale, tell)
    at_ten = INTERVALS.index(10.0)
    by_costs: dict[tuple[str, float], list[float]] = {}
    for stream, sources in streams.items():
        for merging in MULTIPLES:
            tell(f"14a: {stream}, merging x {merging:g}")
            known = [swept["dalton", stream][INTERVALS.index(interval)] for interval in COMPARED]
            other = replace(setup, merging=merging)
            by_costs[stream, merging] = [
                point.rate
                if merging == 1
                else _point(other, sources, "dalton", teams["dalton"], interval, point.rate).rate
                for interval, point in zip(COMPARED, known, strict=True)
            ]
    checks = tuple(
        check
        for stream in streams
        for check in _sweep_checks(stream, swept["dalton", stream], swept["dalton as printed", stream], at_ten)
    )
    checks += tuple(
        Check(f"14b: DSYNC, phase {number + 1}", found, low=expected, high=expected)
        for number, (found, expected) in enumerate(zip(settled, EXPECTED, strict=True))
    )
    checks += (
        Check(
            "14b: rate with the adaptive interval over that with 10 s, while the reducer takes 4 times as long",
            paces["adaptive"][2] / paces["fixed, 10 s"][2],
            low=1.0,
        ),
    )
    one = swept["dalton", "one uniform, one Zipf"]
    return Outcome(
        (
            Scaled("servers", "64 threads", f"{THREADS}: 56 combiners, 8 reducers"),
            Scaled("windows", "60 s by 20 s", "60 s by 20 s"),
            Scaled(
                "keys, rate",
                "100,000 to 1,000,000, not said",
                f"{keys:,}: {setup.fraction:g} of 100,000, and of the rate",
            ),
            Scaled("time at a rate (14a)", "not said", f"{SECONDS:g} s, the last {SECONDS - SINCE:g} s counted"),
            Scaled(
                "a phase of the reducer (14b)",
                "5,000 s",
                f"{PHASE[scale]:g} s, {PHASE_FRACTION:g} of the keys and rate",
            ),
            Scaled(
                "time of the reducer",
                "not said",
                f"{WORK:g} s (14a); {BASE:g}, {2 * BASE:g}, {4 * BASE:g}, {BASE:g} s (14b)",
            ),
            Scaled("time of a partitioner for a message", "not said", f"{TELL:g} s, chosen"),
            Scaled("costs", "not said", said()),
        ),
        f"With a uniform and a Zipf source, messages every 10 s sustain {one[at_ten].rate:,.0f} tuples a second, every "
        f"second {one[0].rate:,.0f}, and none {one[-1].rate:,.0f}. DSYNC settles at "
        f"{', '.join(f'{each:g}' for each in settled)} s as merging takes {BASE:g}, {2 * BASE:g}, {4 * BASE:g} and "
        f"{BASE:g} s.",
        checks,
        (
            *(
                Table(
                    f"14a: {name}",
                    ("DSYNC, s", *(f"{stream}: {what}" for stream in streams for what in _COLUMNS)),
                    tuple(
                        (
                            _dsync(interval),
                            *(cell for stream in streams for cell in _cells(swept[name, stream][i])),
                        )
                        for i, interval in enumerate(INTERVALS)
                    ),
                )
                for name in teams
            ),
            Table(
                "14a: dalton's rate over that with messages every 10 s, by the costs of merging",
                ("", *(f"{stream}: {_dsync(each)}" for stream in streams for each in COMPARED if each != 10.0)),
                tuple(_relative(merging, by_costs, list(streams)) for merging in MULTIPLES),
            ),
            Table(
                "14b: rates that the cluster could do, tuples a second, by phase of the reducer",
                ("", *(f"{BASE * factor:g} s" for factor in (1, 2, 4, 1))),
                (("DSYNC, s", *settled), *(_row(name, pace) for name, pace in paces.items())),
            ),
        ),
        lambda figure: _draw(figure, swept, adapted, PHASE[scale]),
    )


def _dsync(interval: float) -> str:
    return "never" if interval == NEVER else f"{interval:g}"


def _relative(merging: float, rates: dict[tuple[str, float], list[float]], streams: Sequence[str]) -> tuple[Cell, ...]:
    cells: list[Cell] = [f"merging x {merging:g}"]
    for stream in streams:
        found = dict(zip(COMPARED, rates[stream, merging], strict=True))
        cells += [round(found[interval] / found[10.0], 2) for interval in COMPARED if interval != 10.0]
    return tuple(cells)


_COLUMNS = ("tuples a second", "max/avg", "fragments of the hottest key")


def _row(name: str, rates: Sequence[float]) -> tuple[Cell, ...]:
    return name, *(round(rate) for rate in rates)


def _cells(point: Point) -> tuple[int, float, float]:
    return round(point.rate), point.imbalance, point.fragments


def _point(
    setup: Setup,
    sources: Sequence[Keys],
    name: str,
    team: Callable[[float], Partitioners],
    interval: float,
    start: float = START,
) -> Point:
    rival = RIVALS["dalton as printed" if name == "dalton as printed" else "dalton"]

    def at(rate: float) -> Run:
        partitioners = apart(setup, rival, 2) if interval == NEVER else team(interval)
        return together(setup, sources, rival, partitioners, rate, SECONDS, watch=(0,))

    found = sustainable(at, start, SINCE, TOLERANCE)
    late = found.run.time > SINCE
    return Point(found.rate, float(found.run.max_over_avg[late].mean()), float(found.run.watched[late].mean()))


def _sweep_checks(stream: str, points: Sequence[Point], printed: Sequence[Point], at_ten: int) -> tuple[Check, ...]:
    ten, never, best = points[at_ten], points[-1], max(points, key=lambda point: point.rate)
    herd = (
        "What a partitioner knows of the others is as old as the last message. Where both have the same stream, both "
        "then send the same keys to the same workers until the next one: the busiest combiner has "
        f"{points[0].imbalance:.3f} times the average with messages every second, {ten.imbalance:.3f} with one every "
        f"10 s, and {never.imbalance:.3f} without any."
    )
    return (
        Check(
            f"14a, {stream}: rate without messages over that with one every 10 s",
            never.rate / ten.rate,
            high=0.9,
            why="Partitioners that balance their own tuples also balance the sum: the busiest combiner has "
            f"{never.imbalance:.3f} times the average without messages and {ten.imbalance:.3f} with them. So silence "
            f"costs little but fragments, {never.fragments:.0f} of the hottest key instead of {ten.fragments:.0f}, and "
            "with windows of 60 s by 20 s these cost little. With the paper's parameters the same ratio is "
            f"{printed[-1].rate / printed[at_ten].rate:.2f}.",
        ),
        Check(f"14a, {stream}: rate with messages every 10 s over the best", ten.rate / best.rate, low=0.95, why=herd),
        Check(
            f"14a, {stream}: rate with messages every second over that with one every 10 s",
            points[0].rate / ten.rate,
            high=0.95,
            why=herd,
        ),
    )


def _adapting(scale: Scale, tell: Tell) -> tuple[list[tuple[float, float]], list[float], dict[str, list[float]]]:
    """The intervals over time; where they settle; and the rate of each phase for the adaptive and fixed intervals."""
    setup, phase = Setup(THREADS, PHASE_FRACTION, THIRDS), PHASE[scale]
    keys = round(KEYS * setup.fraction)
    sources = (Zipf(0.0, keys, seed=1), Zipf(EXPONENT, keys, seed=3))

    def work(at: float) -> float:
        return BASE * (1, 2, 4, 1)[min(3, int(at // phase))]

    paces, adapted = {}, []
    for name, interval, adaptive in (
        ("adaptive", 20.0, True),
        ("fixed, 10 s", 10.0, False),
        ("fixed, 20 s", 20.0, False),
    ):
        tell(f"14b: {name}")
        team = cooperation(setup, 2, interval, adaptive=adaptive, work=work)
        found = together(setup, sources, RIVALS["dalton"], team, START / 2, 4 * phase)
        paces[name] = [
            capacity(found, setup.fraction, number * phase + SINCE, (number + 1) * phase) for number in range(4)
        ]
        if adaptive:
            adapted = [(at, interval) for at, _query, interval in team.intervals]
    settled = [[each for at, each in adapted if at <= (number + 1) * phase][-1] for number in range(4)]
    return adapted, settled, paces


def _draw(
    figure: Any, swept: dict[tuple[str, str], list[Point]], adapted: list[tuple[float, float]], phase: float
) -> None:
    left, right = figure.subplots(1, 2)
    shown = {f"{name}, {stream}": [point.rate / 1000 for point in points] for (name, stream), points in swept.items()}
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
