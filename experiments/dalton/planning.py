"""What tells Prompt and Dalton apart: what it costs to plan a micro-batch, and how a batch is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.dalton.rivals import BATCHED
from experiments.dalton.word_count import Setup
from experiments.figure import Table
from skewless.core.arrays import Int64Array
from skewless.simulate.arrivals import Keys
from skewless.simulate.partitioners import Partitioners

PLANNING = (0.0, 1.0, 10.0, 100.0)
"""Multiples of what was measured."""


def told_planning(rates: Mapping[float, float], others: Mapping[str, float]) -> str:
    """What planning changes, in words.

    >>> told_planning({0.0: 110.0, 1.0: 100.0, 10.0: 60.0}, {"dalton": 80.0})
    'Planning lowers its rate by 9.1 %, and dalton is ahead only if planning takes 10 times as long as measured.'
    >>> told_planning({0.0: 110.0, 1.0: 110.0, 10.0: 100.0}, {"dalton": 80.0})
    'Planning lowers its rate by 0.0 %, and dalton is behind even if planning takes 10 times as long as measured.'
    >>> told_planning({0.0: 70.0, 1.0: 60.0, 10.0: 50.0}, {"dalton": 80.0})
    'Planning lowers its rate by 14.3 %, and dalton is ahead even if planning takes no time.'
    """
    taken = f"Planning lowers its rate by {100 * max(0.0, 1 - rates[1.0] / rates[0.0]):.1f} %"
    ahead = [times for times, rate in sorted(rates.items()) if rate < others["dalton"]]
    if not ahead:
        return f"{taken}, and dalton is behind even if planning takes {max(rates):g} times as long as measured."
    if ahead[0] == 0:
        return f"{taken}, and dalton is ahead even if planning takes no time."
    if ahead[0] == 1:
        return f"{taken}, and dalton is ahead if planning takes the time that was measured, but not if it takes none."
    return f"{taken}, and dalton is ahead only if planning takes {ahead[0]:g} times as long as measured."


def planning_table(what: str, rates: Mapping[float, float], others: Mapping[str, float]) -> Table:
    """The rates, and the gain of Dalton."""
    rows = tuple((f"x {times:g}", round(rate), others["dalton"] / rate) for times, rate in rates.items())
    title = f"{what}: prompt by what planning costs"
    return Table(title, ("planning", "tuples a second", "gain of dalton"), rows)


SEEN, LAST = 48, 12
"""Micro-batches that are routed to see how they are cut, and of these the last ones, which are looked at."""

Cut = dict[str, tuple[float, float]]
"""By algorithm, the busiest combiner over the average in a micro-batch, and its partial results: means."""


def cut(setup: Setup, keys: Keys, rate: float, names: Sequence[str] = ("prompt", "dalton", "dalton as printed")) -> Cut:
    """Route micro-batches of a second, which all of these see before they route it."""
    tuples = round(rate * setup.fraction)
    found = {}
    for name in names:
        team, workers = Partitioners(setup.partitioner(BATCHED[name])), setup.cluster(BATCHED[name]).combiners
        measured = [_cut(team, batch, workers) for batch in keys.blocks(SEEN * tuples, tuples)]
        evenness, partials = np.mean(measured[-LAST:], axis=0)
        found[name] = float(evenness), float(partials)
    return found


def _cut(team: Partitioners, batch: Int64Array, workers: int) -> tuple[float, int]:
    routed = team.route_batch(batch, np.zeros(0, dtype=np.int64))
    team.end_batch()
    loads = np.bincount(routed, minlength=workers)
    return float(loads.max() / loads.mean()), len(np.unique(batch * workers + routed))


def told_cut(found: Cut) -> str:
    """What tells Prompt and Dalton apart, in words.

    >>> told_cut({"prompt": (1.004, 531.0), "dalton": (1.12, 705.0)})
    'Both see a whole batch before they route it, ... 1.004 times the average load ... 531 partial results, ...'
    """
    (even, few), (uneven, many) = found["prompt"], found["dalton"]
    return (
        "Both see a whole batch before they route it, so that this does not tell them apart. What they make of it "
        f"does: with prompt the busiest combiner of a batch has {even:.3f} times the average load and the batch "
        f"{few:,.0f} partial results, with dalton {uneven:.3f} times and {many:,.0f}."
    )


def cut_table(what: str, found: Cut) -> Table:
    """How a micro-batch is cut."""
    rows = tuple((name, *measured) for name, measured in found.items())
    return Table(f"{what}: how a micro-batch is cut", ("", "max/avg", "partial results"), rows)
