"""How fast each splitter routes and how well it balances, against plain hashing in the same run.

Claims tested: the rivals' order of balance and fragments (Dalton, Figures 7 and 8); a learner cheap enough to sit in
front of every tuple (at least 1/10 of hashing's speed on uniform keys and on Zipf 1.5 with 64 workers), whose cost
on Zipf 1.5 at most doubles from 8 to 512 workers; a splitter that learns nothing (at least 1/3 and 1/5 of hashing's
speed) and is even in every window, also where hot keys change and where several work apart. And the
balance that the authors' own Flink and Trident code reached on a fixed stream.

What profiling taught, in the order of what it gained:

- numba counts references to every array handed to a function, with atomic increments. Inner functions compiled without
  that took Dalton from 7 to 30 M tuples/s on Zipf 1.5 with 8 workers (`skewless.core.kernel.inner`).
- The largest Q value of a row as a tournament tree of single integers, value and worker together, has no branch to
  mispredict. With that, and with one draw for the wait until the next exploration instead of one a tuple, 64 workers
  went from 20 to 35 M tuples/s. A variant that skips the climb while the winner stays the winner was no faster.
- On uniform keys all the time goes into the statistics. Count-min in the L2 cache, raised without a branch, does 65 M
  tuples/s where a hash table of 60,000 keys does 40: hence the switch at 8,192 keys.
- Most tuples of a skewed stream belong to a hot key; finding it by one multiplication instead of a full hash saved
  20 %.

`make bench` runs this and writes docs/results/split.md.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console

from skewless import metrics, split
from skewless.core.arrays import Int32Array, Int64Array
from skewless.simulate.replay import replay
from skewless.simulate.warm import warm_up
from skewless.split import Bounded, DAGreedy, Dalton, DChoices, Prompt, Splitter, WChoices
from skewless.workload import Zipf, new_hot_keys

TUPLES, KEYS, SLIDE, SLIDES = 10_000_000, 100_000, 100_000, 10
WINDOW = SLIDE * SLIDES
EXPONENTS = {0.0: "uniform", 1.0: "Zipf 1.0", 1.5: "Zipf 1.5"}
WORKERS = (8, 64, 512)
REPEATS = 3
ONLINE = [name for name in split.NAMES if name not in ("prompt", "cm")]
PARTITIONERS = (1, 2, 4, 8)
MEASURES = "max/avg mean / worst | I | workers of a key | of a hot key | of the top key | Gamma"
SLOW = 1.5  # seconds from which once is enough

# What the authors' Flink and Trident code did on the same stream: (s, workers) -> hash, two choices, DAGreedy and both.
PUBLISHED = {
    (1.5, 8): ("3.39", "1.81, 1.03 fr", "1.27 / 1.24, 1.001 fr", "1.008 / 1.020, 1.001 fr", "1.006 / 1.028, 1.002 fr"),
    (1.5, 64): ("24.7", "12.3, 1.02 fr", "1.59 / 1.34, 1.017 fr", "4.33 / 4.47, 1.046 fr", "1.45 / 1.09, 1.243 fr"),
    (1.0, 64): ("5.95", "2.66, 1.36 fr", "1.52 / 1.52, 1.0003 fr", "1.48 / 1.45, 1.321 fr", "1.18 / 1.04, 1.570 fr"),
    (0.0, 8): ("1.005", "1.000, 1.84 fr", "= hash", "= hash", "= hash"),
}
STARTUP = """
import time; start = time.perf_counter()
import numpy as np
from skewless.split import Dalton
Dalton(8).route(np.arange(1000))
print(time.perf_counter() - start)
"""


def main() -> None:
    """Run everything and write the results."""
    console = Console()
    target = Path("docs/results/split.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench` does")
    lines = [
        "# Splitters: speed and balance",
        "",
        f"Made by `make bench` on {platform.machine()} with Python {platform.python_version()}, on one core. Times are",
        f"the best of {REPEATS} runs; what matters are the ratios to hashing, which ran in turn with each splitter, as",
        "often. Keys are hashed with a real hash (Spark's xxhash64).",
        "",
        *speed_and_balance(console),
        *same_threshold(console),
        *restless(console),
        *against_published(console),
        *hot_at_and_max_split(console),
        *after_a_shift(console),
        *startup(console),
    ]
    target.write_text("\n".join(lines) + "\n")
    console.print(f"written to {target}")


def speed_and_balance(console: Console) -> Iterator[str]:
    """Every splitter on every stream."""
    yield "## Every splitter"
    yield ""
    yield f"{TUPLES // 1_000_000} M tuples of {KEYS:,} keys, slide {SLIDE:,}, window {WINDOW:,}. Balance is max/avg"
    yield "load: the mean over the windows of 1 M tuples, and the worst of them. The other columns are those of the"
    yield "last window: Dalton's I (tuples of the busiest worker above the average); the workers that hold a key on"
    yield "average, a key that has at least a worker's fair load, and the top key; and Dalton's Gamma (partial"
    yield "results that the busiest of as many reducers merges). A key is hot by the same measure for all. What each"
    yield "splitter itself calls hot is its own default (of a fair load: d-choices and w-choices 0.2, dagreedy 1.0,"
    yield "dalton 0.1); the table after these has them at the same. prompt is given each window as a batch, which it"
    yield "sees before it routes it."
    for s, title in EXPONENTS.items():
        keys = Zipf(s, keys=KEYS, seed=1).take(TUPLES)
        for workers in WORKERS:
            yield ""
            yield f"### {title}, {workers} workers"
            yield ""
            yield f"| strategy | M tuples/s | of hash | {MEASURES} |"
            yield "|---|---|---|---|---|---|---|---|---|"
            for name in split.NAMES:
                seconds, hashing, routed = _measure(name, workers, keys)
                ratio = "1" if name == "hash" else f"1/{seconds / hashing:.1f}"
                row = f"| {name} | {TUPLES / seconds / 1e6:.1f} | {ratio} | {_measures(keys, routed, workers)} |"
                console.print(f"{title:8} {workers:4} {row}", markup=False)
                yield row


def same_threshold(console: Console) -> Iterator[str]:
    """The splitters that tell hot keys apart, with the same idea of hot."""
    yield ""
    yield "## At the same hot threshold"
    yield ""
    yield "64 workers, 5 M tuples of the same streams; a key is hot from so much of a fair load on. bounded has no"
    yield "threshold."
    yield ""
    yield f"| Zipf | hot_at | strategy | {MEASURES} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for s in (1.0, 1.5):
        keys = Zipf(s, keys=KEYS, seed=1).take(5_000_000)
        for hot_at in (1.0, 0.1):
            splitters = [
                DChoices(64, slide=SLIDE, hot_at=hot_at),
                WChoices(64, slide=SLIDE, hot_at=hot_at),
                DAGreedy(64, slide=SLIDE, slides=SLIDES, hot_at=hot_at),
                Dalton(64, slide=SLIDE, slides=SLIDES, hot_at=hot_at),
            ]
            for splitter in splitters:
                row = f"| {s} | {hot_at} | {splitter.name} | {_measures(keys, splitter.route(keys), 64)} |"
                console.print(row, markup=False)
                yield row
        row = f"| {s} | | bounded | {_measures(keys, Bounded(64, slide=SLIDE, slides=SLIDES).route(keys), 64)} |"
        console.print(row, markup=False)
        yield row


def restless(console: Console) -> Iterator[str]:
    """Every window of streams whose hot keys are replaced, and several partitioners that do not talk."""
    yield ""
    yield "## Restless streams"
    yield ""
    yield "1 M tuples, windows of 100,000 that slide by 10,000; all hot keys are replaced every 50,000 tuples. Max/avg"
    yield "of the mean and of the worst window, and workers of a key and of a hot key, on average over the windows."
    yield ""
    yield "| Zipf, n | " + " | ".join(ONLINE) + " |"
    yield "|---|" + "---|" * len(ONLINE)
    for s, workers in ((1.0, 16), (1.5, 16), (1.0, 64), (1.5, 64)):
        keys, cells = new_hot_keys(s, every=50_000, seed=5).take(1_000_000), []
        for name in ONLINE:
            found = replay(split.make(name, workers, slide=10_000, slides=10), [keys], workers, 100_000, 10_000)
            balance = f"{found.mean_window:.2f} / {found.worst_window:.2f}"
            hot = "-" if np.isnan(found.mean_hot_fragments) else f"{found.mean_hot_fragments:.1f}"
            cells.append(f"{balance}, {found.fragments_per_key.mean():.2f}, {hot}")
        row = f"| {s:g}, {workers} | " + " | ".join(cells) + " |"
        console.print(row, markup=False)
        yield row
    yield ""
    yield "The same number of tuples of Zipf streams that stay as they are, dealt in turn to partitioners that do not"
    yield "talk to each other: max/avg of the worst window of 100,000 of them together, and workers of a key."
    yield ""
    yield "| Zipf, n | strategy | " + " | ".join(f"P = {each}" for each in PARTITIONERS) + " |"
    yield "|---|---|" + "---|" * len(PARTITIONERS)
    for s, workers in ((0.6, 64), (1.0, 64), (1.5, 64)):
        keys = Zipf(s, keys=KEYS, seed=3).take(1_000_000)
        for name in ("dalton", "bounded"):
            cells = [_apart(name, each, keys, workers) for each in PARTITIONERS]
            row = f"| {s:g}, {workers} | {name} | " + " | ".join(cells) + " |"
            console.print(row, markup=False)
            yield row


def against_published(console: Console) -> Iterator[str]:
    """The stream on which the authors' code was measured."""
    yield ""
    yield "## Against the authors' code"
    yield ""
    yield "numpy `default_rng(1)`, keys 0 to 99,999 with p ~ 1/rank^s, 5 M tuples, slide 100 k, window 1 M: max/avg"
    yield "mean / last window, fragments per key in the last. Their hash is `key % n`, which spreads the heaviest ranks"
    yield "evenly and so flatters their hash, two choices and tail."
    yield ""
    theirs = ("hash", "two choices", "DAGreedy", "Dalton (Flink)", "Dalton (Trident)")
    yield "| s, n | " + " | ".join([*theirs, "our hash", "our two choices", "our DAGreedy", "**our Dalton**"]) + " |"
    yield "|" + "---|" * 10
    for (s, workers), published in PUBLISHED.items():
        keys = Zipf(s, keys=KEYS, seed=1).take(5_000_000)
        ours = []
        for name in ("hash", "two-choices", "dagreedy", "dalton"):
            routed = split.make(name, workers, slide=SLIDE, slides=SLIDES).route(keys)
            ours.append(_balance(keys, routed, workers, digits=3).replace(" |", ",") + " fr")
        ours[-1] = f"**{ours[-1]}**"
        row = f"| {s:g}, {workers} | " + " | ".join([*published, *ours]) + " |"
        console.print(row, markup=False)
        yield row


