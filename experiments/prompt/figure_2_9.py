"""Prompt, Figure 2.9: what sorting after the interval costs, and what planning costs at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import lines
from experiments.prompt.overhead import Overhead, buffered, ordering, sorted_after
from experiments.prompt.rivals import Planned
from experiments.prompt.setting import CORES, Setting, cluster_lines, tweets
from experiments.prompt.throughput import sustained
from skewless import split
from skewless.workload import Zipf

INTERVALS = (1.0, 2.0, 3.0)
TUPLES = 1_000_000  # of a micro-batch
KEYS: dict[Scale, tuple[int, ...]] = {
    "small": (10_000, 30_000, 100_000),
    "full": (10_000, 30_000, 100_000, 300_000, 1_000_000),
}
REPEATS = 9
ENOUGH = 0.05  # of the interval, by the thesis
FINER = 0.005  # how near the rates are found, as they differ by little
SLOWER = 10  # times, for planning by an engine that is slower than compiled loops
SIZE: dict[Scale, float] = {"small": 1.0, "full": 4.0}  # times that all work takes longer, for runs that end


def run(scale: Scale, tell: Tell) -> Outcome:
    """Time both ways to order the keys, and search for the rates that Prompt sustains with these times."""
    tree, sort, parts = [], [], []
    for keys in KEYS[scale]:
        tell(f"{TUPLES:,} tuples of {keys:,} keys")
        batch = Zipf(0.6, keys).take(TUPLES)
        tree.append(buffered(batch, CORES, REPEATS))
        sort.append(sorted_after(batch, CORES, REPEATS))
        parts.append(ordering(batch, REPEATS))
    setting, words = Setting(scale, slower=SIZE[scale]), tweets(scale)
    rates: dict[str, list[float]] = {}
    for name, found, times, early in (
        ("frequency-aware buffer, early release", tree, 1, True),
        ("post-sort, early release", sort, 1, True),
        ("post-sort", sort, 1, False),
        (f"post-sort, {SLOWER} times slower", sort, SLOWER, False),
    ):
        divides = partial(Planned, split.partition, setting, True, times * _a_key(found))
        rates[name] = []
        for interval in INTERVALS:
            tell(f"{name}, intervals of {interval:g} s")
            rates[name].append(sustained(divides, early, words, setting, interval, tolerance=FINER))
    aware, hidden, sorting, slower = rates.values()
    work = max((a.arriving + a.at_the_end) / (b.arriving + b.at_the_end) for a, b in zip(tree, sort, strict=True))
    ratios = [a.sorting / b.sorting for a, b in zip(tree, sort, strict=True)]
    worst = ratios.index(max(ratios))
    rests = (
        [each.sorting - part.walk - part.clear for each, part in zip(tree, parts, strict=True)],
        [each.sorting - part.sort for each, part in zip(sort, parts, strict=True)],
    )
    checks = (
        Check(
            "2.9a: throughput with the frequency-aware buffer over that of post-sort, early release with both, the "
            "most of the intervals",
            max(a / b for a, b in zip(aware, hidden, strict=True)),
            low=1 + FINER,
            why="Early release hides whatever planning takes, up to 5 % of the interval, and both ways take less than "
            f"that: {_range(tree)} ms with the buffer and {_range(sort)} ms by post-sort. Nothing of either is left on "
            "the path, so that the buffer has nothing to gain. With early release the buffer sustains "
            f"{min(a / b for a, b in zip(aware, sorting, strict=True)):.4f} to "
            f"{max(a / b for a, b in zip(aware, sorting, strict=True)):.4f} times what "
            "post-sort does without early release, and post-sort with early release as much.",
        ),
        Check(
            "2.9a: throughput of post-sort with early release over that without, the most of the intervals",
            max(a / b for a, b in zip(hidden, sorting, strict=True)),
            low=1 + FINER,
            why=f"Planning takes {_range(sort)} ms after an interval of 1 s or more; rates are found to {FINER:.1%}.",
        ),
        Check(
            f"2.9a: throughput with the buffer and early release over that of post-sort that is {SLOWER} times slower, "
            "the least",
            min(a / b for a, b in zip(aware, slower, strict=True)),
            low=1 + FINER,
            essential=False,
        ),
        Check(
            "2.9b: sorting and planning at the end of a micro-batch, frequency-aware, as a share of 1 s, the most",
            max(each.at_the_end for each in tree),
            high=ENOUGH,
        ),
        Check(
            "2.9b: sorting at the end, frequency-aware over post-sort, the most",
            max(ratios),
            high=1.0,
            why=f"It is the most with {tree[worst].keys:,} keys. A walk through a tree of counts puts them in order in "
            f"{1000 * parts[worst].walk:.2f} ms and a sort in {1000 * parts[worst].sort:.2f} ms, and clearing the "
            f"buffer's tables takes {1000 * parts[worst].clear:.2f} ms. The rest lists the rows of each key, which "
            f"both have to do: {1000 * rests[0][worst]:.2f} ms with the buffer and {1000 * rests[1][worst]:.2f} ms by "
            f"post-sort. The same listing takes {1000 * parts[worst].listing:.2f} ms if the tuples have arrived in the "
            "buffer just before, whose tables are then in the caches of the processor instead. With "
            f"{tree[-1].keys:,} keys the walk takes {1000 * parts[-1].walk:.2f} ms and the sort "
            f"{1000 * parts[-1].sort:.2f} ms.",
        ),
        Check(
            "all work on a micro-batch, frequency-aware over post-sort, the most",
            work,
            high=1.5,
            essential=False,
            why="The thesis calls the updates of the tree comparable to sorting, as both take K log K steps. A step in "
            "a tree follows pointers through memory, each key may take ten times as many, and every tuple looks up its "
            "record: "
            f"with {tree[-1].keys:,} keys the tuples take {1000 * tree[-1].arriving:.0f} ms to arrive instead of "
            f"{1000 * sort[-1].arriving:.0f}, and the end takes {1000 * tree[-1].at_the_end:.1f} instead of "
            f"{1000 * sort[-1].at_the_end:.1f}.",
        ),
    )
    return Outcome(
        (
            *cluster_lines(scale, SIZE[scale]),
            Scaled("tuples of a micro-batch (2.9b)", "up to millions", f"{TUPLES:,}, Zipf 0.6"),
            Scaled("keys (2.9b)", "10,000 to 100,000", f"{KEYS[scale][0]:,} to {KEYS[scale][-1]:,}"),
            Scaled("stream and rate (2.9a)", "not said", f"words of tweets, {words.words:,} of them, the sine of 2.7"),
            Scaled("time of planning", "that of a receiver of Spark", "one core, measured here, compiled loops"),
            Scaled(
                "time while tuples arrive",
                "not said",
                "on no path of the simulator, whose receiver has time for it: with the buffer it is "
                f"{1000 * tree[-1].arriving:.0f} ms for {TUPLES:,} tuples, the column of 2.9b, and with post-sort "
                f"{1000 * sort[-1].arriving:.0f} ms",
            ),
        ),
        f"When a micro-batch of {TUPLES:,} tuples is complete, sorting and planning take {_range(tree)} ms by the "
        f"frequency-aware buffer and {_range(sort)} ms after a sort. Prompt with post-sort on the path sustains "
        f"{min(b / a for a, b in zip(aware, sorting, strict=True)):.1%} or more of the rate that the buffer and early "
        f"release do, and {min(b / a for a, b in zip(aware, slower, strict=True)):.1%} if sorting takes {SLOWER} times "
        f"as long; with early release post-sort sustains {min(b / a for a, b in zip(aware, hidden, strict=True)):.1%}.",
        checks,
        (
            Table(
                "2.9a: highest mean rate in 1,000 tuples a second",
                ("interval, s", *rates),
                tuple(
                    (interval, *(rate / 1000 for rate in each))
                    for interval, each in zip(INTERVALS, zip(*rates.values(), strict=True), strict=True)
                ),
            ),
            _table("2.9b: frequency-aware buffer, ms", tree),
            _table("2.9b: post-sort, ms", sort),
            Table(
                "2.9b: parts of sorting at the end, ms",
                (
                    "keys",
                    "walk",
                    "clearing tables",
                    "the rest, buffer",
                    "sort",
                    "the rest, post-sort",
                    "listing of post-sort, tuples in the buffer",
                ),
                tuple(
                    (
                        each.keys,
                        1000 * part.walk,
                        1000 * part.clear,
                        1000 * a,
                        1000 * part.sort,
                        1000 * b,
                        1000 * part.listing,
                    )
                    for each, part, a, b in zip(tree, parts, *rests, strict=True)
                ),
            ),
        ),
        lambda figure: _draw(figure, rates, tree, sort),
    )


def _a_key(found: Sequence[Overhead]) -> float:
    """Seconds at the end of a micro-batch for each of its keys, as with about as many keys as the words."""
    middle = found[1]
    return middle.at_the_end / middle.keys


def _range(found: Sequence[Overhead]) -> str:
    return f"{1000 * found[0].at_the_end:.1f} to {1000 * found[-1].at_the_end:.1f}"


def _table(title: str, found: Sequence[Overhead]) -> Table:
    return Table(
        title,
        ("keys", "while tuples arrive", "sorting at the end", "Algorithm 2", "at the end, share of 1 s"),
        tuple(
            (each.keys, 1000 * each.arriving, 1000 * each.sorting, 1000 * each.planning, f"{each.at_the_end:.1%}")
            for each in found
        ),
    )


def _draw(figure: Any, rates: dict[str, list[float]], tree: Sequence[Overhead], sort: Sequence[Overhead]) -> None:
    left, right = figure.subplots(1, 2)
    shown = {name: [rate / 1000 for rate in each] for name, each in rates.items()}
    lines(left, INTERVALS, shown, x="interval, s", y="1,000 tuples a second", title="a: throughput")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=6)
    ends = {
        "frequency-aware buffer": [100 * each.at_the_end for each in tree],
        "post-sort": [100 * each.at_the_end for each in sort],
    }
    lines(right, [each.keys for each in tree], ends, x="keys", y="% of 1 s", title="b: at the end of a micro-batch")
    right.axhline(100 * ENOUGH, color="0.5", linewidth=0.8)
    right.set_xscale("log")
    right.set_ylim(bottom=0)
    right.legend(frameon=False, fontsize=7)


FIGURE = Figure(
    "prompt-2.9",
    "Post-sort and overhead",
    "Sorting keys after the interval takes from the time for processing, so that the frequency-aware buffer sustains a "
    "higher throughput; at most 5 % of the interval is enough to hide planning.",
    run,
)
