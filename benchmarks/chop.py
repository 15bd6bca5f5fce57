"""Functions of whole windows: what a worker costs, how it scales, which batch size is best, and what order costs.

Claims tested (Balkesen and Tatbul): panes scale with the workers, large batches nearly so, single windows hardly; a
batch size chosen from measured costs is near the best; order costs latency. Their Figures 6 and 7, with the costs that
the paper's own points imply, are in `experiments/sliding`.

The costs of a worker are measured here, on one core, over Linear Road reports; the cluster is simulated
(`experiments.sliding.tasks`), with these costs and with those of the paper.

What measuring taught: by an exact count of window updates a larger batch never does worse: all that it costs is time.

`python -m benchmarks.chop` prints the tables; `make bench-chop` writes them to docs/results/chop.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pandas as pd

from experiments.sliding.model import PAPER, PAPER_SLIDE, PaperModel
from experiments.sliding.partition import ByBatch, ByWindow
from experiments.sliding.ring import Ring
from experiments.sliding.split import ROAD, partitioners, speeds
from experiments.sliding.tasks import Run, run, run_ring, sustained
from skewless.chop import CostEstimator, Costs, Merger, Result, Tuner, choose, disorder
from skewless.core.arrays import Float, FloatArray, Int, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.workload.linear_road import Reports

ROWS = 1_000_000
REPEATS = 25
WORKERS = (2, 4, 8, 16)
BATCHES = (2, 10, 33, 50)
SWEEP = range(1, 513)
HEADROOM = 0.1


def main() -> None:
    """Print the tables."""
    print("\n".join(table()))


def table() -> list[str]:
    """All of it, as lines of a page."""
    reports = ROAD.take(ROWS)
    compiled, merge, pandas = measured_costs(reports)
    split = speeds(reports, partitioners(100, BATCHES), REPEATS, lambda _doing: None)
    return [
        "What the split costs, and how the partitioners scale with the costs that the paper's own points imply, are",
        "[sliding-6](../figures/sliding.md#sliding-6) and [sliding-7](../figures/sliding.md#sliding-7), made by "
        "`make figures`.",
        "",
        "## Costs of a worker",
        "",
        "Nanoseconds, by least squares over batches of different sizes: count, min, max and mean of the speed in each",
        "of 600 segments. The paper's follow from its Figure 7.",
        "",
        "| | update a window | open and close it | other, a row |",
        "|---|---|---|---|",
        *(
            f"| {name} | {costs.update * 1e9:,.1f} | {costs.open_close * 1e9:,.0f} | {costs.other * 1e9:,.1f} |"
            for name, costs in (("the paper's", PAPER), ("compiled, here", compiled), ("pandas, here", pandas))
        ),
        "",
        *scale_up(compiled, merge, split),
        "",
        *tuning(
            {
                "the paper's": (PAPER, PAPER_SLIDE, 0.2),
                "compiled, here": (compiled, 1000, 0.02),
                "pandas, here": (pandas, 100, 0.05),
            }
        ),
        "",
        *ring(),
        "",
        *order(),
    ]


def measured_costs(reports: Reports) -> tuple[Costs, float, Costs]:
    """Of a compiled worker, of merging a pane's result there, and of a worker that calls pandas for each window."""
    keys, values = reports.key, reports.speed.astype(np.float64)
    compiled, pandas = CostEstimator(memory=1.0), CostEstimator(memory=1.0)
    states = np.empty((4, 64, 600))
    for size in (5_000, 20_000, 80_000):
        for batch in (1, 2, 8, 32):
            rows, slide = size + (batch - 1) * size // 10, size // 10
            used = keys[:rows], values[:rows]
            seconds = min(_timed(_update, *used, size, slide, batch, states) for _ in range(REPEATS))
            compiled.add(batch * size, batch, rows, seconds)
            if batch <= 8:
                pandas.add(
                    batch * size, batch, rows, min(_timed(_in_pandas, *used, size, slide, batch) for _ in range(3))
                )
    many = 1000
    merge = min(_timed(_merge, states, many) for _ in range(REPEATS)) / many
    return compiled.costs, merge, pandas.costs