def hot_at_and_max_split(console: Console) -> Iterator[str]:
    """What Dalton's own additions buy and cost."""
    yield ""
    yield "## Dalton's defaults"
    yield ""
    yield "`hot_at` 1.0, one choice and no limit are the paper's. Same streams as above; speed in M tuples/s."
    yield ""
    yield "| hot_at | choices | max_split | Zipf 1.5, 8 | Zipf 1.5, 64 | Zipf 1.0, 64 |"
    yield "|---|---|---|---|---|---|"
    streams = {s: Zipf(s, keys=KEYS, seed=1).take(5_000_000) for s in (1.5, 1.0)}
    for hot_at in (1.0, 0.5, 0.2, 0.1, 0.05):
        for choices, max_split in ((1, None), (1, "share"), (2, "share")):
            cells = []
            for s, workers in ((1.5, 8), (1.5, 64), (1.0, 64)):
                splitter = Dalton(workers, hot_at=hot_at, choices=choices, max_split=max_split)
                seconds, routed = _time(splitter, streams[s])
                balance = _balance(streams[s], routed, workers, digits=3).replace(" |", ",")
                cells.append(f"{balance} fr, {len(routed) / seconds / 1e6:.0f}")
            row = f"| {hot_at} | {choices} | {max_split} | " + " | ".join(cells) + " |"
            console.print(row, markup=False)
            yield row


