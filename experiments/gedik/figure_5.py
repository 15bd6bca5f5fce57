"""Gedik, Figure 5: what the scaler of the frequency threshold does to balance and migration."""

from __future__ import annotations

from math import hypot

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import TRACKING, Sample, Setting, measure
from experiments.gedik.sweep import SIGMAS, Series, both, draw_both, mean_m, setup, sigmas

LOW = SIGMAS.index(0.008)
DEFAULT = SIGMAS.index(0.1)
MANY = 25  # runs of the jump alone
JUMP = 1.3


def run(scale: Scale, tell: Tell) -> Outcome:
    """Measure all algorithms over sigma, under LCL and LQL."""
    lcl, lql = (sigmas(letters, scale, tell) for letters in ("LCL", "LQL"))
    jumps = {
        window: {
            name: _jump(*(measure(name, _quadratic(sigma, window), MANY, tell) for sigma in (0.25, 0.5)))
            for name in TRACKING
        }
        for window in (Setting().window, None)
    }
    by_counters, by_truth = (min(jump.mean for jump in each.values()) for each in jumps.values())
    checks = (
        Check("imbalance at the lowest sigma over that at the highest, LCL, the most", _gain(lcl, LOW, -1), high=0.85),
        Check(
            "migration at the lowest sigma over that at the highest, LCL", mean_m(lcl, LOW) / mean_m(lcl, -1), low=1.2
        ),
        Check(
            "scan, redist and readj, the most that their imbalances differ, LCL",
            max(_spread(lcl, i) for i in range(len(SIGMAS))),
            high=1.06,
        ),
        Check(
            "imbalance of readj over the better of scan and redist at the default sigma, LCL",
            _readj(lcl, DEFAULT),
            high=1.0,
        ),
        Check(
            "imbalance of readj over the better of scan and redist at the lowest sigma, LCL",
            _readj(lcl, LOW),
            low=0.995,
        ),
        Check(
            "jump of the imbalance from sigma = 0.25 to 0.5, LQL, the least",
            min(lql[name][4].b.mean / lql[name][3].b.mean for name in TRACKING),
            low=JUMP,
            why="The paper calls the jump significant without a number, so that the bound is ours. Over "
            f"{MANY} runs the least of the three is {by_counters:.2f} by the counters and {by_truth:.2f} by the true "
            "frequencies (table): "
            f"{_cause(by_counters, by_truth)}.",
        ),
        Check(
            "imbalance at the lowest sigma over the default one, LQL over LCL",
            _gain(lql, LOW, DEFAULT) / _gain(lcl, LOW, DEFAULT),
            low=1.0,
            essential=False,
            why="A lower sigma helps the two combinations by the same share here. The paper gives no numbers; under "
            "LQL the most frequent item alone decides the imbalance, and that does not change with sigma.",
        ),
        Check(
            "migration of redist over scan, mean of all sigmas up to the default, LCL",
            _mean(lcl, "redist") / _mean(lcl, "scan"),
            high=1.0,
            essential=False,
            why="Scan and redist move about the same here: they choose by the same utility, and differ only in the "
            "order of the items. See gedik-6 on why scan's migration is lower here than in the paper.",
        ),
        Check(
            "migration of consistent hashing over the least of scan, redist and readj, the most, LCL",
            max(
                lcl["consistent"][i].m.mean / min(lcl[name][i].m.mean for name in TRACKING) for i in range(len(SIGMAS))
            ),
            high=1.1,
            essential=False,
            why="With a high sigma only a handful of items are tracked, those stay where they are, and what moves is "
            "less than the ideal; what consistent hashing moves depends on whether the most frequent items are among "
            "it.",
        ),
    )
    return Outcome(
        setup(scale, Scaled("threshold scaler sigma", "0.008 to 1", f"{SIGMAS[0]:g} to {SIGMAS[-1]:g}")),
        f"From sigma = 1 to 0.008 readj's b falls from {lcl['readj'][-1].b.mean:.2f} to {lcl['readj'][0].b.mean:.2f} "
        f"(LCL), and its m rises from {lcl['readj'][-1].m.mean:.2f} to {lcl['readj'][0].m.mean:.2f}.",
        checks,
        (
            *both("LCL", "sigma", SIGMAS, lcl),
            *both("LQL", "sigma", SIGMAS, lql),
            Table(
                f"Imbalance at sigma = 0.5 over 0.25, LQL, {MANY} runs",
                ("frequencies", *TRACKING),
                tuple(
                    ("true" if window is None else "from the counters", *each.values())
                    for window, each in jumps.items()
                ),
            ),
        ),
        draw_both({"LCL": (SIGMAS, lcl), "LQL": (SIGMAS, lql)}, "sigma", log=True),
    )


def _quadratic(sigma: float, window: int | None) -> Setting:
    return Setting(letters="LQL", sigma=sigma, window=window)


def _jump(low: Sample, high: Sample) -> Measured:
    """The mean of the imbalances at the higher sigma over that at the lower one, with the errors of both."""
    ratio = high.b.mean / low.b.mean
    return Measured(ratio, ratio * hypot(low.b.error / low.b.mean, high.b.error / high.b.mean))


def _cause(by_counters: float, by_truth: float) -> str:
    if by_counters >= JUMP:
        return "few runs miss it by chance"
    return (
        "it is the counters that make it smaller" if by_truth >= JUMP else "neither chance nor the counters explain it"
    )


def _gain(series: Series, at: int, over: int) -> float:
    return max(series[name][at].b.mean / series[name][over].b.mean for name in TRACKING)


def _spread(series: Series, at: int) -> float:
    found = [series[name][at].b.mean for name in TRACKING]
    return max(found) / min(found)


def _readj(series: Series, at: int) -> float:
    return series["readj"][at].b.mean / min(series[name][at].b.mean for name in TRACKING[:2])


def _mean(series: Series, name: str) -> float:
    return sum(sample.m.mean for sample in series[name][: DEFAULT + 1]) / (DEFAULT + 1)


FIGURE = Figure(
    "gedik-5",
    "Frequency threshold scaler",
    "A lower sigma brings a lower imbalance and a higher migration; the three algorithms are alike, readj slightly "
    "better in the middle and not at very low sigma; under LQL the imbalance jumps between 0.25 and 0.5.",
    run,
)
