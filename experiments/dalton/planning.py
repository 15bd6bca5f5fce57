"""Prompt's rate by what it costs to plan a micro-batch, beside Dalton's."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figure import Table

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