def after_a_shift(console: Console) -> Iterator[str]:
    """Balance after the hot keys were replaced."""
    yield ""
    yield "## After a shift"
    yield ""
    yield "All hot keys are replaced after 2 M tuples. Max/avg load of Dalton in each statistics window of 100 k tuples"
    yield "from then on, and in the window of 1 M tuples that ends there, which is what its rewards are about."
    yield ""
    yield "| s, n | | 1st | 2nd | 3rd | 4th | 5th |"
    yield "|---|---|---|---|---|---|---|"
    for s, workers in ((1.5, 8), (1.5, 64), (1.0, 64)):
        shift = 2_000_000
        keys = new_hot_keys(s, every=shift, seed=5).take(shift + 5 * SLIDE)
        routed = Dalton(workers, slide=SLIDE, slides=SLIDES).route(keys)
        ends = range(shift + SLIDE, len(keys) + 1, SLIDE)
        for what, length in (("statistics window", SLIDE), ("window", WINDOW)):
            cells = [f"{metrics.max_over_avg(routed[end - length : end], workers):.2f}" for end in ends]
            row = f"| {s:g}, {workers} | {what} | " + " | ".join(cells) + " |"
            console.print(row, markup=False)
            yield row


def startup(console: Console) -> Iterator[str]:
    """From a new process to its first routed tuple, with the kernels on disk."""
    command = [sys.executable, "-c", STARTUP]
    seconds = sorted(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(5))
    yield ""
    yield "## First call"
    yield ""
    yield "From the first import to 1,000 tuples routed by Dalton in a new process, with the kernels on disk:"
    row = f"{seconds[0]:.2f} s at best, {seconds[2]:.2f} s in the median of 5."
    console.print("first call:", row)
    yield row