def scale_up(costs: Costs, merge: float, split: dict[str, float]) -> Iterator[str]:
    """Rows a second against workers, at w/s = 100, as in Figure 7, but with the costs measured here."""
    slide = 1000
    yield "## Scale-up at w/s = 100: compiled, costs measured here"
    yield ""
    yield f"Rows/s of a simulated cluster, slide {slide} rows; where the split of one core is the limit, it says so."
    yield ""
    yield "| workers | window | " + " | ".join(f"batch {batch}" for batch in BATCHES) + " | pane |"
    yield "|" + "---|" * (len(BATCHES) + 3)
    size = 100 * slide
    # One worker needs no copies: it updates a hundred windows with each row.
    whole = slide / costs.of(size, 1, slide)
    yield (
        f"| 1 | {whole:,.0f}" + " | " * (len(BATCHES) + 1) + _limited(_ring_speed(size, slide, 1, costs, merge)) + " |"
    )
    for workers in WORKERS:
        found = {
            f"batch {batch}": run(ByBatch(size, slide, batch, rows=True), costs, workers, tasks=40 * workers).throughput
            for batch in (1, *BATCHES)
        }
        found = {"window": found.pop("batch 1"), **found, "pane": _ring_speed(size, slide, workers, costs, merge)}
        cells = [_limited(speed, split[name]) for name, speed in found.items()]
        yield f"| {workers} | " + " | ".join(cells) + " |"


def tuning(mixes: dict[str, tuple[Costs, int, float]]) -> Iterator[str]:
    """What the tuner chooses against every size tried out."""
    workers = 4
    yield "## The batch size"
    yield ""
    yield f"w/s = 100, {workers} workers, headroom {HEADROOM}. Rows/s are what the simulated cluster sustains with"
    yield f"every result in time: for the best B to {SWEEP[-1]}, for the tuner's, which starts at B = 1 and measures"
    yield "costs with 5 % noise, for the choice by the paper's count of updates, and for single windows."
    yield ""
    yield "| costs | slide | bound, s | best B | rows/s | tuner | rows/s | of best | paper | rows/s | B = 1, rows/s |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, (costs, slide, bound) in mixes.items():
        size = 100 * slide
        swept = {batch: _sustained(costs, size, slide, workers, batch, bound) for batch in SWEEP}
        best = max(swept, key=lambda batch: swept[batch])
        tuner = Tuner(size, slide, workers, bound, period=1.0, headroom=HEADROOM)
        _let_run(tuner, costs, 0.9 * swept[best])
        chosen = _sustained(costs, size, slide, workers, tuner.batch, bound)
        counted = PaperModel(size, slide, 0.9 * swept[best], workers, costs, HEADROOM)
        theirs = choose(counted, bound, period=1.0).batch
        yield (
            f"| {name} | {slide} | {bound:g} | {best} | {swept[best]:,.0f} | {tuner.batch} | {chosen:,.0f} "
            f"| {chosen / swept[best]:.0%} | {theirs} "
            f"| {_sustained(costs, size, slide, workers, theirs, bound):,.0f} | {swept[1]:,.0f} |"
        )


def ring() -> Iterator[str]:
    """Pane results sent between workers, with the ring and without."""
    yield "## Pane results sent, for each window"
    yield ""
    yield "| w, s | workers | windows in a run | in the ring | to every owner |"
    yield "|---|---|---|---|---|"
    for size, slide in ((6, 4), (60, 1), (100, 1), (60, 25)):
        for workers in (4, 16):
            panes = Ring(size, slide, workers)
            windows = range(100 * panes.run * workers)
            sent = [each / len(windows) for each in (panes.messages(windows), panes.messages_without_ring(windows))]
            yield f"| {size}, {slide} | {workers} | {panes.run} | {sent[0]:.2f} | {sent[1]:.2f} |"


def order() -> Iterator[str]:
    """How long results wait for others, against how much disorder is allowed."""
    windows = ByWindow(100, 10, rows=True)
    capacity = run(windows, PAPER, 16).throughput
    results = run(windows, PAPER, 16, rate=0.85 * capacity, tasks=5000, jitter=0.5)
    trigger = float(results.latency.mean()) / 20
    yield "## Order against latency"
    yield ""
    yield "Windows of 100 rows on 16 workers at 85 % load, times of tasks varying by half; results handed in every"
    yield f"{trigger * 1e3:.2f} ms. Out of place is the longest way between two results in the wrong order."
    yield ""
    yield "| k | out of place | waited, ms | at worst | micro-batches | at worst | held, at most | end to end, ms |"
    yield "|---|---|---|---|---|---|---|---|"
    latency = float(results.latency.mean())
    for k in (0, 1, 2, 4, 8, 16, 32, None):
        merger, delivered = _merge_in_order(results, len(results.windows) if k is None else k, trigger)
        waits = merger.waits
        yield (
            f"| {'any' if k is None else k} | {disorder(delivered)} | {waits.mean_seconds * 1e3:.2f} "
            f"| {waits.most_seconds * 1e3:.2f} | {waits.mean_batches:.1f} | {waits.most_batches} | {waits.most_held} "
            f"| {(latency + waits.mean_seconds) * 1e3:.2f} |"
        )


