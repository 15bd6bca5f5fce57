"""Gedik, Figure 3: what the resource functions do to balance and migration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from experiments.figure import Cell, Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import HASHES, NAMES, RUNS, TRACKING, Sample, Setting, alone, measure, measure_all, steps
from experiments.gedik.sweep import earlier, setup
from experiments.picture import legend

LETTERS = ("CCL", "LCL", "LLL", "LQL")
MANY = 100  # runs of the two hashes alone, to see past luck
AROUND = (8, 9, 10, 11, 12)  # channels
NO_LIMIT = 1_000_000
PAPER = (("b", "1.55", "1.75", "1.32", "1.32", "1.2"), ("m", "above 8", "best", "1.23", "1.23", "1.34"))
"""What the text of the paper says of each algorithm under LLL, in the order of `NAMES`."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """Measure all algorithms under four combinations of resource functions."""
    found = {letters: measure_all(NAMES, Setting(letters=letters), RUNS[scale], tell) for letters in LETTERS}
    hashes = {name: measure(name, Setting(letters="LLL"), MANY, tell) for name in HASHES}
    on_the_way = {name: steps(name, Setting(), RUNS[scale], tell) for name in NAMES}
    kinds = {
        "from the counters": Setting(),
        "true": Setting(window=None),
        "true, and no limit to the moves of an item": Setting(window=None, most_moves=NO_LIMIT),
    }
    over = {
        kind: [_over(replace(setting, channels=n), RUNS[scale], tell) for n in AROUND]
        for kind, setting in kinds.items()
    }
    counted, true, free = (_in_words(ratios) for ratios in over.values())
    inner, level = (
        {name: alone(name, Setting(letters="LLL"), RUNS[scale], tell, evenly) for name in TRACKING}
        for evenly in (False, True)
    )
    lll, lql = found["LLL"], found["LQL"]
    luck = hashes["consistent"].b.mean / hashes["uniform"].b.mean
    slack = (hashes["consistent"].b.error + hashes["uniform"].b.error) / hashes["uniform"].b.mean
    checks = (
        Check("migration of uniform hashing, the least", min(each["uniform"].m.mean for each in found.values()), low=8),
        Check(
            "imbalance of readj over the best of the others, the most",
            max(each["readj"].b.mean / min(each[name].b.mean for name in NAMES[:-1]) for each in found.values()),
            high=1.0,
        ),
        Check(
            "imbalance of the better hash over the worst of scan, redist and readj, the least of LCL, LLL and LQL",
            min(_best(found[each], HASHES) / _worst(found[each], TRACKING) for each in LETTERS[1:]),
            low=1.1,
        ),
        Check(
            "scan and redist, the most that their imbalances differ",
            max(abs(each["scan"].b.mean / each["redist"].b.mean - 1) for each in found.values()),
            high=0.02,
        ),
        Check(
            "computation imbalance of scan, redist and readj under LQL, the most",
            max(lql[name].resources[1].mean for name in TRACKING),
            low=30,
            high=40,
        ),
        Check("computation imbalance of consistent hashing under LQL", lql["consistent"].resources[1].mean, low=100),
        Check(
            "migration of consistent hashing over the least of scan, redist and readj, the most",
            max(each["consistent"].m.mean / min(each[name].m.mean for name in TRACKING) for each in found.values()),
            high=1.1,
        ),
        Check(
            f"imbalance of consistent over uniform hashing, LLL, {MANY} runs",
            luck,
            low=1.05,
            essential=False,
            why=f"The paper has 1.75 against 1.55. Over {MANY} runs the ratio here is {luck:.2f} with an error of "
            f"{slack:.2f}. Under both hashes the imbalance is that of the channel on which chance puts the most "
            "frequent item, 7 % of all rows, so that the means of five runs differ by more than the hashes do.",
        ),
        Check(
            "imbalance of readj, LLL",
            lll["readj"].b.mean,
            low=1.1,
            high=1.3,
            essential=False,
            why=f"The paper has 1.2, and 1.32 for redist and scan. Here readj has {lll['readj'].b.mean:.2f}. The "
            "difference comes with the ring: the algorithms do not know how unevenly it spreads the other items. If "
            f"every channel had as much of these, b would be {level['readj'].mean:.2f} for readj and "
            f"{level['redist'].mean:.2f} for redist (table). The paper's ring has 1000 points for each channel, as "
            "ours has; whether it spreads them more evenly is not known.",
        ),
        Check(
            "imbalance of redist over readj, LLL",
            lll["redist"].b.mean / lll["readj"].b.mean,
            low=1.05,
            high=1.15,
            essential=False,
            why="The paper has 1.1. Here the distance is smaller. Of the tracked items alone "
            f"(table) redist has b = {inner['redist'].mean:.2f} and readj {inner['readj'].mean:.2f}. The others "
            "are 70 % of all rows, neither algorithm counts them, and both have them on the same ring. If every "
            f"channel had as much of these, the ratio would be {level['redist'].mean / level['readj'].mean:.2f}.",
        ),
        Check(
            "migration of readj over redist, LLL",
            lll["readj"].m.mean / lll["redist"].m.mean,
            low=1.0,
            high=1.2,
            essential=False,
            why=f"The paper has 1.34 against 1.23. Here readj moves {_plus_minus(lll['readj'])} and redist "
            f"{_plus_minus(lll['redist'])}. Which of them moves more goes with the channels (table): from N = "
            f"{AROUND[0]} to {AROUND[-1]} the ratio is {counted} by the counters, {true} by the true frequencies, and "
            f"{free} if readj may move an item any number of times.",
        ),
    )
    return Outcome(
        setup(scale, Scaled("resource functions", ", ".join(LETTERS), ", ".join(LETTERS))),
        f"Under LLL readj has b = {lll['readj'].b.mean:.2f}, redist {lll['redist'].b.mean:.2f}, consistent hashing "
        f"{lll['consistent'].b.mean:.2f}; uniform hashing moves {lll['uniform'].m.mean:.1f} times the ideal.",
        checks,
        (
            _table("Relative imbalance b", found, 0),
            _table("Relative migration m", found, 1),
            Table(
                "Relative imbalance of state, computation and communication",
                ("resources", *NAMES),
                tuple((letters, *(_parts(each[name]) for name in NAMES)) for letters, each in found.items()),
            ),
            *earlier("Every step of growth, LCL", on_the_way, range(2, Setting().channels + 1)),
            Table("LLL, the paper and here", ("", *NAMES), tuple(_beside_the_paper(lll))),
            Table(
                "Relative imbalance b of the tracked items, LLL",
                ("the other items", *inner),
                (("left out", *inner.values()), ("evenly on all channels", *level.values())),
            ),
            Table(
                "Migration of readj over redist by the channels N, LCL",
                ("frequencies", *(f"N = {n}" for n in AROUND)),
                tuple((kind, *ratios) for kind, ratios in over.items()),
            ),
            Table(f"The hashes over {MANY} runs, LLL, b", HASHES, (tuple(hashes[name].b for name in HASHES),)),
        ),
        lambda figure: _draw(figure, found),
    )


def _beside_the_paper(lll: dict[str, Sample]) -> Iterator[tuple[Cell, ...]]:
    for what, *paper in PAPER:
        yield (f"{what}, the paper", *paper)
        yield (f"{what}, here", *(getattr(lll[name], what) for name in NAMES))


def _over(setting: Setting, runs: int, tell: Tell) -> Measured:
    """The migration of readj over that of redist, run by run."""
    readj, redist = (measure(name, setting, runs, tell).runs for name in ("readj", "redist"))
    return Measured.of([a.migration / b.migration for a, b in zip(readj, redist, strict=True)])


def _in_words(ratios: list[Measured]) -> str:
    return ", ".join(f"{ratio.mean:.2f}" for ratio in ratios)


def _plus_minus(sample: Sample) -> str:
    return f"{sample.m.mean:.2f} ± {sample.m.error:.2f}"


def _best(samples: dict[str, Sample], names: tuple[str, ...]) -> float:
    return min(samples[name].b.mean for name in names)


def _worst(samples: dict[str, Sample], names: tuple[str, ...]) -> float:
    return max(samples[name].b.mean for name in names)


def _parts(sample: Sample) -> str:
    return ", ".join(f"{part.mean:.2f}" for part in sample.resources)


def _table(title: str, found: dict[str, dict[str, Sample]], which: int) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (letters, *((each[name].b, each[name].m)[which] for name in NAMES)) for letters, each in found.items()
    )
    return Table(title, ("resources", *NAMES), rows)


def _draw(figure: Any, found: dict[str, dict[str, Sample]]) -> None:
    left, right = figure.subplots(1, 2)
    for axes, which, title in ((left, 0, "relative imbalance b"), (right, 1, "relative migration m")):
        for number, name in enumerate(NAMES):
            cells = [(each[name].b, each[name].m)[which] for each in found.values()]
            places = [at + 0.16 * (number - 2) for at in range(len(LETTERS))]
            axes.bar(places, [c.mean for c in cells], 0.15, yerr=[c.error for c in cells], label=name, capsize=1.5)
        axes.set_xticks(range(len(LETTERS)), LETTERS)
        axes.set_yscale("log")
        axes.set_title(title, fontsize=9)
        axes.axhline(1.0, color="0.5", linewidth=0.8)
    legend(figure, left)


FIGURE = Figure(
    "gedik-3",
    "Resource functions",
    "Readj has the lowest imbalance under all resource functions, redist and scan are alike and about 10 % above it, "
    "consistent hashing has the worst balance and the least migration, and uniform hashing moves more than 8 times the "
    "ideal.",
    run,
)