def _measure(name: str, workers: int, keys: Int64Array) -> tuple[float, float, Int32Array]:
    """The best times of the splitter and of hashing, run in turn, and what the splitter routed."""
    best, hashing = float("inf"), float("inf")
    for _ in range(REPEATS):
        hashing = min(hashing, _time(split.make("hash", workers), keys)[0])
        splitter = split.make(name, workers, slide=SLIDE, slides=SLIDES)
        seconds, routed = _time_batches(splitter, keys) if isinstance(splitter, Prompt) else _time(splitter, keys)
        best = min(best, seconds)
        if seconds > SLOW:
            break
    return best, hashing, routed


def _time(splitter: Splitter, keys: Int64Array) -> tuple[float, Int32Array]:
    warm_up(splitter.name, splitter.workers)
    start = time.perf_counter()
    routed = splitter.route(keys)
    return time.perf_counter() - start, routed


def _time_batches(splitter: Prompt, keys: Int64Array) -> tuple[float, Int32Array]:
    """Prompt as the paper has it, with a window for a batch."""
    splitter.partition(keys[:1000])
    start = time.perf_counter()
    routed = [splitter.partition(keys[at : at + WINDOW]) for at in range(0, len(keys), WINDOW)]
    return time.perf_counter() - start, np.concatenate(routed)


def _apart(name: str, partitioners: int, keys: Int64Array, workers: int) -> str:
    """What partitioners that do not talk make of a stream together."""
    routed = np.empty(len(keys), np.int32)
    for each in range(partitioners):
        splitter = split.make(name, workers, slide=10_000 // partitioners, slides=10)
        routed[each::partitioners] = splitter.route(keys[each::partitioners])
    windows = [slice(at, at + 100_000) for at in range(0, len(keys), 100_000)]
    worst = max(metrics.max_over_avg(routed[window], workers) for window in windows)
    fragments = np.mean([metrics.fragments_per_key(keys[window], routed[window], workers) for window in windows])
    return f"{worst:.2f}, {fragments:.2f}"


def _measures(keys: Int64Array, routed: Int32Array, workers: int) -> str:
    """The cells of a row: balance of all windows, and what the last one costs."""
    windows = [metrics.max_over_avg(routed[at : at + WINDOW], workers) for at in range(0, len(keys), WINDOW)]
    last = keys[-WINDOW:], routed[-WINDOW:], workers
    cells = [
        f"{np.mean(windows):.2f} / {max(windows):.2f}",
        f"{metrics.imbalance(routed[-WINDOW:], workers):,.0f}",
        f"{metrics.fragments_per_key(*last):.3f}",
        f"{metrics.hot_fragments(*last):.1f}".replace("nan", "-"),
        f"{metrics.top_fragments(*last)}",
        f"{metrics.aggregation_cost(*last, reducers=workers):,}",
    ]
    return " | ".join(cells)


def _balance(keys: Int64Array, routed: Int32Array, workers: int, digits: int = 2) -> str:
    windows = [metrics.max_over_avg(routed[i : i + WINDOW], workers) for i in range(0, len(keys), WINDOW)]
    fragments = metrics.fragments_per_key(keys[-WINDOW:], routed[-WINDOW:], workers)
    return f"{np.mean(windows):.{digits}f} / {windows[-1]:.{digits}f} | {fragments:.3f}"


if __name__ == "__main__":
    main()