def _timed(what: Callable[..., object], *given: object) -> float:
    """Seconds that a core spent on it, whatever else the machine was doing."""
    start = time.thread_time()
    what(*given)
    return time.thread_time() - start


def _ring_speed(size: int, slide: int, workers: int, costs: Costs, merge: float) -> float:
    rounds = max(20, 160 // workers)  # enough that the start and the end do not show
    return run_ring(Ring(size, slide, workers), costs, merge, rounds=rounds).throughput


def _limited(speed: float, split: float = np.inf) -> str:
    """A speed, or that of the split where it is slower."""
    return f"{split:,.0f} (split)" if split < speed else f"{speed:,.0f}"


def _sustained(costs: Costs, size: int, slide: int, workers: int, batch: int, bound: float) -> float:
    return sustained(ByBatch(size, slide, batch, rows=True), costs, workers, bound, HEADROOM)


def _let_run(tuner: Tuner, costs: Costs, rate: float) -> None:
    """Half a minute of a stream, ten batches a second."""
    noise = np.random.default_rng(1)
    for second in range(30):
        batch = tuner.tune(second, second * rate)
        rows, updates = tuner.size + (batch - 1) * tuner.slide, tuner.size * batch
        for _ in range(10):
            took = costs.of(updates, batch, rows) * float(np.exp(0.05 * noise.standard_normal()))
            tuner.add(updates, batch, rows, took)


def _merge_in_order(results: Run, k: int, trigger: float) -> tuple[Merger, Int64Array]:
    merger = Merger(k, low=0)
    by_time = np.argsort(results.done, kind="stable")
    edges = np.searchsorted(results.done[by_time], np.arange(0, results.done.max() + trigger, trigger))
    out = []
    for batch, (start, stop) in enumerate(pairwise(edges)):
        new = [Result(int(results.windows[i])) for i in by_time[start:stop]]
        out += merger.add(new, now=(batch + 1) * trigger)
    return merger, np.array([result.number for result in out])


def _in_pandas(keys: Int64Array, values: FloatArray, size: int, slide: int, batch: int) -> None:
    rows = pd.DataFrame({"key": keys, "speed": values})
    for window in range(batch):
        part = rows.iloc[window * slide : window * slide + size]
        part.groupby("key")["speed"].agg(["count", "min", "max", "mean"])


@lean_kernel
def _update(keys: Int64Array, values: FloatArray, size: Int, slide: Int, batch: Int, states: FloatArray) -> Float:
    """Count, min, max and sum of each group, in each window of a batch; every row updates all windows that hold it."""
    for window in range(batch):
        for group in range(states.shape[2]):
            states[0, window, group] = 0.0
            states[1, window, group] = np.inf
            states[2, window, group] = -np.inf
            states[3, window, group] = 0.0
    for i in range(len(keys)):
        group, value = keys[i], values[i]
        for window in range(max(0, (i - size) // slide + 1), min(batch - 1, i // slide) + 1):
            states[0, window, group] += 1.0
            states[1, window, group] = min(states[1, window, group], value)
            states[2, window, group] = max(states[2, window, group], value)
            states[3, window, group] += value
    closed = 0.0
    for window in range(batch):
        for group in range(states.shape[2]):
            closed += states[3, window, group] / max(1.0, states[0, window, group])
    return closed


@lean_kernel
def _merge(states: FloatArray, times: Int) -> None:
    """Merge the result of a pane into a window, so many times."""
    for _ in range(times):
        for group in range(states.shape[2]):
            states[0, 0, group] += states[0, 1, group]
            states[1, 0, group] = min(states[1, 0, group], states[1, 1, group])
            states[2, 0, group] = max(states[2, 0, group], states[2, 1, group])
            states[3, 0, group] += states[3, 1, group]


if __name__ == "__main__":
    main()
