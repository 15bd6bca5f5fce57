"""One parameter of Table 1 varied, all else at its default: what Gedik's figures share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from experiments.figure import Measured, Scale, Scaled, Table, Tell
from experiments.gedik.grow import NAMES, RUNS, TRACKING, WINDOW, Sample, Setting, measure_all
from experiments.picture import legend, lines

SKEWS = {"LCL": (0.1, 0.4, 0.6, 0.8, 0.9, 1.0), "LLL": (0.1, 0.4, 0.6, 0.8, 0.9, 1.0), "LQL": (0.25, 0.35, 0.5)}
SIGMAS = (0.008, 0.03, 0.1, 0.25, 0.5, 1.0)
CHANNELS = (2, 4, 8, 12, 16, 20, 24, 28, 32)

Series = dict[str, list[Sample]]
"""By algorithm, a sample for each value of the parameter."""


def sweep(settings: Sequence[Setting], scale: Scale, tell: Tell, names: Sequence[str] = NAMES) -> Series:
    """Measure every algorithm in every setting."""
    found = [measure_all(names, setting, RUNS[scale], tell) for setting in settings]
    return {name: [samples[name] for samples in found] for name in names}


def skews(letters: str, scale: Scale, tell: Tell) -> Series:
    """Over Zipf exponents (Figures 4, 10 and 14)."""
    return sweep([Setting(letters=letters, z=z) for z in SKEWS[letters]], scale, tell)


def sigmas(letters: str, scale: Scale, tell: Tell) -> Series:
    """Over the scaler of the frequency threshold (Figures 5, 9 and 12)."""
    return sweep([Setting(letters=letters, sigma=sigma) for sigma in SIGMAS], scale, tell)


def channels(scale: Scale, tell: Tell) -> Series:
    """Over the number of channels (Figures 6, 11 and 13)."""
    return sweep([Setting(channels=n) for n in CHANNELS], scale, tell)


def setup(scale: Scale, *more: Scaled) -> tuple[Scaled, ...]:
    """The defaults of Table 1, and what a figure varies."""
    return (
        Scaled("runs", "5", str(RUNS[scale])),
        Scaled("items in the domain", "1,000,000", "1,000,000"),
        Scaled("channels N, grown one at a time", "10", "10"),
        Scaled("tolerance alpha, threshold scaler sigma, utility", "1.2, 0.1, APM", "1.2, 0.1, APM"),
        Scaled("frequencies", "from three lossy counters", "from three lossy counters, z = 1 unless varied"),
        Scaled("rows of a lossy counter, W to 1.5 W", "not said", f"W = {WINDOW:,}, 0.75 W between two steps"),
        *more,
    )


def both(title: str, label: str, values: Iterable[object], series: Series) -> tuple[Table, Table]:
    """Tables of imbalance and of migration."""
    labels = [str(value) for value in values]
    return (
        Table(f"{title}, relative imbalance b", (label, *series), _rows(labels, series, lambda sample: sample.b)),
        Table(f"{title}, relative migration m", (label, *series), _rows(labels, series, lambda sample: sample.m)),
    )


def earlier(title: str, grown: Series, at: Sequence[int]) -> tuple[Table, Table]:
    """Tables of the steps of growth before the last: `grown` has one for each number of channels from 2 on."""
    some = {name: [samples[n - 2] for n in at] for name, samples in grown.items()}
    return both(title, "N", at, some)


def _rows(
    labels: Sequence[str], series: Series, cell: Callable[[Sample], Measured]
) -> tuple[tuple[str | Measured, ...], ...]:
    return tuple((label, *(cell(series[name][i]) for name in series)) for i, label in enumerate(labels))


def draw_both(parts: Mapping[str, tuple[Sequence[float], Series]], x: str, log: bool = False) -> Callable[[Any], None]:
    """Plots of imbalance, and below them of migration without uniform hashing, which is far above."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(7.2, 4.2)
        grid = figure.subplots(2, len(parts), squeeze=False)
        for column, (title, (xs, series)) in enumerate(parts.items()):
            b = {name: [sample.b for sample in samples] for name, samples in series.items()}
            m = {name: [sample.m for sample in samples] for name, samples in series.items() if name != "uniform"}
            lines(grid[0, column], xs, b, x="", y="imbalance b" if column == 0 else "", title=title)
            lines(grid[1, column], xs, m, x=x, y="migration m (not uniform)" if column == 0 else "", first=1)
            for axes in grid[:, column]:
                axes.axhline(1.0, color="0.5", linewidth=0.8)
                if log:
                    axes.set_xscale("log")
        legend(figure, grid[0, 0])

    return draw


def crossing(xs: Sequence[float], samples: Sequence[Sample], level: float = 1.0) -> float:
    """The value from which the imbalance is above a level, between two that were measured; infinite if it never is."""
    bs = [sample.b.mean for sample in samples]
    for i, b in enumerate(bs):
        if b > level:
            return xs[i] if i == 0 else xs[i - 1] + (xs[i] - xs[i - 1]) * (level - bs[i - 1]) / (b - bs[i - 1])
    return float("inf")


def mean_m(series: Series, at: int, names: Sequence[str] = TRACKING) -> float:
    """The migration of several algorithms at one value, on average."""
    return sum(series[name][at].m.mean for name in names) / len(names)
