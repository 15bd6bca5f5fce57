"""The page of what work costs on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Costs = Mapping[str, Mapping[str, float]]

WHAT = {
    "parse": "a combiner reads a tuple: parses the JSON of a tweet and counts its words",
    "add": "a combiner adds a tuple to the partial result of its key and window",
    "emit": "a combiner emits a partial result",
    "partial": "a reducer takes a partial result and merges it",
    "key": "a reducer gives the result of a key in a window",
    "route": "a partitioner routes a tuple inside its task: Dalton decides, and the tuple is packed and exchanged",
    "decide": "Dalton's decision alone, in a compiled loop on arrays",
    "plan": "Prompt's Algorithm 2, for each key of a micro-batch, the keys in order already",
    "pair": "a combiner compares two texts of 8 letters by their edit distance",
    "tell": "a partitioner writes a message, and reads the broadcast that answers it and takes over its table",
    "tell of few": "the same with 140,000 tuples, as in 1 s; between the two the figures go by a line",
    "merge": "the Q-table reducer reads the messages of two partitioners, merges them and writes the broadcast",
    "task": "a task with a Python function, besides its rows",
    "micro-batch": "a micro-batch, besides its tasks",
    "task with state": "a task with a Python function and state in RocksDB, besides its rows",
    "micro-batch with state": "a micro-batch of windows, besides its stateful tasks",
}
MESSAGES = ("tell", "tell of few", "merge")
FIXED = ("task", "micro-batch", "task with state", "micro-batch with state")

BEFORE = """\
# What work costs

Made by `make bench-costs`, with one core of Spark. The simulated figures of Dalton, Prompt, Prompt+ and PartLy use
these costs, all of them the same ones: they were measured once, and are kept in `experiments/costs.json`. Those of
AutoFlow, and those of sliding windows by Balkesen and Tatbul, have costs of their own and say which. All but the
messages of partitioners are from one whole run; these were added later, by `python -m benchmarks.costs messages`, which
measures one part and keeps the others.

Each cost is a slope. A stage runs with more and more rows, keys, or fragments of keys, and a straight line through its
times says what one more takes; what a stage costs at all is not in it. Times are seconds that Spark's JVM and its
Python workers spent on a core; only those of tasks and micro-batches are times on the clock, as Spark reports them.
Shown are the slope of the median times, and the least and the most of single rounds.

## What the costs stand for

The operators are those that skewless runs on Spark: its combiner, its reducer, its router inside the task. The
aggregate is one that a user wrote in Python, row by row, and a row is a tweet in JSON that has to be parsed, as parsing
is part of the work in Dalton's word count too. The reason for this choice is that balance matters for such an
aggregate. `split="auto"` moves the rows of aggregates that users wrote, because a row costs more than moving it does. A
built-in sum works on columns, and the second table shows what that means: a row costs less than moving it, so `auto`
adds it up where it lies, and no partitioning algorithm is asked at all.

The simulator charges a tuple once for `parse`, and once for `add` in each window that it belongs to. Spark's `window()`
does so too, as it copies a row for each of its windows; the workers of skewless add it to one pane instead, and windows
are made of panes. The papers' engines have no panes.

## The costs

"""

SLOWER = """\
What a partitioner takes for a tuple depends on what it does besides deciding. Moving a tuple is most of `route`; it is
the same work for every algorithm, and on Spark all map tasks share it. Beside 56 combiners and three windows a tuple, a
single partitioner is far from being the bottleneck if it only decides, and far beyond it if it also moves all tuples.
Dalton's authors say that one is a bottleneck in their cluster and two are not (5.4). The figures of Dalton follow
them: a partitioner takes the square root of 2 times as long for a tuple as 56 combiners together do with three windows,
which lies between `decide` and `route`. So this one cost is chosen and not measured, each figure says so, and Figure 1
is shown with half and with twice of it. All other costs are those of the tables.

Figures that say at which rates a paper's cluster works use these costs longer by one factor, the same for all of them,
so that the simulated cluster is as fast as the paper's. For Dalton it follows from the peak of its 64 threads, 40,000
tuples a second with windows of 60 s by 1 s. What one thing costs beside another, and so who wins, stays as measured
here; figures with a factor also show it with half and with twice the cost of `emit`, `partial` and `key`.

The keys of `plan` were in falling order of their counts before they were sorted, so that the sort found nothing to do.
A micro-batch's keys come in any order; `python -m benchmarks.costs sorting` prints both costs beside each other, and
writes nothing. The figures keep the cost of the table, and Figure 2.7 of Prompt tries greater ones too.
"""


def page(found: Mapping[str, Any]) -> str:
    """The page of these results."""
    return BEFORE + "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    costs: Costs = found["costs"]
    yield from _table(
        "us", 1e6, {f"`{name}`: {WHAT[name]}": costs[name] for name in WHAT if name not in (*MESSAGES, *FIXED)}
    )
    yield ""
    yield SLOWER
    yield "## Messages of partitioners that learn together"
    yield ""
    yield "Two partitioners of 56 workers, one with a uniform stream and one with Zipf 1.5, of 100,000 keys. Each has"
    yield "1,400,000 tuples from one message to the next, as in 10 s at the rates of Dalton's figures. Most of"
    yield "`tell` is spent on finding the most frequent of all keys that were counted. Times are those of one core,"
    yield "without Spark."
    yield ""
    yield from _table("ms", 1e3, {f"`{name}`: {WHAT[name]}": costs[name] for name in MESSAGES})
    yield ""
    yield "## Tasks and micro-batches"
    yield ""
    yield "Streams that do nothing but read 16 rows and pass them on, or put them into windows, with 1 to 16 tasks"
    yield "that run one after the other on the one core."
    yield ""
    yield from _table("ms", 1e3, {f"`{name}`: {WHAT[name]}": costs[name] for name in FIXED})
    yield ""
    yield "## The same for other aggregates and splitters"
    yield ""
    yield "What a combiner and a reducer take, by aggregate; `tuple` is `parse` and `add` together:"
    yield ""
    stages: list[Mapping[str, Costs]] = [found["combiner"], found["reducer"]]
    every = {
        f"{name}: `{what}`": slope for stage in stages for name, each in stage.items() for what, slope in each.items()
    }
    yield from _table("us", 1e6, every)
    yield ""
    yield "What routing a tuple takes, besides reading it from disk, by splitter, with 56 workers and a tweet in each"
    yield "tuple; and what reading it takes:"
    yield ""
    yield from _table("us", 1e6, found["routes"])
    if "caveat" in found:
        yield ""
        yield "## What is weak about these numbers"
        yield ""
        yield found["caveat"]


def _table(unit: str, times: float, found: Costs) -> Iterator[str]:
    yield f"| | {unit} | least | most |"
    yield "|---|---|---|---|"
    for name, slope in found.items():
        median, least, most = (f"{times * slope[each]:.3g}" for each in ("seconds", "least", "most"))
        yield f"| {name} | {median} | {least} | {most} |"
