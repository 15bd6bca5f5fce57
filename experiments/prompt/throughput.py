"""The highest rate of a stream at which every micro-batch is processed within its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from experiments.figure import Tell
from experiments.prompt.rivals import PACKINGS, PROMPT, Planned, best_candidates, partitioner
from experiments.prompt.setting import AMPLITUDE, PERIOD, Setting
from skewless import split
from skewless.core.errors import SkewlessError
from skewless.simulate import EarlyRelease, Source, sine
from skewless.simulate.arrivals import Keys, Rate
from skewless.simulate.map_reduce import Partitioner, process

Shape = Callable[[float], float | Rate]
"""The rate over time with this mean."""

TOLERANCE = 0.02
MOST_RUNS = 30


def highest(demand_at: Callable[[float], float], start: float, tolerance: float = TOLERANCE) -> float:
    """The highest rate with a demand of at most 1, up to the tolerance.

    The thesis calls a rate sustained while the processing time of micro-batches stays within the interval.

    >>> round(highest(lambda rate: 0.1 + rate / 1000, start=100.0))
    895
    """
    rate, low, high, target = start, 0.0, float("inf"), 1 - tolerance / 4
    before: tuple[float, float] | None = None
    for _ in range(MOST_RUNS):
        demand = demand_at(rate)
        if demand <= 1:
            low = rate
        else:
            high = rate
        if high <= (1 + tolerance) * low or 1 - tolerance / 2 <= demand <= 1:
            return low
        guess = rate * target / demand
        if (
            before is not None and (demand - before[1]) * (rate - before[0]) > 0
        ):  # much of it may be the same at any rate
            guess = rate + (target - demand) * (rate - before[0]) / (demand - before[1])
        before, guess = (rate, demand), min(10 * rate, max(0.1 * rate, guess))
        rate = guess if low < guess < high else (low * high) ** 0.5 if low > 0 else high / 2
    raise SkewlessError(f"no rate was found in {MOST_RUNS} runs; the last was {rate:g} tuples a second")


def sustained(
    divides: Callable[[], Partitioner],
    early: bool,
    keys: Keys,
    setting: Setting,
    interval: float,
    amplitude: float = AMPLITUDE,
    tolerance: float = TOLERANCE,
    shape: Shape | None = None,
) -> float:
    """The mean rate that a technique sustains, of a sine with this amplitude, or constant if that is 0.

    A `shape` stands for another rate with the same period.

    `early` says whether micro-batches are released early. The first one, which is then shorter than the others, does
    not count, and the slack is what the runs before have learned.
    """
    if shape is None:
        shape = (lambda mean: sine(mean, amplitude * mean, PERIOD)) if amplitude else float
    seconds = PERIOD if amplitude else interval
    release = EarlyRelease(interval) if early else None

    def demand_at(rate: float) -> float:
        source = Source(keys, shape(rate))
        whole = seconds + interval if early else seconds
        done = process(source, divides(), setting.engine(interval), setting.costs, whole, release)
        return float(done.work[int(early) :].max() / interval)

    return highest(demand_at, setting.start, tolerance)


def candidates_of_cam(keys: Keys, setting: Setting, interval: float) -> int:
    """The candidates with which cAM is fastest on the first micro-batch, at the rate that a search tries first."""
    tuples = int(setting.start * interval)
    return best_candidates(next(iter(keys.blocks(tuples, tuples))), setting)


def sustained_all(
    names: Sequence[str],
    keys: Keys,
    setting: Setting,
    interval: float,
    tell: Tell,
    amplitude: float = AMPLITUDE,
    shape: Shape | None = None,
) -> dict[str, float]:
    """The rates of all of them."""
    candidates = candidates_of_cam(keys, setting, interval) if "cAM" in names else 2
    found: dict[str, float] = {}
    for name in names:
        tell(f"{name}, intervals of {interval:g} s")
        planned = name == PROMPT or name in PACKINGS
        divides = partial(partitioner, name, setting, candidates)
        found[name] = sustained(divides, planned, keys, setting, interval, amplitude, shape=shape)
    return found


def sustained_planning(a_key: float, keys: Keys, setting: Setting, interval: float) -> float:
    """The mean rate of a sine that Prompt sustains if its planning takes so many seconds for each key."""
    divides = partial(Planned, split.partition, setting, True, a_key)
    return sustained(divides, True, keys, setting, interval)
